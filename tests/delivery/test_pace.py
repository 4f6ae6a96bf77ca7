"""The pace of a relay holds over all workers, and nobody waits for a lock."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import select

from app.core import schema
from app.core.db import Database
from app.delivery import pace
from app.delivery.pace import Allowance, _clock, lane, reserve
from app.delivery.tempo import Strike


@pytest.fixture(params=["sqlite", "postgresql"])
async def db(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    """A migrated database of each kind."""
    url = f"sqlite:///{tmp_path}/pace.db"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
    one = Database(url)
    await schema.upgrade(one)
    yield one
    await one.close()


async def reserved(db: Database, rate: float) -> list[float]:
    async with db.transaction() as session:
        return await reserve(session, "relay.example:25", rate)


async def test_a_quarter_seconds_slots_are_evenly_spaced(db: Database) -> None:
    slots = await reserved(db, rate=40)
    assert len(slots) == 10
    assert slots[0] == pytest.approx(0, abs=0.02)
    assert [later - earlier for earlier, later in pairwise(slots)] == pytest.approx([1 / 40] * 9)


async def test_workers_that_reserve_at_once_own_different_slots(db: Database) -> None:
    async with db.reading() as session:
        before = (await session.execute(select(_clock(db.url.startswith("postgresql"))))).scalar_one()
    batches = await asyncio.gather(*(reserved(db, rate=8) for _ in range(6)))
    async with db.reading() as session:
        free_from = (await session.execute(select(lane.c.next_slot))).scalar_one()
    assert [len(batch) for batch in batches] == [2] * 6
    assert (
        free_from - before >= 6 * 2 / 8
    )  # six times two slots of an eighth of a second, none of them shared


async def test_a_slow_lane_gives_one_slot_at_a_time(db: Database) -> None:
    first, second = await reserved(db, rate=0.5), await reserved(db, rate=0.5)
    assert len(first) == len(second) == 1
    assert second[0] > 1


async def test_an_idle_lane_saves_up_nothing(db: Database) -> None:
    await reserved(db, rate=1000)
    await asyncio.sleep(0.5)
    assert (await reserved(db, rate=1000))[0] == pytest.approx(0, abs=0.05)


QQ = ("relay.example:25", "qq")
NOW = datetime(2026, 10, 26, 7, 0, tzinfo=UTC)


async def allowed(db: Database, wanted: Allowance, times: int, now: datetime = NOW) -> int:
    """Ask so many times at once, as that many workers would, and return how many mails may go in all."""
    await pace.put_down(db, QQ)
    return sum(await asyncio.gather(*(pace.allow(db, QQ, wanted, now) for _ in range(times))))


async def test_of_a_provider_s_lane_only_what_has_come_due_may_go(db: Database) -> None:
    wanted = Allowance(1, rate=1 / 60)
    assert await allowed(db, wanted, times=6) == 1
    assert await allowed(db, wanted, times=2) == 0


async def test_slots_that_nobody_took_add_up_to_a_quarter_second_s_worth(db: Database) -> None:
    wanted = Allowance(2, rate=8)  # a quarter second's worth
    await asyncio.sleep(0.5)
    # One that comes late may make up for the quarter second before, and no more.
    assert await allowed(db, wanted, times=6) <= 4


async def test_a_day_s_number_is_exact_over_all_workers_and_begins_anew_at_midnight(db: Database) -> None:
    wanted = Allowance(10, cap=50)
    assert await allowed(db, wanted, times=8) == 50
    assert await allowed(db, wanted, times=8, now=NOW + timedelta(days=1)) == 50


async def test_a_quota_is_taken_to_the_last_mail_by_several_workers(db: Database) -> None:
    taken = await asyncio.gather(*(pace.count_day(db, QQ[0], 7, 25, NOW) for _ in range(6)))
    assert sum(taken) == 25


async def test_one_of_several_workers_tries_a_lane_whose_pause_is_over(db: Database) -> None:
    await pace.note(db, QQ, Strike("reputation", True, NOW, 10), "421 too many complaints", NOW)
    tries = Allowance(1, tries=True)
    assert await allowed(db, tries, times=5, now=NOW + timedelta(minutes=14)) == 0
    assert await allowed(db, tries, times=5, now=NOW + timedelta(minutes=15)) == 1
    # The mail that was to try it may be lost with its worker: another tries it a minute later.
    assert await allowed(db, tries, times=5, now=NOW + timedelta(minutes=17)) == 1


async def test_replies_that_workers_note_at_once_are_all_counted(db: Database) -> None:
    strikes = [Strike("rate", False, NOW + timedelta(seconds=n), 64) for n in range(1, 3)]
    for one in strikes:
        await asyncio.gather(*(pace.note(db, QQ, one, "450 slow down", one.since) for _ in range(4)))
    async with db.reading() as session:
        row = (await pace.lanes(session))[QQ]
    assert row.rate == pytest.approx(16, rel=0.01)
    assert (row.strikes, row.paused_until) == (2, None)

"""The pace of a relay holds over all workers, and nobody waits for a lock."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import select

from app.core import schema
from app.core.db import Database
from app.delivery.pace import _clock, lane, reserve


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

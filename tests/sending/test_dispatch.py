"""A worker between its ledger and its relays: what it claims, what it gives back, and what it never lets get lost."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select, text, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncSession

from app.delivery import workers
from app.delivery.claims import Claim
from app.delivery.models import Delivery, Letter, Mailing, Worker
from app.issues.models import Edition
from app.sending import deliver
from tests.crowd import accounts, crowd, rows
from tests.sink import Sink, accept_then, at, delay, hang, reply
from tests.world import START, World, house_at

delivery = Delivery.__table__  # type: ignore[attr-defined]


async def test_an_outcome_that_cannot_be_recorded_as_it_is_holds_up_no_other(world: World) -> None:
    readers = await crowd(world, 30)
    # Any rule of the database that one row breaks will do: here a mail may not be called SINK7.
    rule = (
        "CREATE TRIGGER odd BEFORE UPDATE ON delivery WHEN new.relay_id = 'SINK7' "
        "BEGIN SELECT raise(ABORT, 'odd'); END"
    )
    async with world.db.transaction() as session:
        await session.execute(text(rule))
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    assert await accounts(world, mailing, readers) == (0, 0)
    assert [row.relay_id for row in await rows(world, mailing)].count(None) == 1


async def test_a_mailing_that_cannot_be_composed_pauses_and_no_other_waits_for_it(world: World) -> None:
    daily, weekly = await crowd(world, 5), await crowd(world, 5, "weekly", "w")
    async with world.db.transaction() as session:
        broken = update(Edition).where(Edition.slug == "daily").values(sender="no address")  # type: ignore[arg-type]
        await session.execute(broken)
    bad = await world.issue()
    assert (await world.api.post(f"/issues/{bad}/send")).status_code == 422
    bad, good = await world.send(bad, force=True), await world.send(await world.issue("weekly"))
    async with world.working():
        await world.until(good)
        shown = await world.until(bad, "paused")
        assert "cannot be composed" in shown["problem"]
        assert sorted(world.sink.recipients()) == sorted(weekly)
        async with world.db.transaction() as session:
            await session.execute(update(Edition).where(Edition.slug == "daily").values(sender=None))  # type: ignore[arg-type]
        await world.api.post(f"/mailings/{bad}/resume")
        await world.until(bad)
    assert sorted(world.sink.recipients()) == sorted(daily + weekly)


async def test_two_mailings_share_one_connection_fairly(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    relay = f"smtp+plain://127.0.0.1:{sink.port}?connections=1"
    async with house_at(tmp_path, empty_database, sink, relays=relay) as world:
        await crowd(world, 30)
        await crowd(world, 30, "weekly", "w")
        both = [await world.send(await world.issue()), await world.send(await world.issue("weekly"))]
        sink.script = at("connect", delay(0.3), times=1)
        await world.deliver(*both)
    order = sink.recipients()
    assert 8 <= sum(address.startswith("w") for address in order[:30]) <= 22


async def test_letters_with_a_relay_of_their_own_do_not_wait_for_issues(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    with Sink(script=at("connect", hang())) as stuck:
        relays = (
            f"smtp+plain://127.0.0.1:{stuck.port}?connections=2 "
            f"smtp+plain://127.0.0.1:{sink.port}?connections=1&lane=letters"
        )
        async with house_at(tmp_path, empty_database, sink, relays=relays) as world:
            await crowd(world, 30)
            await world.send(await world.issue())
            async with world.working(), asyncio.timeout(20):
                while stuck.connections < 2:
                    await asyncio.sleep(0.01)
                now = world.clock()
                data = {"editions": ["x"], "accent": "#000000", "accent_dark": "#ffffff", "action": "confirm"}
                async with world.db.transaction() as session:
                    session.add(
                        Letter(kind="confirm", address="new@example.com", language="zh", data=data,
                               created_at=now, due_at=now)
                    )  # fmt: skip
                world.house.wake.call()
                while not sink.mails:
                    await asyncio.sleep(0.01)
                stuck.hang_up()
    assert sink.recipients() == ["new@example.com"]


async def test_a_problem_that_a_dead_worker_left_behind_is_taken_off(world: World) -> None:
    await crowd(world, 20)
    mailing = await world.send(await world.issue())
    world.sink.script = at("dot", delay(0.2))
    async with world.db.transaction() as session:
        await session.execute(update(Mailing).values(problem="The relay cannot be reached."))
    async with world.working(), asyncio.timeout(20):
        while (shown := await world.mailing(mailing))["problem"]:
            await asyncio.sleep(0.01)
        assert shown["state"] != "finished"
        world.sink.script = None
        await world.until(mailing)


async def test_a_relay_with_much_to_say_about_itself_fits_the_books(world: World) -> None:
    readers = await crowd(world, 3)
    long = "x9" * 60
    world.sink.script = at("dot", reply(f"250 2.0.0 Ok: queued as {long} \u0000\u2028" + "y" * 400))
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    assert await accounts(world, mailing, readers) == (0, 0)
    for row in await rows(world, mailing):
        assert row.relay_id == long[:100]
        assert len(row.reply) <= 200
        assert row.reply.isprintable()


async def test_what_the_relay_repeats_of_an_address_is_not_kept(world: World) -> None:
    await crowd(world, 2)
    world.sink.script = lambda event: (
        reply(f"550 5.1.1 <{event.recipient}> is unknown") if event.stage == "rcpt" else None
    )
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    assert {row.reply for row in await rows(world, mailing)} == {"5.1.1 <‹address›> is unknown"}


async def test_an_address_that_a_relay_writes_in_its_own_way_is_not_kept(world: World) -> None:
    await world.reader("Lin@Bücher.example")
    world.sink.script = lambda event: (
        reply(f"550 5.1.1 <{event.recipient.upper()}> lin@bücher.example") if event.recipient else None
    )
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    (row,) = await rows(world, mailing)
    assert "lin@" not in row.reply.casefold()
    assert row.reply.startswith("5.1.1 <‹address›>")


def test_what_is_said_of_an_erased_address_stays_as_it_was_said() -> None:
    claim = Claim((1, 1), 1, 1, address="", language="zh", attempts=1)
    assert deliver.failed(claim, ValueError("no address"), START).reason == "no address"


async def test_a_restarted_worker_frees_at_once_what_it_held(world: World) -> None:
    readers = await crowd(world, 10)
    mailing = await world.send(await world.issue())
    world.sink.script = at("mail", hang())
    dying = asyncio.create_task(world.worker().run(asyncio.Event(), "test-0"))
    async with asyncio.timeout(20):
        while world.sink.verbs().count("MAIL") < 5:  # as many as it has connections
            await asyncio.sleep(0.01)
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)
    assert (await world.mailing(mailing))["in_flight"] >= 5
    world.sink.script = None
    async with world.db.transaction() as session:
        await workers.register(session, "test-0", world.clock())
    counts = await world.books_balance(mailing)
    assert (counts["in_flight"], counts["owed"]) == (0, 10)
    await world.deliver(mailing)
    assert await accounts(world, mailing, readers) == (0, 0)


async def test_a_worker_that_was_taken_for_dead_and_lives_is_found_when_it_dies_indeed(world: World) -> None:
    now = world.clock()
    async with world.db.transaction() as session:
        frozen = await workers.register(session, "a-0", now)
        other = await workers.register(session, "b-0", now + timedelta(seconds=60))
        await workers.free_lapsed(session, other, now + timedelta(seconds=60))
        assert (await session.get_one(Worker, frozen, populate_existing=True)).stopped_at
        await workers.beat(session, frozen, now + timedelta(seconds=61))
        now_ = now + timedelta(seconds=62)
        values = {
            "issue_id": 1,
            "subscriber_id": 1,
            "state": "in_flight",
            "attempts": 1,
            "due_at": now_,
            "provider": "",
        }
        await session.execute(text("PRAGMA defer_foreign_keys = ON"))
        issue = await world_mailing(session, now_)
        await session.execute(insert(delivery).values(**values, mailing_id=issue, worker_id=frozen))
        again = await workers.register(session, "a-0", now_)
        assert again != frozen
        assert (await session.execute(select(delivery.c.state))).scalar_one() == "owed"
        await session.rollback()


async def world_mailing(session: AsyncSession, now: Any) -> int:
    """Add a mailing of an issue that need not be there, and return its id."""
    one = Mailing(
        issue_id=1, state="sending", scheduled_at=now, max_lateness=60, time_to_live=60, created_at=now
    )
    session.add(one)
    await session.flush()
    return one.id or 0


async def test_a_worker_never_calls_itself_dead_however_the_clock_jumps(world: World) -> None:
    now = world.clock()
    async with world.db.transaction() as session:
        one = await workers.register(session, "a-0", now)
        assert await workers.free_lapsed(session, one, now + timedelta(days=1)) == 0
        assert (await session.get_one(Worker, one, populate_existing=True)).stopped_at is None


async def test_an_answer_lost_at_the_last_try_is_shown_and_not_tried_for_ever(world: World) -> None:
    await crowd(world, 1)
    mailing = await world.send(await world.issue())
    world.sink.script = at("dot", accept_then("reset"))
    async with world.working(), asyncio.timeout(20):
        while not world.sink.mails:
            await asyncio.sleep(0.01)
        while (await world.mailing(mailing))["in_flight"]:
            await asyncio.sleep(0.01)
    async with world.db.transaction() as session:
        await session.execute(update(delivery).values(attempts=23, due_at=world.clock()))
    async with world.working():
        shown = await world.until(mailing)
    assert shown["uncertain"] == 1
    assert len(world.sink.mails) == 2


@pytest.mark.parametrize("words", ["database or disk is full", "disk I/O error"])
def test_a_full_disk_is_told_in_a_sentence(words: str) -> None:
    from app.core.outage import explain

    error = OperationalError("INSERT", {}, Exception(words))
    assert explain(error).startswith("The disk that holds the database is full")

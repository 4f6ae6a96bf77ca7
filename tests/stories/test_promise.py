"""What is promised of a mailing: whom it is for, once each, balanced books, and an editor who is obeyed."""

import asyncio
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.delivery import ledger, mailings
from app.delivery.ledger import Audience
from app.delivery.models import Delivery, Letter, Mailing
from app.flows import account
from app.subscribers import audience
from app.subscribers.models import Subscriber
from tests.crowd import accounts, crowd, patiently, rows
from tests.sink import at, delay, reply
from tests.web import reading
from tests.world import START, World, recipients

SLOW = at("dot", delay(0.03))


async def act(world: World, mailing_id: int, word: str, status: int = 200) -> dict[str, Any]:
    """Pause, resume, cancel or retry a mailing by the API."""
    answer = await world.api.post(f"/mailings/{mailing_id}/{word}")
    assert answer.status_code == status, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def some_sent(world: World, more: int = 5) -> None:
    """Wait until the sink has a few mails more."""
    wanted = len(world.sink.mails) + more
    async with asyncio.timeout(20):
        while len(world.sink.mails) < wanted:
            await asyncio.sleep(0.005)


async def landed(world: World, mailing_id: int) -> dict[str, Any]:
    """Wait until nothing of a mailing is in the air."""
    async with asyncio.timeout(20):
        while (shown := await world.mailing(mailing_id))["in_flight"]:
            await asyncio.sleep(0.02)
    await world.books_balance(mailing_id)
    return shown


async def test_fifty_calls_to_send_at_once_make_one_mailing(world: World) -> None:
    readers = await crowd(world, 20)
    issue = await world.issue()
    headers: list[dict[str, str]] = [{"Idempotency-Key": "one"}, {}]
    calls = [world.api.post(f"/issues/{issue}/send", headers=headers[n % 2]) for n in range(50)]
    answers = await asyncio.gather(*calls)
    assert {answer.status_code for answer in answers} <= {200, 202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    async with world.db.reading() as session:
        assert (await session.execute(select(func.count()).select_from(Mailing))).scalar_one() == 1
    mailing = answers[0].json()["id"]
    await world.deliver(mailing)
    assert await world.send(issue) == mailing
    await world.deliver(mailing)
    assert await accounts(world, mailing, readers) == (0, 0)


async def test_who_joins_after_the_cutoff_is_not_in_and_who_leaves_before_the_claim_gets_none(
    world: World,
) -> None:
    await crowd(world, 3)
    leaver = await world.reader("leaver@example.com", "daily")
    mailing = await world.send(await world.issue())
    world.clock.forward(seconds=1)
    await world.reader("late@example.com", "daily")
    async with world.db.transaction() as session:
        who = (await session.scalars(select(Subscriber).where(Subscriber.id == leaver))).one()  # type: ignore[arg-type]
        who.state = "ended"
    await world.deliver(mailing)
    assert recipients(world.sink.mails) == ["r0@example.com", "r1@example.com", "r2@example.com"]


async def test_who_leaves_between_the_snapshot_and_the_claim_is_withdrawn(world: World) -> None:
    await crowd(world, 30)
    world.sink.script = at("dot", delay(0.05))
    leaver = await world.reader("leaver@example.com", "daily")
    mover = await world.reader("mover@example.com", "daily")
    mailing = await world.send(await world.issue())
    async with world.working():
        await some_sent(world, 2)
        async with world.db.transaction() as session:
            await session.execute(
                update(Subscriber).where(Subscriber.id == leaver).values(state="ended")  # type: ignore[arg-type]
            )
            await session.execute(
                update(Subscriber).where(Subscriber.id == mover).values(address="moved@example.com")  # type: ignore[arg-type]
            )
        shown = await world.until(mailing)
    assert (shown["audience"], shown["sent"], shown["withdrawn"]) == (32, 31, 1)
    got = world.sink.recipients()
    assert "moved@example.com" in got
    assert not {"leaver@example.com", "mover@example.com"} & set(got)
    await world.books_balance(mailing)


async def test_the_books_balance_at_every_look_and_nothing_is_finished_while_a_row_is_open(
    world: World,
) -> None:
    readers = await crowd(world, 80)
    seen = 0

    def script(event: Any) -> Any:
        nonlocal seen
        seen += event.stage == "rcpt"
        busy, gone = reply("450 4.2.1 Busy"), reply("550 5.1.1 Unknown")
        return {3: busy, 5: gone}.get(seen % 9) if event.stage == "rcpt" else None

    world.sink.script = script
    mailing = await world.send(await world.issue())
    looks = 0
    async with world.working():
        waiting = asyncio.create_task(patiently(world, mailing))
        while not waiting.done():
            # The state first: what finishes between two looks must not be held against an older count.
            state = (await world.mailing(mailing))["state"]
            counts = await world.books_balance(mailing)
            assert state != "finished" or not counts["owed"] + counts["deferred"] + counts["in_flight"]
            looks += 1
            await asyncio.sleep(0)
        shown = await waiting
    assert looks > 3
    assert shown["sent"] + shown["refused"] == 80
    assert shown["refused"] > 0
    assert len(world.sink.mails) == shown["sent"]
    assert set(world.sink.recipients()) <= set(readers)


async def test_a_paused_mailing_stops_with_what_is_in_the_air_and_goes_on_where_it_stopped(
    world: World,
) -> None:
    readers = await crowd(world, 60)
    world.sink.script = SLOW
    mailing = await world.send(await world.issue())
    async with world.working():
        await some_sent(world)
        assert (await act(world, mailing, "pause"))["state"] == "paused"
        before = len(world.sink.mails)
        shown = await landed(world, mailing)
        assert (shown["state"], shown["problem"]) == ("paused", "paused by an editor")
        assert shown["owed"] > 0
        assert len(world.sink.mails) == shown["sent"] <= before + 2 * 5  # what had been claimed by then
        assert (await act(world, mailing, "pause"))["state"] == "paused"
        assert (await act(world, mailing, "resume"))["state"] == "sending"
        assert (await act(world, mailing, "resume"))["problem"] is None
        await world.until(mailing)
        await act(world, mailing, "pause", 409)
    assert await accounts(world, mailing, readers) == (0, 0)


async def test_a_cancelled_mailing_takes_back_what_is_left_and_a_new_send_owes_it_again(world: World) -> None:
    readers = await crowd(world, 60)
    world.sink.script = SLOW
    issue = await world.issue()
    mailing = await world.send(issue)
    async with world.working(), asyncio.timeout(30):
        await some_sent(world)
        assert (await act(world, mailing, "cancel"))["owed"] == 0
        await landed(world, mailing)
        while (shown := await world.mailing(mailing))["owed"]:
            await asyncio.sleep(0.02)
        assert (shown["state"], shown["sent"] + shown["withdrawn"]) == ("cancelled", 60)
        assert shown["sent"] == len(world.sink.mails) < 60
        await act(world, mailing, "resume", 409)
        world.clock.forward(hours=1)
        late = await world.reader("late@example.com", "daily")
        assert late
        assert await world.send(issue) == mailing
        await world.until(mailing)
    assert await accounts(world, mailing, readers) == (0, 0)


async def test_what_was_in_the_air_when_its_mailing_was_cancelled_and_comes_back_is_withdrawn(
    world: World,
) -> None:
    await crowd(world, 5)
    world.sink.script = at("rcpt", delay(0.3, reply("450 4.2.1 Busy")))
    mailing = await world.send(await world.issue())
    async with world.working(), asyncio.timeout(20):
        while (await world.mailing(mailing))["in_flight"] < 5:
            await asyncio.sleep(0.01)
        await act(world, mailing, "cancel")
        while (shown := await world.mailing(mailing))["withdrawn"] < 5:
            await asyncio.sleep(0.02)
    assert (shown["state"], shown["deferred"]) == ("cancelled", 0)
    await world.books_balance(mailing)


async def test_a_mailing_cancelled_while_its_audience_is_counted_owes_no_more(world: World) -> None:
    await crowd(world, 4)
    mailing = await world.send(await world.issue())
    await act(world, mailing, "cancel")
    async with world.db.transaction() as session:
        now = world.clock()
        readers = partial(audience.between, audience.readers_of(1, now))
        whose = Audience(audience.choosers_of(1, now), readers)
        assert not await ledger.enlist(session, mailing, whose, now)
    assert sum((await world.books_balance(mailing)).values()) == 0
    assert (await world.mailing(mailing))["state"] == "cancelled"


async def test_a_scheduled_mailing_goes_at_its_time_to_those_who_are_readers_then(world: World) -> None:
    await world.reader("early@example.com", "daily")
    issue, moment = await world.issue(), START + timedelta(hours=8)
    mailing = await world.send(issue, at=moment.isoformat())
    async with world.working(), asyncio.timeout(20):
        world.clock.forward(hours=7)
        world.house.wake.call()
        assert (await world.mailing(mailing))["state"] == "scheduled"
        await world.reader("between@example.com", "daily")
        world.clock.forward(minutes=61)
        await world.reader("late@example.com", "daily")
        world.house.wake.call()
        await world.until(mailing)
    assert recipients(world.sink.mails) == ["between@example.com", "early@example.com"]


async def test_a_mailing_that_cannot_start_pauses_and_keeps_no_other_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.reader("r@example.com", "daily", "weekly")
    moment = (START + timedelta(hours=8)).isoformat()
    broken, sound = [await world.send(await world.issue(name), at=moment) for name in ("daily", "weekly")]
    start = mailings.start

    async def fails(session: AsyncSession, mailing_id: int, *when: datetime) -> bool:
        if mailing_id == broken:
            raise RuntimeError("a fault of ours")
        return await start(session, mailing_id, *when)

    monkeypatch.setattr(mailings, "start", fails)
    world.clock.forward(hours=8, minutes=1)
    await world.deliver(sound)
    shown = await world.mailing(broken)
    assert (shown["state"], shown["problem"]) == ("paused", "it cannot start: RuntimeError")
    assert recipients(world.sink.mails) == ["r@example.com"]
    monkeypatch.undo()
    assert (await act(world, broken, "resume"))["state"] in ("scheduled", "preparing", "sending")
    await world.deliver(broken)
    assert recipients(world.sink.mails) == ["r@example.com", "r@example.com"]


async def test_a_mailing_that_is_overdue_waits_to_be_told(world: World) -> None:
    readers = await crowd(world, 3)
    moment = START + timedelta(hours=8)
    mailing = await world.send(await world.issue(), at=moment.isoformat(), max_lateness=3600)
    world.clock.forward(hours=10)
    async with world.working():
        shown = await world.until(mailing, "paused")
        assert shown["problem"].startswith("overdue: it should have gone at 2026-10-26 08:00 UTC")
        assert not world.sink.mails
        await act(world, mailing, "resume")
        await world.until(mailing)
    assert await accounts(world, mailing, readers) == (0, 0)


async def test_a_scheduled_mailing_can_be_paused_cancelled_and_sent_after_all(world: World) -> None:
    readers = await crowd(world, 3)
    issue, moment = await world.issue(), START + timedelta(hours=8)
    mailing = await world.send(issue, at=moment.isoformat())
    await act(world, mailing, "pause")
    assert (await act(world, mailing, "resume"))["state"] == "scheduled"
    assert (await act(world, mailing, "cancel"))["state"] == "cancelled"
    assert (await world.api.get(f"/issues/{issue}")).json()["state"] == "draft"
    assert await world.send(issue) == mailing
    await world.deliver(mailing)
    assert await accounts(world, mailing, readers) == (0, 0)


async def test_what_outlives_its_time_expires_and_is_said(world: World) -> None:
    await crowd(world, 6)
    world.sink.script = at("rcpt", reply("450 4.2.1 Busy"), times=3)
    mailing = await world.send(await world.issue())
    async with world.working(), asyncio.timeout(20):
        while [(await world.mailing(mailing))[state] for state in ("sent", "deferred")] != [3, 3]:
            await asyncio.sleep(0.02)
        world.sink.script = at("rcpt", reply("450 4.2.1 Busy"))
        world.clock.forward(hours=21)
        world.house.wake.call()
        shown = await world.until(mailing)
    assert (shown["sent"], shown["expired"]) == (3, 3)
    assert {row.reason for row in await rows(world, mailing) if row.state == "expired"} <= {
        "its time to live was over"
    }


async def letter_owed(world: World) -> None:
    """Wait until a letter has been made, whatever became of it since."""
    async with asyncio.timeout(10):
        while True:
            async with world.db.reading() as session:
                if (await session.execute(select(func.count()).select_from(Letter))).scalar_one():
                    return
            await asyncio.sleep(0.005)


async def test_a_letter_waits_for_no_issue(world: World) -> None:
    await crowd(world, 200)
    world.sink.script = SLOW
    mailing = await world.send(await world.issue())
    async with world.working():
        await some_sent(world, 20)
        answer = await reading.ask(world, "new@example.com")
        assert answer.status_code == 200, answer.text
        await letter_owed(world)
        before = len(world.sink.mails)
        await world.until(mailing)
    assert world.sink.recipients().index("new@example.com") <= before + 3 * 5
    assert len(world.sink.mails) == 201


async def test_what_is_retried_has_all_its_tries_again(world: World) -> None:
    await world.reader("r@example.com", "daily")
    mailing = await world.send(await world.issue())
    async with world.db.transaction() as session:
        await world.enlist(session, mailing)
        spent = {"state": "expired", "attempts": 24}
        await session.execute(update(Delivery).values(spent))
        await account.reconcile(session, await mailings.get(session, mailing), world.clock())
    assert (await world.api.post(f"/mailings/{mailing}/retry")).status_code == 200
    world.sink.script = at("rcpt", reply("450 4.2.0 later"))
    async with world.working(), asyncio.timeout(10):
        while (await world.books_balance(mailing))["deferred"] == 0:
            await asyncio.sleep(0.02)

"""A relay that fails in every way it can, and mails that nobody could send: none lost, none doubled, all said."""

import asyncio
from datetime import timedelta
from email import message_from_bytes
from pathlib import Path
from typing import Literal

import pytest

from app.delivery import mailings
from app.delivery.models import Letter
from app.mail.smtp import Timeouts
from tests.crowd import accounts, crowd, gather, patiently, rows
from tests.ports import free_port
from tests.sink import (
    Action,
    Ending,
    Event,
    Script,
    Sink,
    Stage,
    accept_then,
    at,
    close,
    delay,
    hang,
    reply,
    reset,
)
from tests.world import World, house_at

CONNECTIONS = 5


@pytest.mark.parametrize("stage", ["connect", "mail", "rcpt", "data", "body", "dot"])
async def test_a_relay_that_closes_with_421_loses_and_doubles_nothing(world: World, stage: Stage) -> None:
    readers = await crowd(world, 25)
    world.sink.script = at(stage, reply("421 4.3.2 Not now"), times=4)
    mailing = await world.send(await world.issue())
    async with world.working():
        shown = await patiently(world, mailing)
    assert await accounts(world, mailing, readers) == (0, 0)
    assert (shown["sent"], shown["problem"]) == (25, None)


async def test_a_connection_that_ends_after_its_mail_is_replaced_at_once_and_costs_no_try(
    world: World,
) -> None:
    readers = await crowd(world, 30)
    used: set[int] = set()

    def script(event: Event) -> Action | None:
        second = event.stage == "mail" and event.connection in used
        if event.stage == "dot":
            used.add(event.connection)
        return reply("421 4.7.0 One mail a connection") if second else None

    world.sink.script = script
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    assert await accounts(world, mailing, readers) == (0, 0)
    assert world.sink.connections >= 30
    assert {row.attempts for row in await rows(world, mailing)} == {1}


async def test_a_relay_that_grants_fewer_connections_than_we_want_still_gets_everything(world: World) -> None:
    readers = await crowd(world, 60)
    world.sink.script = lambda event: (
        reply("421 4.7.0 Too many connections") if event.stage == "connect" and len(world.sink.open) > 2
        else delay(0.01) if event.stage == "dot" else None
    )  # fmt: skip
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    assert await accounts(world, mailing, readers) == (0, 0)
    assert {row.attempts for row in await rows(world, mailing)} == {1}


async def test_a_storm_of_421_is_met_with_fewer_and_fewer_tries(world: World) -> None:
    readers = await crowd(world, 30)
    world.sink.script = at("mail", reply("421 4.3.2 Going down"))
    mailing = await world.send(await world.issue())
    async with world.working() as worker, asyncio.timeout(30):
        while worker.dispatch.problem is None or "takes no mail" not in (
            (await world.mailing(mailing))["problem"] or ""
        ):
            await asyncio.sleep(0.02)
        gate = next(iter(worker.dispatch._issues.gates.values()))
        while gate.failures < 2:
            await asyncio.sleep(0.02)
        assert world.sink.connections <= CONNECTIONS + gate.failures
        assert (await world.mailing(mailing))["deferred"] == 0
        world.sink.script = None
        shown = await world.until(mailing)
    assert await accounts(world, mailing, readers) == (0, 0)
    assert shown["problem"] is None
    assert {row.attempts for row in await rows(world, mailing)} == {1}


async def test_a_worker_that_sends_does_not_take_back_what_another_says_of_a_mailing(world: World) -> None:
    await crowd(world, 150)
    world.sink.script = at("dot", delay(0.1))
    mailing = await world.send(await world.issue())
    said = "The relay elsewhere takes no mail: it is asleep"
    async with world.working() as worker, asyncio.timeout(60):
        while not worker._rates.by_mailing:
            await asyncio.sleep(0.02)
        async with world.db.transaction() as session:
            await mailings.report_problem(session, said)
        await worker.report()
        assert (await world.mailing(mailing))["problem"] == said
        world.sink.script = None
        assert (await world.until(mailing))["problem"] is None


async def test_greylisting_delays_every_reader_and_costs_none(world: World) -> None:
    readers = await crowd(world, 60)
    met: dict[str, float] = {}

    def script(event: Event) -> Action | None:
        if event.stage != "rcpt" or event.recipient is None:
            return None
        now = world.clock().timestamp()
        if now - met.setdefault(event.recipient, now) < 5 * 60:
            return reply("451 4.7.1 Greylisted, come back later")
        return None

    world.sink.script = script
    mailing = await world.send(await world.issue())
    async with world.working():
        shown = await patiently(world, mailing)
    assert await accounts(world, mailing, readers) == (0, 0)
    assert shown["sent"] == 60
    for row in await rows(world, mailing):
        assert 2 <= row.attempts <= 4


async def test_a_reader_put_off_is_not_tried_again_for_a_minute_or_more(world: World) -> None:
    await crowd(world, 3)
    world.sink.script = at("rcpt", reply("450 4.2.1 Busy"))
    mailing = await world.send(await world.issue())
    async with world.working(), asyncio.timeout(20):
        while (await world.mailing(mailing))["deferred"] < 3:
            await asyncio.sleep(0.02)
    for row in await rows(world, mailing):
        assert row.due_at - row.done_at >= timedelta(minutes=1)
        assert (row.code, row.attempts) == (450, 1)


@pytest.mark.parametrize("ending", [reset(), close()], ids=["RST", "FIN"])
async def test_a_connection_that_breaks_inside_a_mail_loses_and_doubles_nothing(
    world: World, ending: Action
) -> None:
    readers = await crowd(world, 40)
    seen = 0

    def script(event: Event) -> Action | None:
        nonlocal seen
        seen += event.stage == "body"
        return ending if event.stage == "body" and seen % 7 == 0 else None

    world.sink.script = script
    mailing = await world.send(await world.issue())
    async with world.working():
        shown = await patiently(world, mailing)
    assert await accounts(world, mailing, readers) == (0, 0)
    assert shown["sent"] == 40


def every_tenth(ending: Ending) -> tuple[list[int], Script]:
    """Accept every tenth mail without saying so, four times at most; the list counts how often."""
    events, seen = [0], 0

    def script(event: Event) -> Action | None:
        nonlocal seen
        seen += event.stage == "dot"
        if event.stage == "dot" and seen % 10 == 3 and events[0] < 4:
            events[0] += 1
            return accept_then(ending)
        return None

    return events, script


@pytest.mark.parametrize("ending", ["reset", "close", "hang"])
async def test_an_answer_lost_after_the_dot_is_sent_again_as_the_same_message(
    world: World, ending: Literal["reset", "close", "hang"]
) -> None:
    readers = await crowd(world, 40)
    events, world.sink.script = every_tenth(ending)
    mailing = await world.send(await world.issue())
    async with world.working():
        shown = await patiently(world, mailing)
    lost, doubled = await accounts(world, mailing, readers)
    assert (lost, shown["sent"]) == (0, 40)
    assert doubled <= events[0] == 4
    copies: dict[str, set[bytes]] = {}
    for mail in world.sink.mails:
        copies.setdefault(message_from_bytes(mail.data)["Message-ID"], set()).add(mail.data)
    assert len(copies) == 40
    assert all(len(same) == 1 for same in copies.values())


async def test_an_answer_lost_after_the_dot_is_held_where_the_mailing_says_so(world: World) -> None:
    readers = await crowd(world, 40)
    events, world.sink.script = every_tenth("reset")
    mailing = await world.send(await world.issue(), on_uncertain="hold")
    async with world.working():
        shown = await patiently(world, mailing)
    assert await accounts(world, mailing, readers) == (0, 0)
    assert (shown["state"], shown["uncertain"], shown["sent"]) == ("finished", events[0], 36)
    held = [row for row in await rows(world, mailing) if row.state == "uncertain"]
    assert all(row.reason for row in held)


async def test_a_relay_that_never_answers_a_dot_is_not_fed_the_whole_audience(world: World) -> None:
    await crowd(world, 60)
    world.sink.script = at("dot", accept_then("reset"))
    await world.send(await world.issue())
    async with world.working() as worker, asyncio.timeout(20):
        while worker.dispatch.problem is None:
            await asyncio.sleep(0.02)
        gate = next(iter(worker.dispatch._issues.gates.values()))
        while gate.failures < 2:
            await asyncio.sleep(0.02)
    assert len(world.sink.mails) <= CONNECTIONS + gate.failures


async def test_a_relay_that_is_down_costs_no_try_is_said_and_gets_everything_after(
    tmp_path: Path, empty_database: Path
) -> None:
    later = Sink(port=free_port())
    async with house_at(tmp_path, empty_database, later) as world:
        readers, weekly = await crowd(world, 50), await crowd(world, 5, "weekly", "w")
        mailing = await world.send(await world.issue())
        async with world.working(), asyncio.timeout(120):
            while not (shown := await world.mailing(mailing))["problem"] or shown["owed"] < 49:
                await asyncio.sleep(0.02)
            assert str(later.port) in shown["problem"]
            assert {row.attempts for row in await rows(world, mailing)} <= {0, 1}
            second = await world.send(await world.issue("weekly"))
            while not (await world.mailing(second))["problem"]:
                await asyncio.sleep(0.02)
            with later:
                for one in (mailing, second):
                    shown = await world.until(one, seconds=70)  # the next try is a minute away at most
                    assert (shown["problem"], shown["sent"]) == (None, shown["audience"])
                    assert {row.attempts for row in await rows(world, one)} == {1}
                assert await accounts(world, mailing, readers + weekly) == (0, 0)


async def test_a_worker_stops_at_once_while_its_relay_does_not_even_greet(world: World) -> None:
    await crowd(world, 20)
    world.sink.script = at("connect", hang())
    mailing = await world.send(await world.issue())
    async with asyncio.timeout(20), world.working(Timeouts(opening=600)):
        while world.sink.connections < CONNECTIONS:
            await asyncio.sleep(0.02)
    counts = await world.books_balance(mailing)
    assert counts["owed"] == 20
    assert {row.attempts for row in await rows(world, mailing)} == {0}
    world.sink.script = None
    await world.deliver(mailing)
    assert len(world.sink.mails) == 20


async def test_a_worker_that_is_told_to_stop_finishes_what_is_in_the_air(world: World) -> None:
    readers = await crowd(world, 60)
    world.sink.script = at("dot", delay(0.05))
    mailing = await world.send(await world.issue())
    for _ in range(3):
        before = len(world.sink.mails)
        async with world.working(), asyncio.timeout(20):
            while len(world.sink.mails) < before + 7:
                await asyncio.sleep(0.005)
        counts = await world.books_balance(mailing)
        assert counts["in_flight"] == 0
        assert counts["sent"] == len(world.sink.mails)
    world.sink.script = None
    await world.deliver(mailing)
    assert await accounts(world, mailing, readers) == (0, 0)


POISON = (
    "two words@example.com",
    "line\u2028end@example.com",
    "broken\r\nRCPT TO:<victim@example.com>",
    "a@example.com>,<b@example.com",
    "nobody",
    "无人@例子.公司\x00",
    "a@exa\u2028mple.com",
    "x" * 250 + "@e.example",
)


async def test_an_address_that_cannot_be_written_fails_alone(world: World) -> None:
    readers = await crowd(world, 50)
    await gather(world, POISON)
    mailing = await world.send(await world.issue())
    async with world.working():
        shown = await world.until(mailing)
    assert (shown["sent"], shown["failed"]) == (50, len(POISON))
    assert sorted(world.sink.recipients()) == sorted(readers)
    await world.books_balance(mailing)
    failed = [row for row in await rows(world, mailing) if row.state == "failed"]
    assert all(row.reason for row in failed)


async def test_a_mail_that_breaks_every_connection_stops_nobody_else(world: World) -> None:
    readers = await crowd(world, 50)
    poison = readers[17]
    world.sink.script = lambda event: reset() if event.stage == "body" and event.recipient == poison else None
    mailing = await world.send(await world.issue())
    async with world.working():
        shown = await patiently(world, mailing, minutes=241)
    assert (shown["sent"], shown["expired"]) == (49, 1)
    assert sorted({*world.sink.recipients(), poison}) == sorted(readers)
    assert len(world.sink.mails) == 49
    await world.books_balance(mailing)


async def test_a_letter_that_cannot_be_written_stops_no_other(world: World) -> None:
    now = world.clock()
    data = {"editions": ["x"], "accent": "#000000", "accent_dark": "#ffffff", "action": "confirm"}
    broken = [
        ("confirm", "two words@example.com", data),
        ("confirm", "a@example.com", {}),
        ("none", "b@x.example", data),
    ]
    async with world.db.transaction() as session:
        for kind, address, values in [*broken, ("confirm", "good@example.com", data)]:
            session.add(
                Letter(kind=kind, address=address, language="zh", data=values, created_at=now, due_at=now)
            )
    mails = await world.letters(1)
    assert [mail.recipient for mail in mails] == ["good@example.com"]


async def test_a_relay_that_refuses_our_sender_refuses_no_reader(world: World) -> None:
    readers = await crowd(world, 30)
    world.sink.script = at("mail", reply("550 5.7.1 Sender not allowed"))
    mailing = await world.send(await world.issue())
    async with world.working():
        async with asyncio.timeout(20):
            shown = await world.until(mailing, "paused")
        assert "refuses our sender: 550 5.7.1" in shown["problem"]
    counts = await world.books_balance(mailing)
    assert (counts["refused"], counts["sent"]) == (0, 0)
    world.sink.script = None
    await world.api.post(f"/mailings/{mailing}/resume")
    await world.deliver(mailing)
    assert await accounts(world, mailing, readers) == (0, 0)


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("550 Domain frequency limited", "deferred"),
        ("550 5.1.1 The mailbox does not exist", "refused"),
        ("554 5.7.1 We do not like this content", "refused"),
    ],
)
async def test_a_refusal_that_will_pass_is_not_for_good(world: World, said: str, state: str) -> None:
    await world.reader("r@qq.com", "daily")
    mailing = await world.send(await world.issue())
    world.sink.script = at("dot", reply(said), times=1)
    async with world.working(), asyncio.timeout(20):
        while (await world.books_balance(mailing))[state] == 0:
            await asyncio.sleep(0.02)
    world.clock.forward(minutes=10)
    async with world.working():
        await world.until(mailing)
    assert len(world.sink.mails) == (1 if state == "deferred" else 0)

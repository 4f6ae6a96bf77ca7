"""A relay that takes only so many mails on one connection: the next goes at once by a new one, and nobody is slowed."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from tests.crowd import accounts, patiently, rows
from tests.sink import Action, Event, Script, Stage, reply
from tests.world import World

TOO_MANY = "450 4.5.0 MI:DMC 163 smtp5, too many mails in this connection"


def enough_after(many: int, words: str, stage: Stage) -> Script:
    """A script that takes so many mails on each connection, and then answers so at one stage."""
    taken = Counter[int]()

    def script(event: Event) -> Action | None:
        if event.stage == stage and taken[event.connection] >= many:
            return reply(words)
        taken[event.connection] += event.stage == "dot"
        return None

    return script


@pytest.mark.parametrize(
    "words",
    [
        TOO_MANY,
        "421 4.3.2 Max message per connection reached, closing transmission channel",
        "452 4.3.2 Mail limit per session reached",
        "451 Too many messages in this session",
        "550 Too many messages on this connection",
    ],
)
@pytest.mark.parametrize("stage", ["mail", "rcpt", "data", "dot"])
async def test_a_mail_beyond_a_connection_s_limit_goes_at_once_by_a_new_one(
    world: World, stage: Stage, words: str
) -> None:
    people = [f"r{number}@qq.com" for number in range(40)]
    for address in people:
        await world.reader(address)
    world.sink.script = enough_after(3, words, stage)
    mailing = await world.send(await world.issue())
    await world.deliver(mailing)
    assert await accounts(world, mailing, people) == (0, 0)
    assert {row.attempts for row in await rows(world, mailing)} == {1}
    assert max(Counter(mail.connection for mail in world.sink.mails).values()) == 3
    assert (await world.web.get("/readyz")).json()["relays"][0]["providers"] == []


async def test_a_fresh_connection_that_says_so_at_its_first_mail_is_answered_with_patience(
    world: World,
) -> None:
    people = await world.readers(12)
    world.sink.script = enough_after(0, TOO_MANY, "rcpt")
    mailing = await world.send(await world.issue())
    async with world.working():
        async with asyncio.timeout(20):
            while (await world.mailing(mailing))["deferred"] < 12:
                await asyncio.sleep(0.02)
        assert world.sink.verbs().count("RCPT") == 12
        assert {row.attempts for row in await rows(world, mailing)} == {1}
        world.sink.script = None
        await patiently(world, mailing)
    assert await accounts(world, mailing, people) == (0, 0)


async def test_a_relay_that_closes_every_connection_so_is_left_alone_and_uses_up_no_try(world: World) -> None:
    people = await world.readers(12)
    world.sink.script = enough_after(0, "421 4.3.2 Too many messages in this session", "rcpt")
    mailing = await world.send(await world.issue())
    async with world.working():
        async with asyncio.timeout(20):
            while "takes no mail" not in ((await world.mailing(mailing))["problem"] or ""):
                await asyncio.sleep(0.02)
        assert world.sink.verbs().count("RCPT") <= 12
        world.sink.script = None
        await world.until(mailing)
    assert await accounts(world, mailing, people) == (0, 0)
    assert {row.attempts for row in await rows(world, mailing)} == {1}


async def test_a_relay_that_hands_on_a_provider_s_limit_tries_no_mail_more_than_twice_at_once(
    world: World,
) -> None:
    theirs, others = [f"r{number}@163.com" for number in range(5)], await world.readers(60)
    for address in theirs:
        await world.reader(address)
    is_theirs: Callable[[Event], bool] = lambda event: (event.recipient or "").endswith("@163.com")  # noqa: E731
    world.sink.script = lambda event: reply(TOO_MANY) if event.stage == "rcpt" and is_theirs(event) else None
    mailing = await world.send(await world.issue())
    async with world.working():
        async with asyncio.timeout(20):
            while (shown := await world.mailing(mailing))["deferred"] < 5 or shown["sent"] < 60:
                await asyncio.sleep(0.02)
        tries = Counter(line for _, line in world.sink.commands if line.endswith("@163.com>"))
        assert max(tries.values()) <= 2
        world.sink.script = None
        await patiently(world, mailing)
    assert await accounts(world, mailing, [*theirs, *others]) == (0, 0)

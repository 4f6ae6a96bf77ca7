"""A worker while its commits are late or their answers are lost: nothing is sent ahead of the books."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import Connection

from app.core.db import Database, Found
from app.core.errors import Unavailable
from app.mail.relay import Relay
from app.sending import dispatch, fence
from app.worker import Worker as Process
from tests.crowd import accounts, crowd, rows
from tests.sink import Action, Event, at, delay
from tests.world import QUICK, World


class Shaky(Database):
    """A database that loses the answer to some commits: what was done is done, and the caller does not know."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.loses, self.lost = 0, 0

    async def work(self, step: Callable[[Connection], Found]) -> Found:
        """Run a step as every database does; while `loses` is not 0, every third answer is lost."""
        found = await super().work(step)
        if self.loses:
            self.loses -= 1
            if self.loses % 3 == 0:
                self.lost += 1
                raise Unavailable("The database cannot be reached; try again in a moment.")
        return found


class Held(Database):
    """A database whose steps wait while `holds` is True, which any thread may say."""

    holds = False

    async def work(self, step: Callable[[Connection], Found]) -> Found:
        """Run a step as every database does, when it may."""
        while self.holds:
            await asyncio.sleep(0.001)
        return await super().work(step)


@asynccontextmanager
async def worker_on(world: World, db: Database) -> AsyncIterator[Process]:
    """Let a worker with a database of its own work for as long as the block."""
    made = Process(
        db, world.house.composer, world.house.wake, lambda url: Relay(url, "test.example", timeouts=QUICK),
        world.clock,
    )  # fmt: skip
    stop = asyncio.Event()
    running = asyncio.create_task(made.run(stop, "test-0"))
    try:
        async with asyncio.timeout(30):
            yield made
    finally:
        stop.set()
        await running
        await db.close()


@asynccontextmanager
async def held_up(world: World) -> AsyncIterator[tuple[Process, Held]]:
    """Let a worker work whose connections have all handed one mail over and sent the next one's envelope.

    Nothing of it is saved, and nothing is until its database holds no more.
    """
    held = Held(world.db.url)

    def hold(event: Event) -> Action | None:
        held.holds |= event.stage == "dot"
        return None

    world.sink.script = hold
    async with worker_on(world, held) as worker:
        try:
            while world.sink.verbs().count("DATA") < 10:
                await asyncio.sleep(0.01)
            assert len(world.sink.mails) == 5
            world.sink.script = None
            yield worker, held
        finally:
            world.sink.script, held.holds = None, False


async def test_no_message_is_begun_before_the_outcome_of_the_last_is_committed(world: World) -> None:
    readers = await crowd(world, 60)
    mailing = await world.send(await world.issue())
    async with held_up(world) as (_, held):
        await asyncio.sleep(0.3)
        assert len(world.sink.mails) == 5
        assert sum(row.state == "sent" for row in await rows(world, mailing)) == 0
        held.holds = False
        await world.until(mailing, seconds=30)
    assert await accounts(world, mailing, readers) == (0, 0)


@pytest.mark.parametrize("how", ["paused", "fenced", "stopping"])
async def test_a_mail_whose_envelope_is_at_the_relay_is_not_sent_where_it_must_not_be_any_more(
    world: World, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = await crowd(world, 60)
    mailing = await world.send(await world.issue())
    async with held_up(world) as (worker, held):
        if how == "paused":
            await world.api.post(f"/mailings/{mailing}/pause")
            await worker.dispatch.look()
        elif how == "fenced":
            monkeypatch.setattr(fence, "SILENCE", -1.0)
        else:
            worker.dispatch.stop()
        held.holds = False
        while (await world.mailing(mailing))["in_flight"]:
            await asyncio.sleep(0.01)
        assert len(world.sink.mails) == 5
        monkeypatch.undo()
    async with world.working():
        await world.api.post(f"/mailings/{mailing}/resume")
        await world.until(mailing, seconds=30)
    assert await accounts(world, mailing, readers) == (0, 0)


async def test_a_message_that_waited_long_for_a_commit_is_sent_on_another_connection(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = await crowd(world, 60)
    mailing = await world.send(await world.issue())
    async with held_up(world) as (_, held):
        await asyncio.sleep(0.3)
        monkeypatch.setattr(dispatch, "RECENT", 0.2)
        held.holds = False
        while len(world.sink.mails) < 10:
            await asyncio.sleep(0.001)
        monkeypatch.undo()
        await world.until(mailing, seconds=30)
    assert world.sink.verbs().count("DATA") == 65
    assert await accounts(world, mailing, readers) == (0, 0)
    assert max(row.attempts for row in await rows(world, mailing)) == 1


async def test_a_claim_whose_commit_was_never_answered_is_not_forgotten(world: World) -> None:
    readers = await crowd(world, 60)
    mailing = await world.send(await world.issue())
    shaky = Shaky(world.db.url)
    world.sink.script = at("dot", delay(0.01))
    async with worker_on(world, shaky):
        while len(world.sink.mails) < 5:
            await asyncio.sleep(0.01)
        shaky.loses = 6
        await world.until(mailing, seconds=30)
    assert shaky.lost == 2
    assert await accounts(world, mailing, readers) == (0, 0)

"""A mailing that nobody has worked on for too long asks first: the database may be a restored copy."""

import asyncio
from datetime import timedelta

import pytest

from tests.crowd import accounts, crowd
from tests.sink import at, delay
from tests.world import DAY, World


async def interrupted(world: World, hours: float) -> tuple[int, list[str]]:
    """Stop a worker in the middle of a mailing and let so many hours pass; returns the mailing and its readers."""
    readers = await crowd(world, 40)
    world.sink.script = at("dot", delay(0.05))
    mailing = await world.send(await world.issue())
    async with world.working(), asyncio.timeout(30):
        while len(world.sink.mails) < 5:
            await asyncio.sleep(0.01)
    assert (await world.mailing(mailing))["owed"]
    world.clock.forward(hours=hours)
    return mailing, readers


async def test_a_mailing_that_stood_still_for_longer_than_it_may_be_late_asks_and_then_goes_on(
    world: World,
) -> None:
    mailing, readers = await interrupted(world, hours=7)
    had = len(world.sink.mails)
    async with world.working():
        await world.until(mailing, "paused")
        shown = await world.mailing(mailing)
        assert "no worker since" in shown["problem"]
        assert len(world.sink.mails) == had
        await world.api.post(f"/mailings/{mailing}/resume")
        await world.until(mailing)
    assert await accounts(world, mailing, readers) == (0, 0)


@pytest.mark.parametrize("hours", [0, 5, -1])
async def test_a_shorter_pause_or_a_clock_set_back_needs_nobody(world: World, hours: float) -> None:
    mailing, readers = await interrupted(world, hours)
    async with world.working():
        await world.until(mailing)
    assert await accounts(world, mailing, readers) == (0, 0)


async def test_what_is_ordered_while_nobody_works_is_not_stale(world: World) -> None:
    mailing, _ = await interrupted(world, hours=7)
    async with world.working():
        await world.until(mailing, "paused")
    world.clock.forward(hours=7)
    await world.api.post(f"/mailings/{mailing}/resume")
    new = await world.send(await world.issue(day=DAY + timedelta(days=1)))
    async with world.working():
        await world.until(mailing)
        await world.until(new)
    assert [(await world.mailing(one))["sent"] for one in (mailing, new)] == [40, 40]
    assert len(world.sink.mails) == 80

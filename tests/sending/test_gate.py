"""What a worker waits for, and how it leaves."""

import asyncio

import pytest

from app.sending.gate import Patience


async def deaf(begun: asyncio.Event) -> None:
    """Wait for good, and for good again when cancelled."""
    begun.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.Event().wait()


async def test_a_wait_that_forgets_that_it_was_cancelled_keeps_no_worker_from_stopping() -> None:
    patience, begun = Patience(), asyncio.Event()
    waiting = asyncio.create_task(patience.lasting(deaf(begun)))
    await begun.wait()
    patience.end()
    async with asyncio.timeout(5):
        with pytest.raises(TimeoutError):
            await waiting


async def test_a_wait_begun_after_the_end_is_broken_off_too() -> None:
    patience, begun = Patience(), asyncio.Event()
    patience.end()
    async with asyncio.timeout(5):
        with pytest.raises(TimeoutError):
            await patience.lasting(deaf(begun))


async def test_a_wait_gives_what_it_waited_for_and_raises_what_went_wrong() -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise OSError("down")

    patience = Patience()
    assert await patience.lasting(asyncio.sleep(0, "here")) == "here"
    with pytest.raises(OSError, match="down"):
        await patience.lasting(fails())


async def test_who_is_cancelled_takes_the_wait_along() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def lasting() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.create_task(Patience().lasting(lasting()))
    await begun.wait()
    waiting.cancel()
    async with asyncio.timeout(5):
        await ended.wait()


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_what_comes_when_nobody_waits_for_it_any_more_is_given_away(is_cancelled: bool) -> None:
    patience, begun, given = Patience(), asyncio.Event(), list[str]()

    async def forgetful() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "a connection"

    waiting = asyncio.create_task(patience.lasting(forgetful(), given.append))
    await begun.wait()
    if is_cancelled:
        waiting.cancel()
    else:
        patience.end()
    await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(5):
        while not given:
            await asyncio.sleep(0)
    assert given == ["a connection"]

"""The disk is full: nothing more is accepted or sent than can be written down, and all goes on when there is room."""

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.crowd import accounts, crowd
from tests.sink import at, delay
from tests.world import World

CONNECTIONS = 5


@contextmanager
def full(database: Path) -> Iterator[None]:
    """Let no file grow beyond what the database's log has now, as a full disk would."""
    log = database.with_name(database.name + "-wal")
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


async def unable(world: World, mailing: int) -> None:
    """Write until that fails: the log may have room that was written before."""
    async with asyncio.timeout(20):
        while True:
            for word in ("pause", "resume"):
                if (await world.api.post(f"/mailings/{mailing}/{word}")).status_code != 200:
                    return


async def test_a_full_disk_is_a_503_with_a_sentence_and_nothing_is_half_accepted(
    world: World, tmp_path: Path
) -> None:
    await crowd(world, 3)
    first, second = await world.issue(), await world.issue("weekly")
    mailing = await world.send(first)
    with full(tmp_path / "broadsheet.db"):
        await unable(world, mailing)
        answer = await world.api.post(f"/issues/{second}/send")
        assert answer.status_code == 503, answer.text
        assert answer.json()["detail"].startswith("The disk that holds the database is full")
        assert (await world.api.get(f"/issues/{second}")).json()["mailing_id"] is None
    await world.api.post(f"/mailings/{mailing}/resume")
    await world.deliver(mailing, await world.send(second))
    assert len(world.sink.mails) == 3


async def test_a_worker_on_a_full_disk_sends_no_more_and_goes_on_by_itself(
    world: World, tmp_path: Path
) -> None:
    readers = await crowd(world, 60)
    mailing = await world.send(await world.issue())
    world.sink.script = at("dot", delay(0.01))
    async with world.working() as worker:
        async with asyncio.timeout(20):
            while len(world.sink.mails) < 10:
                await asyncio.sleep(0.005)
        with full(tmp_path / "broadsheet.db"):
            async with asyncio.timeout(20):
                while not worker.dispatch._in_doubt:
                    await asyncio.sleep(0.005)
                at_first = len(world.sink.mails)
                for _ in range(50):
                    await asyncio.sleep(0.01)
            assert len(world.sink.mails) <= at_first + CONNECTIONS
            told = (await world.mailing(mailing))["sent"]
            assert len(world.sink.mails) - told <= CONNECTIONS
        await world.until(mailing, seconds=40)
    assert await accounts(world, mailing, readers) == (0, 0)

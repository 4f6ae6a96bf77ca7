"""Two worker processes on one PostgreSQL, one of which stands still for a while: nobody is lost, few are doubled."""

import asyncio
import signal
from datetime import UTC, datetime
from email import message_from_bytes
from pathlib import Path

from tests.crowd import accounts, crowd
from tests.mortal import Child, graveyard
from tests.programs import until
from tests.sink import Sink, at, delay
from tests.world import house_at

READERS = 150
CONNECTIONS = 5
LEASE = 3.0  # seconds; 30 in earnest


async def accepted(url: str, folder: Path, empty_database: Path, sink: Sink) -> None:
    """Migrate, and accept one mailing."""
    async with house_at(folder, empty_database, sink, database_url=url) as world:
        world.clock.moved = datetime.now(UTC) - world.clock()
        await crowd(world, READERS)
        await world.send(await world.issue())


async def counted(url: str, folder: Path, empty_database: Path, sink: Sink) -> tuple[int, int]:
    """Return how many were lost and doubled; the books balance, and a double is the same message."""
    async with house_at(folder, empty_database, sink, database_url=url) as world:
        found = await accounts(world, 1, [f"r{number}@example.com" for number in range(READERS)])
        assert (await world.mailing(1))["sent"] == READERS
    assert len({message_from_bytes(mail.data)["Message-ID"] for mail in sink.mails}) == READERS
    assert len({mail.data for mail in sink.mails}) == READERS
    return found


def test_a_worker_that_stands_still_for_longer_than_its_lease_doubles_one_mail_a_connection_at_most(
    tmp_path: Path, empty_database: Path, sink: Sink, postgres_url: str
) -> None:
    asyncio.run(accepted(postgres_url, tmp_path, empty_database, sink))
    sink.script = at("dot", delay(0.1))
    with graveyard() as here, graveyard() as there:
        first, second = (
            ground.start(postgres_url, sink.port, connections=CONNECTIONS, name=name, lease=LEASE)
            for ground, name in ((here, "here-0"), (there, "there-0"))
        )
        sink.wait(READERS // 5, seconds=30)
        first.kill(signal.SIGSTOP)
        # If it froze amid a transaction, the database ends that first, after 15 s.
        until(lambda: len(set(sink.recipients())) == READERS, seconds=60)
        first.kill(signal.SIGCONT)
        assert ended(first, second) == (0, 0)
    lost, doubled = asyncio.run(counted(postgres_url, tmp_path, empty_database, sink))
    assert lost == 0
    assert doubled <= CONNECTIONS


def ended(*children: Child) -> tuple[int, ...]:
    """Wait for all, and return their exit codes."""
    return tuple(child.ended() for child in children)

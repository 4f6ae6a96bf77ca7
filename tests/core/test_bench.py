"""The benches: a connection outlives its steps, and a server that is silent or gone holds nobody."""

import asyncio
import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession

from app.core.db import Database
from app.core.errors import Unavailable


def backend(connection: Connection) -> int:
    """Return the number of the server's process behind a connection."""
    number: int = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    return number


async def reading_backend(session: AsyncSession) -> int:
    """Return the number of the server's process that a story is told by."""
    number: int = (await session.execute(text("SELECT pg_backend_pid()"))).scalar_one()
    return number


async def test_steps_share_a_connection_and_one_that_is_lost_is_replaced(postgres_url: str) -> None:
    db = Database(postgres_url)
    first = await db.work(backend)
    assert await db.work(backend) == first
    async with db.transaction() as session:
        await (await session.connection()).exec_driver_sql(f"SELECT pg_terminate_backend({first})")
    with pytest.raises(Unavailable):
        await db.work(backend)
    assert await db.work(backend) != first
    await db.close()


async def test_who_reads_does_not_notice_that_an_idle_connection_was_lost(postgres_url: str) -> None:
    db = Database(postgres_url)
    first = await db.told(reading_backend)
    assert await db.told(reading_backend) == first
    async with db.transaction() as session:
        await session.execute(text(f"SELECT pg_terminate_backend({first})"))
    assert await db.told(reading_backend) != first
    await db.close()


@pytest.mark.parametrize("database", ["SQLite", "PostgreSQL"])
async def test_what_is_only_to_be_told_changes_nothing(
    request: pytest.FixtureRequest, tmp_path: Path, database: str
) -> None:
    on_file = database == "SQLite"
    db = Database(f"sqlite:///{tmp_path}/x.db" if on_file else request.getfixturevalue("postgres_url"))
    await db.work(lambda connection: connection.execute(text("CREATE TABLE thing (number INTEGER)")))

    async def change(session: AsyncSession) -> None:
        await session.execute(text("INSERT INTO thing VALUES (1)"))

    async def count(session: AsyncSession) -> int:
        number: int = (await session.execute(text("SELECT count(*) FROM thing"))).scalar_one()
        return number

    with pytest.raises((DBAPIError, Unavailable)):
        await db.told(change)
    assert await db.told(count) == 0
    await db.perform(change)
    assert await db.told(count) == 1
    await db.close()


async def test_who_is_cancelled_while_the_server_is_silent_leaves(postgres_url: str) -> None:
    db = Database(postgres_url)
    begun = threading.Event()

    def endless(connection: Connection) -> None:
        begun.set()
        connection.exec_driver_sql("SELECT pg_sleep(3600)")

    waiting = asyncio.ensure_future(db.work(endless))
    await asyncio.to_thread(begun.wait)
    await asyncio.sleep(0.1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(waiting, 60)
    assert await db.work(lambda connection: connection.exec_driver_sql("SELECT 1").scalar_one()) == 1
    await db.close()

"""The benches: a connection outlives its steps, and a server that is silent or gone holds nobody."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from datetime import datetime
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


async def test_who_reads_on_a_server_asks_for_no_transaction(postgres_url: str) -> None:
    db = Database(postgres_url)

    async def its_starts(session: AsyncSession) -> set[datetime]:
        return {(await session.execute(text("SELECT now()"))).scalar_one() for _ in range(2)}

    assert len(await db.told(its_starts)) == 2  # the start of a transaction, had there been one
    await db.close()


@pytest.mark.parametrize("way", ["told", "glance"])
@pytest.mark.parametrize("database", ["SQLite", "PostgreSQL"])
async def test_what_is_only_to_be_told_changes_nothing(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, way: str
) -> None:
    on_file = database == "SQLite"
    db = Database(f"sqlite:///{tmp_path}/x.db" if on_file else request.getfixturevalue("postgres_url"))
    await db.work(lambda connection: connection.execute(text("CREATE TABLE thing (number INTEGER)")))
    tell = getattr(db, way)

    async def change(session: AsyncSession) -> None:
        await session.execute(text("INSERT INTO thing VALUES (1)"))

    async def count(session: AsyncSession) -> int:
        number: int = (await session.execute(text("SELECT count(*) FROM thing"))).scalar_one()
        return number

    for _ in range(2):
        with pytest.raises((DBAPIError, Unavailable)):
            await tell(change)
        assert await tell(count) == 0
    await db.perform(change)
    assert set(await asyncio.gather(tell(count), tell(count))) == {1}
    await db.close()


async def test_a_glance_at_a_file_waits_for_no_thread_and_no_writer(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path}/x.db")
    await db.work(lambda connection: connection.execute(text("CREATE TABLE thing (number INTEGER)")))

    async def where(session: AsyncSession) -> str:
        await session.execute(text("SELECT count(*) FROM thing"))
        return threading.current_thread().name

    assert (await db.glance(where)).startswith("database")
    async with db.transaction() as session:
        await session.execute(text("INSERT INTO thing VALUES (1)"))
        assert await db.glance(where) == threading.main_thread().name
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


def add_thing(connection: Connection) -> threading.Thread:
    """Add a row, and return the thread in which that was done."""
    connection.exec_driver_sql("INSERT INTO thing VALUES (1)")
    return threading.current_thread()


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[Database]:
    """A file with a table of things."""
    db = Database(f"sqlite:///{tmp_path}/x.db")
    await db.work(lambda connection: connection.exec_driver_sql("CREATE TABLE thing (number INTEGER)"))
    yield db
    await db.close()


async def things(db: Database) -> int:
    """Return how many there are."""
    async with db.reading() as session:
        number: int = (await session.execute(text("SELECT count(*) FROM thing"))).scalar_one()
        return number


async def test_a_quick_step_on_a_file_is_done_at_once_and_saved_in_the_thread(file: Database) -> None:
    assert await file.work(add_thing) is threading.current_thread()
    assert await things(file) == 1


async def test_while_another_process_writes_a_quick_step_waits_and_the_loop_does_not(file: Database) -> None:
    with sqlite3.connect(file.url.removeprefix("sqlite:///"), isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(file.work(add_thing))
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert not waiting.done()
        other.execute("COMMIT")
    assert await waiting is not threading.current_thread()
    assert await file.work(add_thing) is threading.current_thread()
    assert await things(file) == 2


async def test_a_quick_step_that_fails_is_undone_and_the_next_one_works(file: Database) -> None:
    def fail(connection: Connection) -> None:
        add_thing(connection)
        connection.exec_driver_sql("SELECT nonsense")

    for _ in range(2):
        with pytest.raises(Unavailable):
            await file.work(fail)
        with pytest.raises(ZeroDivisionError):
            await file.work(lambda connection: add_thing(connection) and 1 / 0)
        assert await file.work(add_thing)
    assert await things(file) == 2


async def test_a_quick_step_whose_caller_is_cancelled_while_it_is_saved_is_saved(file: Database) -> None:
    done = asyncio.create_task(file.work(add_thing))
    await asyncio.sleep(0)  # the step is done, and the disk has been asked
    done.cancel()
    with pytest.raises(asyncio.CancelledError):
        await done
    assert await things(file) == 1
    await file.work(add_thing)
    assert await things(file) == 2

"""The bench on PostgreSQL: its connection outlives its steps, and a server that is silent or gone holds nobody."""

import asyncio
import threading

import pytest
from sqlalchemy import Connection

from app.core.db import Database
from app.core.errors import Unavailable


def backend(connection: Connection) -> int:
    """Return the number of the server's process behind a connection."""
    number: int = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
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

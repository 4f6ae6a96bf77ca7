"""Steps that are done together, each kept or undone by itself; and a story, which is told where steps are done."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.core import schema
from app.core.db import Database
from app.core.errors import Conflict, Unavailable
from app.subscribers import asks
from app.subscribers.models import Ask

NOW = datetime(2026, 10, 26, tzinfo=UTC)


async def asked(db: Database) -> list[bytes]:
    async with db.reading() as session:
        return sorted(await session.scalars(select(Ask.digest)))  # type: ignore[call-overload]


async def test_of_steps_taken_at_once_each_has_its_own_end(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path}/x.db")
    await schema.upgrade(db)

    def taken(number: int) -> "asyncio.Future[int]":
        def step(connection: Connection) -> int:
            asks.take(connection, bytes([number]), None, {}, NOW)
            if number % 3 == 0:
                raise Conflict(f"not {number}")
            return number

        return asyncio.ensure_future(db.together(step))

    ends = await asyncio.gather(*map(taken, range(9)), return_exceptions=True)
    assert [str(end) if isinstance(end, Conflict) else end for end in ends] == [
        "not 0", 1, 2, "not 3", 4, 5, "not 6", 7, 8,
    ]  # fmt: skip
    assert await asked(db) == [bytes([number]) for number in (1, 2, 4, 5, 7, 8)]
    await db.close()


async def test_a_database_that_cannot_take_steps_says_so_to_each(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path}/x.db")  # without tables

    def step(connection: Connection) -> None:
        asks.take(connection, b"x", None, {}, NOW)

    ends = await asyncio.gather(*(db.together(step) for _ in range(3)), return_exceptions=True)
    assert [type(end) for end in ends] == [Unavailable] * 3
    await db.close()


async def test_a_story_that_waits_for_something_else_is_refused_and_undone(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path}/x.db")
    await schema.upgrade(db)

    async def tell(session: AsyncSession) -> None:
        session.add(Ask(at=NOW, digest=b"x"))
        await session.flush()
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waits for something other"):
        await db.perform(tell)
    assert await asked(db) == []
    await db.close()

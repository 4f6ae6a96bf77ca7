"""The key of a database is kept by whoever starts first, however many programs start at once."""

import asyncio

import pytest

from app.core import schema
from app.core.db import Database
from app.core.errors import Misconfigured
from app.subscribers import suppression

OURS, ANOTHER = "a" * 64, "b" * 64


async def test_programs_that_start_at_once_agree_on_the_first_key(postgres_url: str) -> None:
    db = Database(postgres_url)
    await schema.upgrade(db)
    all_there = asyncio.Barrier(5)

    async def start(key: str) -> None:
        async with db.transaction() as session:
            await suppression.recognise_key(session, key)  # a connection is open, and there is no key yet
            await all_there.wait()
            await suppression.check_key(session, key)

    assert await asyncio.gather(*(start(OURS) for _ in range(5))) == [None] * 5
    with pytest.raises(Misconfigured):
        async with db.transaction() as session:
            await suppression.check_key(session, ANOTHER)
    await db.close()

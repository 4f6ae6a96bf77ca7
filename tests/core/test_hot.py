"""Hot statements: on both databases the same rows, the same counts, and errors that SQLAlchemy would raise."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, insert, select, update
from sqlalchemy.exc import IntegrityError

from app.core.db import Database, UTCDateTime
from app.core.hot import Columns, ForEach, Hot, among, given, instant

NOON = datetime(2026, 10, 26, 12, 0, tzinfo=UTC)
thing = Table(
    "thing",
    MetaData(),
    Column("shelf", Integer, primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("word", String(20), unique=True),
    Column("at", UTCDateTime),
)
KEY = ["shelf", "place"]


@pytest.fixture(params=["SQLite", "PostgreSQL"])
async def db(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    """Give a database in which six things stand on two shelves."""
    on_file = request.param == "SQLite"
    one = Database(f"sqlite:///{tmp_path}/things.db" if on_file else request.getfixturevalue("postgres_url"))
    rows = [
        {"shelf": shelf, "place": place, "word": f"{shelf}-{place}", "at": NOON}
        for shelf in (1, 2)
        for place in (1, 2, 3)
    ]

    def furnish(connection: Connection) -> None:
        thing.metadata.create_all(connection)
        connection.execute(insert(thing), rows)

    await one.work(furnish)
    yield one
    await one.close()


def its(columns: Columns) -> Any:
    return (thing.c.shelf == columns["shelf"]) & (thing.c.place == columns["place"])


def standing() -> ForEach:
    return ForEach(thing, KEY, lambda rows: select(thing.c.word, thing.c.at).where(its(rows)))


async def test_rows_are_read_by_their_keys_and_who_is_not_there_is_left_out(db: Database) -> None:
    read = standing()
    for keys, words in (([(1, 2)], ["1-2"]), ([(2, 3), (1, 1), (3, 1)], ["1-1", "2-3"]), ([(9, 9)], [])):
        found = await db.work(lambda connection, keys=keys: read.read(connection, keys))  # type: ignore[misc]
        assert sorted(row[0] for row in found) == words
        assert {instant(row[1]) for row in found} <= {NOON}


async def test_each_row_gets_its_own_values_and_the_changed_are_counted(db: Database) -> None:
    later = NOON + timedelta(minutes=5)
    moved = ForEach(
        thing,
        [*KEY, "word"],
        lambda rows: update(thing).where(its(rows)).values(word=rows["word"], at=given("at", UTCDateTime())),
    )
    for many in ([(1, 1, "a")], [(1, 2, None), (2, 1, "ü\u2028"), (7, 7, "nobody's")]):
        there = sum(shelf < 7 for shelf, _, _ in many)
        assert await db.work(lambda connection, many=many: moved.change(connection, many, at=later)) == there  # type: ignore[misc]
    found = await db.work(lambda connection: standing().read(connection, [(1, 1), (1, 2), (2, 1), (2, 2)]))
    assert {(row[0], instant(row[1])) for row in found} == {
        ("a", later), (None, later), ("ü\u2028", later), ("2-2", NOON),
    }  # fmt: skip


async def test_a_list_is_one_parameter(db: Database) -> None:
    def make(is_postgresql: bool) -> Any:
        which = among(thing.c.place, "places", is_postgresql)
        return select(thing.c.word).where(which, thing.c.at <= given("at", UTCDateTime()))

    chosen = Hot(make)
    for places, at, words in (([1, 3], NOON, 4), ([], NOON, 0), ([2], NOON - timedelta(seconds=1), 0)):
        found = await db.work(lambda connection, p=places, a=at: chosen.run(connection, places=p, at=a))  # type: ignore[misc]
        assert len(found) == words


async def test_what_the_driver_raises_is_raised_as_sqlalchemy_would_and_undoes_the_step(db: Database) -> None:
    renamed = ForEach(
        thing, [*KEY, "word"], lambda rows: update(thing).where(its(rows)).values(word=rows["word"])
    )
    with pytest.raises(IntegrityError) as raised:
        await db.work(lambda connection: renamed.change(connection, [(1, 1, "new"), (1, 2, "2-1")]))
    assert "2-1" not in str(raised.value.statement)
    found = await db.work(lambda connection: standing().read(connection, [(1, 1), (1, 2)]))
    assert {row[0] for row in found} == {"1-1", "1-2"}

"""The engine, one transaction at a time, and how times and constraints are kept in every table."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    CursorResult,
    DateTime,
    Dialect,
    Engine,
    Executable,
    MetaData,
    Table,
    create_engine,
    event,
    func,
    literal,
    make_url,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.types import TypeDecorator
from sqlmodel import SQLModel

from app.core.bench import PATIENCE, Bench
from app.core.errors import Unavailable
from app.core.outage import from_driver, told_plainly
from app.core.stories import Story, end_of

Found = TypeVar("Found")
Given = ParamSpec("Given")

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
SQLModel.metadata.naming_convention = NAMES
metadata: MetaData = SQLModel.metadata

# A process that freezes in mid-transaction must not stop the others for long (milliseconds; PostgreSQL only).
LIMITS = "-c lock_timeout=10000 -c statement_timeout=120000 -c idle_in_transaction_session_timeout=15000"
POSTGRESQL = {"options": LIMITS, "tcp_user_timeout": 30_000, "connect_timeout": 10}
PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={PATIENCE}", "foreign_keys=ON")


READ_ONLY: dict[str, Any] = {"postgresql_readonly": True, "read_only": True}


class UTCDateTime(TypeDecorator[datetime]):
    """An instant: aware in Python, UTC in the database (SQLite hands back naive values)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone is not an instant")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


@lru_cache(maxsize=64)
def stored(moment: datetime) -> str:
    """Return an instant as SQLite keeps it: UTC, without a zone."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


class Database:
    """One database and the ways to it: to change, to look, and to work fast, where a session would be slow."""

    def __init__(self, url: str) -> None:
        """Take `sqlite:///path` or `postgresql://…`; nothing is opened yet."""
        self.url = url
        self.engine, its_twin, reading = _engines(url)
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        # SQLite has one writer and no queue for it: waiting here is fair, waiting in the file is not.
        self._writer = asyncio.Lock() if self.is_sqlite else None
        self._bench = Bench(its_twin)
        self._reading_bench, self._glancing_bench = Bench(reading), Bench(reading)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncSession]:
        """Yield a session whose work is committed when the block ends, and undone when it raises.

        Raises Unavailable when the database cannot be reached or cannot take the write.
        """
        if self._writer is None:
            async with self._session(self.engine) as session, session.begin():
                yield session
            return
        async with self._writer, self._session(self.engine) as session, session.begin():
            yield session

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncSession]:
        """Yield a session in which the database itself refuses every change."""
        async with self._session(self.engine.execution_options(**READ_ONLY)) as session, session.begin():
            yield session

    async def told(self, story: Story[Found]) -> Found:
        """Return what a short story finds that only reads; it waits for nothing but its session.

        It is told in a thread of its own, so that it need not wait for its turn on the loop at every statement.
        """
        try:
            return await self._reading_bench.run(lambda connection: end_of(connection, story))
        except Unavailable:  # a connection that has stood idle may be one to a server that has gone since
            return await self._reading_bench.run(lambda connection: end_of(connection, story))

    async def glance(self, story: Story[Found]) -> Found:
        """Return what a story finds by a few quick statements, as `told` does; on SQLite on the loop.

        Beside a worker in the same process the thread would wait for the interpreter at every statement.
        """
        if self._writer is None:
            return await self.told(story)
        return await self._glancing_bench.look(lambda connection: end_of(connection, story))

    async def work(self, step: Callable[[Connection], Found]) -> Found:
        """Run a step of several quick statements in one transaction and return what it returned.

        Steps run one after the other: on PostgreSQL in a thread of their own, for a session waits for its turn on the
        loop at every answer; on SQLite, where a session changes threads at every statement, on the loop. Raises
        Unavailable as `transaction` does; one who is cancelled here leaves when the step has ended.
        """
        if self._writer is None:
            return await self._bench.run(step)
        async with self._writer:
            return await self._bench.run_here(step)

    async def perform(self, story: Story[Found]) -> Found:
        """Run what is written for a session; on SQLite in a thread, so it waits for nothing but its session."""
        if self._writer is not None:
            async with self._writer:
                return await self._bench.run(lambda connection: end_of(connection, story))
        async with self.transaction() as session:
            return await story(session)

    async def together(self, step: Callable[[Connection], Found]) -> Found:
        """Run a step in a transaction; on SQLite those that come at once share a commit, and each is undone alone.

        Who is cancelled here may have done it all the same.
        """
        if self._writer is None:
            with told_plainly():
                async with self.engine.begin() as connection:
                    return await connection.run_sync(step)
        told: asyncio.Future[Found] = self._bench.put(step)
        async with self._writer:
            if not told.done():  # else somebody before us took it along
                await self._bench.run_together()
        return await told

    @asynccontextmanager
    async def _session(self, engine: AsyncEngine) -> AsyncIterator[AsyncSession]:
        with told_plainly():
            async with AsyncSession(engine, expire_on_commit=False) as session:
                yield session

    async def close(self) -> None:
        """Give every connection back."""
        await self.engine.dispose()
        self._bench.close()
        self._reading_bench.close()
        self._glancing_bench.close()


def _engines(url: str) -> tuple[AsyncEngine, Engine, Engine]:
    """Return what makes the sessions, and what makes a bench's connection: to work with, and to read with.

    On PostgreSQL who reads on a bench says neither BEGIN nor COMMIT, each of which would be a round trip.
    """
    parsed, shared = make_url(url), {"json_serializer": _json, "hide_parameters": True}
    if parsed.get_backend_name() == "sqlite":
        url_of_sessions = parsed.set(drivername="sqlite+aiosqlite")
        sessions = create_async_engine(url_of_sessions, connect_args={"timeout": 10}, **shared)
        _prepared(sessions.sync_engine, _begin_sqlite)
        twin = create_engine(parsed, connect_args={"check_same_thread": False}, **shared)
        _prepared(twin, _begin_apart)
        return sessions, twin, twin.execution_options(**READ_ONLY)
    parsed = parsed.set(drivername="postgresql+psycopg")
    sessions = create_async_engine(parsed, pool_pre_ping=True, connect_args=POSTGRESQL, **shared)
    twin = create_engine(parsed, connect_args=POSTGRESQL, **shared)
    readers = POSTGRESQL | {"options": f"{LIMITS} -c default_transaction_read_only=on"}
    return sessions, twin, create_engine(parsed, connect_args=readers, isolation_level="AUTOCOMMIT", **shared)


def _prepared(engine: Engine, begin: Callable[[Any], None]) -> Engine:
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", begin)
    return engine


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _prepare_sqlite(connection: DBAPIConnection, _record: object) -> None:
    connection.isolation_level = None  # we say BEGIN ourselves, IMMEDIATE for writers
    cursor = connection.cursor()
    for pragma in PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Any) -> None:
    reading = connection.get_execution_options().get("read_only", False)
    connection.exec_driver_sql(f"PRAGMA query_only={'ON' if reading else 'OFF'}")
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def _begin_apart(connection: Any) -> None:
    """Begin on a bench, whose one connection either only reads or only writes."""
    if connection.get_execution_options().get("read_only", False):
        _begin_sqlite(connection)
        return
    statement = "BEGIN IMMEDIATE"
    with from_driver(connection, statement):
        connection.connection.driver_connection.execute(statement)


def is_postgresql(where: AsyncSession | Connection) -> bool:
    """Tell which of the two databases this is."""
    dialect = where.dialect if isinstance(where, Connection) else where.get_bind().dialect
    return dialect.name == "postgresql"


def moment(session: AsyncSession, now: datetime, ago: timedelta = timedelta()) -> ColumnElement[datetime]:
    """Return the time some while ago, as PostgreSQL has it, which all machines share; on SQLite as `now` has it."""
    return func.clock_timestamp() - ago if is_postgresql(session) else literal(now - ago, UTCDateTime())


def upsert(session: AsyncSession, table: Table) -> Any:
    """Return this database's INSERT for a table, the one that knows ON CONFLICT."""
    return insert_for(is_postgresql(session), table)


def insert_for(is_postgresql: bool, table: Table) -> Any:
    """Return PostgreSQL's or SQLite's INSERT for a table."""
    return (postgresql if is_postgresql else sqlite).insert(table)


async def run(
    session: AsyncSession, step: Callable[Concatenate[Connection, Given], Found], *given: Given.args,
    **named: Given.kwargs,
) -> Found:  # fmt: skip
    """Run a step of `Database.work` as a part of a session's transaction."""
    return await session.run_sync(lambda here: step(here.connection(), *given, **named))


async def changed(session: AsyncSession, statement: Executable) -> int:
    """Run a statement and return how many rows the database says it changed."""
    options = {"preserve_rowcount": True}  # psycopg forgets the count of INSERT … SELECT otherwise
    result = await session.execute(statement, execution_options=options)
    return cast("CursorResult[Any]", result).rowcount

"""A statement that every mail waits for: compiled once for each database, then handed to its driver as text."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    Executable,
    Text,
    bindparam,
    func,
    select,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeEngine

from app.core.db import is_postgresql, stored


class Hot:
    """A statement of which only the parameters change; SQLAlchemy's own way costs as much again as the database.

    `make` is told whether it is for PostgreSQL; its parameters are made by `given` and `among`.
    """

    def __init__(self, make: Callable[[bool], Executable]) -> None:
        self._make = make
        self._texts: dict[str, tuple[str, Sequence[str] | None, Mapping[str, Any]]] = {}

    def run(self, connection: Connection, /, **values: Any) -> list[tuple[Any, ...]]:
        """Execute it and return its rows, none where it returns none; instants and lists may be among the values."""
        text, order, fixed = self._text(connection)
        with _told(connection, text) as cursor:
            cursor.execute(text, _ordered(order, {**fixed, **_kept(connection, values)}))
            return cursor.fetchall() if cursor.description else []

    def each(self, connection: Connection, many: Iterable[Mapping[str, Any]]) -> list[int]:
        """Execute it for each of many, and return how many rows each has changed; psycopg sends all at once."""
        text, order, fixed = self._text(connection)
        given = [_ordered(order, {**fixed, **_kept(connection, dict(values))}) for values in many]
        with _told(connection, text) as cursor:
            if hasattr(cursor, "results"):  # psycopg's own
                cursor.executemany(text, given, returning=True)
                return [cursor.rowcount for _ in cursor.results()]
            counts: list[int] = []
            for values in given:
                cursor.execute(text, values)
                counts.append(cursor.rowcount)
            return counts

    def _text(self, connection: Connection) -> tuple[str, Sequence[str] | None, Mapping[str, Any]]:
        dialect = connection.dialect
        if dialect.name not in self._texts:
            statement: Any = self._make(is_postgresql(connection))
            compiled = statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
            self._texts[dialect.name] = (str(compiled), compiled.positiontup, compiled.params)
        return self._texts[dialect.name]


@contextmanager
def _told(connection: Connection, text: str) -> Iterator[Any]:
    """Give a cursor of the driver; what it raises is raised as SQLAlchemy would."""
    driver: Any = connection.dialect.dbapi
    try:
        yield connection.connection.cursor()
    except driver.Error as error:
        raise DBAPIError.instance(text, None, error, driver.Error, hide_parameters=True) from error


def _kept(connection: Connection, values: dict[str, Any]) -> dict[str, Any]:
    """Return values as the database takes them."""
    if connection.dialect.name != "sqlite":
        return values
    for name, value in values.items():
        if isinstance(value, list):
            values[name] = json.dumps(value)
        elif isinstance(value, datetime):
            values[name] = stored(value)
    return values


def _ordered(order: Sequence[str] | None, values: Mapping[str, Any]) -> Any:
    return tuple(map(values.__getitem__, order)) if order else values


def instant(value: datetime | str | None) -> datetime | None:
    """Return an instant of a row, which comes as the database keeps it."""
    read = datetime.fromisoformat(value) if isinstance(value, str) else value
    return read.replace(tzinfo=UTC) if read is not None and read.tzinfo is None else read


def given(name: str, kind: TypeEngine[Any]) -> BindParameter[Any]:
    """Return a parameter."""
    return bindparam(name, None, type_=kind)


def among(column: ColumnElement[Any], name: str, is_postgresql: bool) -> ColumnElement[bool]:
    """Return whether a column is one of many integers, which are one parameter: a list."""
    if is_postgresql:
        return column == func.any(given(name, ARRAY(BigInteger)))
    return column.in_(select(func.json_each(given(name, Text())).table_valued("value", name="given").c.value))

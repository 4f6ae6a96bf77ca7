"""A statement that every mail waits for: compiled once for each database, then handed to its driver as text."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    Executable,
    bindparam,
    func,
    select,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeEngine

from app.core.db import UTCDateTime, is_postgresql, stored


class Hot:
    """A statement of which only the parameters change; SQLAlchemy's own way costs as much again as the database.

    `make` is told whether it is for PostgreSQL; its parameters are made by `given` and `among`.
    """

    def __init__(self, make: Callable[[bool], Executable]) -> None:
        self._make = make
        self._texts: dict[str, _Text] = {}

    def run(self, connection: Connection, /, **values: Any) -> list[tuple[Any, ...]]:
        """Execute it and return its rows, none where it returns none; instants and lists may be among the values."""
        one = self._text(connection)
        with _told(connection, one.text) as cursor:
            cursor.execute(one.text, one.parameters(values))
            return cursor.fetchall() if cursor.description else []

    def each(self, connection: Connection, many: Iterable[dict[str, Any]]) -> list[int]:
        """Execute it for each of many, and return how many rows each has changed; psycopg sends all at once."""
        one = self._text(connection)
        given = [one.parameters(values) for values in many]
        if not given:
            return []
        with _told(connection, one.text) as cursor:
            if hasattr(cursor, "results"):  # psycopg's own
                cursor.executemany(one.text, given, returning=True)
                return [cursor.rowcount for _ in cursor.results()]
            return [cursor.execute(one.text, values).rowcount for values in given]

    def _text(self, connection: Connection) -> "_Text":
        dialect = connection.dialect
        if dialect.name not in self._texts:
            statement: Any = self._make(is_postgresql(connection))
            compiled = statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
            kinds = {name: type(bind.type) for name, bind in compiled.binds.items() if bind.value is None}
            wrote = {name: WRITTEN[kind] for name, kind in kinds.items() if kind in WRITTEN}
            self._texts[dialect.name] = _Text(
                str(compiled),
                tuple(compiled.positiontup or ()),
                {name: value for name, value in compiled.params.items() if value is not None},
                wrote if dialect.name == "sqlite" else {},
            )
        return self._texts[dialect.name]


# How SQLite is given what it has no type for.
WRITTEN: Mapping[type[TypeEngine[Any]], Callable[[Any], str]] = {UTCDateTime: stored, JSON: json.dumps}


@dataclass(frozen=True, slots=True)
class _Text:
    """A statement as a driver takes it: its parameters by their order, or by name where there is none."""

    text: str
    order: tuple[str, ...]
    fixed: Mapping[str, Any]
    written: Mapping[str, Callable[[Any], str]]

    def parameters(self, values: dict[str, Any]) -> Any:
        """Return the values as the driver takes them; the dict is ours from now on."""
        values |= self.fixed
        for name, write in self.written.items():
            values[name] = write(values[name])
        return [values[name] for name in self.order] if self.order else values


@contextmanager
def _told(connection: Connection, text: str) -> Iterator[Any]:
    """Give a cursor of the driver; what it raises is raised as SQLAlchemy would."""
    driver: Any = connection.dialect.dbapi
    try:
        yield connection.connection.cursor()
    except driver.Error as error:
        raise DBAPIError.instance(text, None, error, driver.Error, hide_parameters=True) from error


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
    return column.in_(select(func.json_each(given(name, JSON())).table_valued("value", name="given").c.value))

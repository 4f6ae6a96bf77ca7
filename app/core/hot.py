"""A statement that every mail waits for: compiled once for each database, then handed to its driver as text.

SQLAlchemy's own way costs as much again as the database. The driver is called as seldom as can be, too: SQLite's lets
go of the interpreter's lock at each row that it reads, and must win it back from the loop that sends.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    Executable,
    FromClause,
    Select,
    Table,
    bindparam,
    column,
    func,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.types import TypeEngine

from app.core.db import UTCDateTime, is_postgresql, stored

Rows = Sequence[Sequence[Any]]
Write = Callable[[Any], str]
# How SQLite is given what it has no type for.
WRITTEN: Mapping[type[TypeEngine[Any]], Write] = {UTCDateTime: stored, JSON: json.dumps}
ROWS = "the rows"  # stands for them in a statement that is made


class Hot:
    """A statement of which only the parameters change.

    `make` is told whether it is for PostgreSQL; its parameters are made by `given` and `among`. A statement may be
    about many `rows` at once, which it joins as a table that `those` has made.
    """

    def __init__(self, make: Callable[[bool], Executable], rows: FromClause | None = None) -> None:
        self._make, self._rows = make, rows
        self._fillings: dict[str, _ForSQLite | _ForPostgreSQL] = {}

    def read(self, connection: Connection, rows: Rows = (), /, **values: Any) -> Rows:
        """Return what it selects; instants and lists may be among the values."""
        with self._executed(connection, rows, values) as cursor:
            found: Rows = cursor.fetchall()
            return json.loads(found[0][0]) if connection.dialect.name == "sqlite" else found

    def change(self, connection: Connection, rows: Rows = (), /, **values: Any) -> int:
        """Return how many rows it has changed; instants may be among the values."""
        with self._executed(connection, rows, values) as cursor:
            return int(cursor.rowcount)

    @contextmanager
    def _executed(self, connection: Connection, rows: Rows, values: dict[str, Any]) -> Iterator[Any]:
        """Give a cursor of the driver; what it raises is raised as SQLAlchemy would."""
        name, driver = connection.dialect.name, cast(Any, connection.dialect.dbapi)
        if name not in self._fillings:
            statement = self._make(is_postgresql(connection))
            self._fillings[name] = _filling(statement, self._rows, connection)
        words, parameters = self._fillings[name].filled(rows, values)
        try:
            cursor = connection.connection.cursor()
            cursor.execute(words, parameters)
            yield cursor
        except driver.Error as error:
            raise DBAPIError.instance(words, None, error, driver.Error, hide_parameters=True) from error


@dataclass(frozen=True, slots=True)
class _ForSQLite:
    """A statement in two parts, between which the marks of its rows stand; each has the names of its parameters."""

    parts: tuple[str, str]
    names: tuple[Sequence[str], Sequence[str]]
    fixed: Mapping[str, Any]
    written: Mapping[str, Write]  # how its parameters are given to it
    columns: Sequence[Write | None]  # how those of its rows are

    def filled(self, rows: Rows, values: dict[str, Any]) -> tuple[str, Any]:
        """Return text and parameters for these rows and values; the dict is ours from now on."""
        values |= self.fixed
        for name, write in self.written.items():
            values[name] = write(values[name])
        marks = ", ".join([f"({', '.join('?' * len(self.columns))})"] * len(rows))
        its = [
            write(one) if write else one for row in rows for write, one in zip(self.columns, row, strict=True)
        ]
        before, after = self.names
        return marks.join(self.parts), [
            *(values[name] for name in before),
            *its,
            *(values[name] for name in after),
        ]


@dataclass(frozen=True, slots=True)
class _ForPostgreSQL:
    """A statement whose parameters have names, those of its rows among them: each column is one array."""

    text: str
    fixed: Mapping[str, Any]
    columns: Sequence[str]

    def filled(self, rows: Rows, values: dict[str, Any]) -> tuple[str, Any]:
        """Return text and parameters for these rows and values; the dict is ours from now on."""
        arrays = dict(zip(self.columns, map(list, zip(*rows, strict=True)), strict=True))
        return self.text, {**values, **self.fixed, **arrays}


def _filling(statement: Any, rows: FromClause | None, connection: Connection) -> _ForSQLite | _ForPostgreSQL:
    """Compile a statement for the database of a connection."""
    dialect, columns = connection.dialect, list(rows.c) if rows is not None else []
    compiled = statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
    fixed = {name: value for name, value in compiled.params.items() if value is not None}
    names = [one.name for one in columns]
    before, _, after = str(compiled).partition(ROWS)
    if is_postgresql(connection):
        arrays = ", ".join(f"%({one.name})s::{one.type.compile(dialect)}[]" for one in columns)
        its = f"SELECT * FROM unnest({arrays}) AS given({', '.join(names)})" if names else ""
        return _ForPostgreSQL(f"{before}{its}{after}", fixed, names)
    if isinstance(statement, Select):  # all rows as one
        found = ", ".join(one.name for one in statement.selected_columns)
        before = f"SELECT json_group_array(json_array({found})) FROM ({before}"
        before, after = (before, f"{after})") if names else (f"{before})", "")
    if names:
        its = ", ".join(f"column{number} AS {name}" for number, name in enumerate(names, 1))
        before, after = f"{before}SELECT {its} FROM (VALUES ", f"){after}"
    kinds, many = {name: type(bind.type) for name, bind in compiled.binds.items()}, before.count("?")
    return _ForSQLite(
        (before, after),
        (compiled.positiontup[:many], compiled.positiontup[many:]),
        fixed,
        {name: WRITTEN[kind] for name, kind in kinds.items() if kind in WRITTEN and name not in fixed},
        [WRITTEN.get(type(one.type)) for one in columns],
    )


def those(target: Table, names: Iterable[str]) -> FromClause:
    """Return the table of a statement's rows: they have columns of another table."""
    return text(ROWS).columns(*(column(name, target.c[name].type) for name in names)).subquery("those")


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

"""A statement that every mail waits for: compiled once for each database, then handed to its driver as text.

SQLAlchemy's own way costs as much again as the database.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from json import dumps
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    Executable,
    Table,
    bindparam,
    column,
    func,
    select,
    text,
)
from sqlalchemy.types import TypeEngine

from app.core.db import UTCDateTime, is_postgresql, stored
from app.core.outage import from_driver

Rows = Sequence[Sequence[Any]]
Columns = Mapping[str, ColumnElement[Any]]
Write = Callable[[Any], str]

# How SQLite is given what it has no type for.
WRITTEN: Mapping[type[TypeEngine[Any]], Write] = {UTCDateTime: stored, JSON: dumps}
_ROWS = "the rows"  # stands for them while a statement is made


class Hot:
    """A statement of which only the parameters change.

    `make` is told whether it is for PostgreSQL; its parameters are made by `given` and `among`.
    """

    def __init__(self, make: Callable[[bool], Executable]) -> None:
        self._make = make
        self._texts: dict[str, _Text] = {}

    def run(self, connection: Connection, /, **values: Any) -> Rows:
        """Execute it and return its rows, none where it returns none; instants and lists may be among the values."""
        name = connection.dialect.name
        if name not in self._texts:
            self._texts[name] = _text(self._make(is_postgresql(connection)), connection)
        words = self._texts[name]
        with from_driver(connection, words.text):
            cursor = connection.connection.cursor()
            cursor.execute(words.text, words.parameters(values))
            return cursor.fetchall() if cursor.description else []


class ForEach:
    """A statement for each of many rows: SQLite gets it for one after the other, PostgreSQL once for all of them.

    The rows have columns of a table, which `make` is given: as parameters, or as columns to join.
    """

    def __init__(self, target: Table, names: Sequence[str], make: Callable[[Columns], Executable]) -> None:
        self._columns = [target.c[name] for name in names]
        self._make = make
        self._texts: dict[str, _Text] = {}

    def read(self, connection: Connection, rows: Rows, /) -> Rows:
        """Return what it selects for them."""
        words, found = self._text(connection), list[Sequence[Any]]()
        with from_driver(connection, words.text):
            cursor = connection.connection.cursor()
            for parameters in self._parameters(connection, words, rows, {}):
                cursor.execute(words.text, parameters)
                found += cursor.fetchall()
        return found

    def change(self, connection: Connection, rows: Rows, /, **values: Any) -> int:
        """Return how many rows of the database it has changed; instants may be among the values."""
        words = self._text(connection)
        with from_driver(connection, words.text):
            cursor = connection.connection.cursor()
            parameters = self._parameters(connection, words, rows, values)
            if len(parameters) == 1:
                cursor.execute(words.text, parameters[0])
            else:
                cursor.executemany(words.text, parameters)
            return int(cursor.rowcount)

    def _parameters(
        self, connection: Connection, words: "_Text", rows: Rows, values: dict[str, Any]
    ) -> Sequence[Any]:
        names = [one.name for one in self._columns]
        if is_postgresql(connection):
            arrays = zip(names, map(list, zip(*rows, strict=True)), strict=True)
            return [words.parameters({**values, **dict(arrays)})]
        return words.repeated(names, rows, values)

    def _text(self, connection: Connection) -> "_Text":
        name = connection.dialect.name
        if name not in self._texts:
            made = self._joining(connection) if is_postgresql(connection) else self._repeated(connection)
            self._texts[name] = made
        return self._texts[name]

    def _repeated(self, connection: Connection) -> "_Text":
        return _text(self._make({one.name: given(one.name, one.type) for one in self._columns}), connection)

    def _joining(self, connection: Connection) -> "_Text":
        rows = text(_ROWS).columns(*(column(one.name, one.type) for one in self._columns)).subquery("given")
        made = _text(self._make(dict(rows.c)), connection)
        arrays = [f"%({one.name})s::{one.type.compile(connection.dialect)}[]" for one in self._columns]
        names = ", ".join(one.name for one in self._columns)
        unnested = f"SELECT * FROM unnest({', '.join(arrays)}) AS rows({names})"
        return _Text(made.text.replace(_ROWS, unnested), None, made.fixed, {})


@dataclass(frozen=True, slots=True)
class _Text:
    """A statement as a driver takes it: its parameters by their order, or by name where there is none."""

    text: str
    order: Sequence[str] | None
    fixed: Mapping[str, Any]
    written: Mapping[str, Write]

    def parameters(self, values: Mapping[str, Any]) -> Any:
        """Return the values as the driver takes them."""
        return {**values, **self.fixed} if self.order is None else self.repeated((), [()], values)[0]

    def repeated(
        self, names: Sequence[str], rows: Rows, values: Mapping[str, Any]
    ) -> Sequence[Sequence[Any]]:
        """Return the parameters for each of many rows, whose columns have `names`; the values are the same for all."""
        common = {**values, **self.fixed}
        shared = [self.written[name](one) if name in self.written else one for name, one in common.items()]
        places = {name: place for place, name in enumerate((*names, *common))}
        order = [places[name] for name in self.order or ()]
        pick: Callable[[Sequence[Any]], Any] = itemgetter(*order) if order[1:] else list
        writes = [(places[name], write) for name, write in self.written.items() if name in names]
        found = list[Sequence[Any]]()
        for row in rows:
            those = [*row, *shared]
            for place, write in writes:
                those[place] = write(those[place])
            found.append(pick(those))
        return found


def _text(statement: Any, connection: Connection) -> _Text:
    compiled = statement.compile(dialect=connection.dialect, compile_kwargs={"render_postcompile": True})
    fixed = {name: value for name, value in compiled.params.items() if value is not None}
    if compiled.positiontup is None:
        return _Text(str(compiled), None, fixed, {})
    kinds = {name: type(bind.type) for name, bind in compiled.binds.items() if name not in fixed}
    written = {name: WRITTEN[kind] for name, kind in kinds.items() if kind in WRITTEN}
    return _Text(str(compiled), compiled.positiontup, fixed, written)


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

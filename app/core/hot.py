"""A statement that every mail waits for: compiled once for each database, then handed to its driver as text."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    BindParameter,
    Connection,
    Executable,
    Row,
    Select,
    Text,
    bindparam,
    cast,
    func,
    select,
)
from sqlalchemy.types import TypeEngine

from app.core.db import is_postgresql, stored


class Hot:
    """A statement of which only the parameters change; SQLAlchemy's own way costs as much again as the database.

    `make` is told whether it is for PostgreSQL; its parameters are made by `given` and `listed`.
    """

    def __init__(self, make: Callable[[bool], Executable]) -> None:
        self._make = make
        self._texts: dict[str, tuple[str, Sequence[str] | None, Mapping[str, Any]]] = {}

    def run(self, connection: Connection, /, **values: Any) -> Sequence[Row[Any]]:
        """Execute it and return its rows, none where it returns none; instants and lists may be among the values."""
        text, order, fixed = self._text(connection)
        is_text = connection.dialect.name == "sqlite"  # how it keeps an instant
        for name, value in values.items():
            if isinstance(value, list):
                values[name] = json.dumps(value)
            elif is_text and isinstance(value, datetime):
                values[name] = stored(value)
        values = {**fixed, **values}
        result = connection.exec_driver_sql(text, tuple(values[name] for name in order) if order else values)
        return result.all() if result.returns_rows else ()

    def _text(self, connection: Connection) -> tuple[str, Sequence[str] | None, Mapping[str, Any]]:
        dialect = connection.dialect
        if dialect.name not in self._texts:
            statement: Any = self._make(is_postgresql(connection))
            compiled = statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
            self._texts[dialect.name] = (str(compiled), compiled.positiontup, compiled.params)
        return self._texts[dialect.name]


def instant(value: datetime | str | None) -> datetime | None:
    """Return an instant of a row, which comes as the database keeps it."""
    read = datetime.fromisoformat(value) if isinstance(value, str) else value
    return read.replace(tzinfo=UTC) if read is not None and read.tzinfo is None else read


def given(name: str, kind: TypeEngine[Any]) -> BindParameter[Any]:
    """Return a parameter."""
    return bindparam(name, None, type_=kind)


def listed(name: str, is_postgresql: bool) -> Select[int]:
    """Return a parameter that is many integers, written as a JSON array: what `IN` is followed by."""
    many = given(name, Text())
    if is_postgresql:
        return select(func.json_array_elements_text(cast(many, JSON)).column_valued("given").cast(BigInteger))
    return select(func.json_each(many).table_valued("value", name="given").c.value)

"""What every command needs: the settings, an open database, and how to print."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import date, datetime
from functools import wraps
from typing import Any, TypeVar

import click

from app.core import config
from app.core.db import Database
from app.edge import LARGEST, House, require_current
from app.flows.compose import Composer
from app.subscribers import suppression

Result = TypeVar("Result")

WIDEST = 10_000  # columns, where no terminal sets a limit
number = click.IntRange(1, LARGEST)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON: one object, or one a line.")


@asynccontextmanager
async def house() -> AsyncIterator[House]:
    """Give a house on the database of the settings; raise Misconfigured for another schema or suppression key."""
    settings = config.load()
    db = Database(settings.database_url)
    try:
        await require_current(db)
        async with db.reading() as session:
            await suppression.recognise_key(session, settings.suppression_key)
        yield House(settings, db, Composer(settings))
    finally:
        await db.close()


def in_house(command: Callable[..., Awaitable[Result]]) -> Callable[..., Result]:
    """Make a command of a coroutine whose first argument is the house."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> Result:
        async def inside() -> Result:
            async with house() as at:
                return await command(at, *args, **kwargs)

        return asyncio.run(inside())

    return run


def show(value: Mapping[str, Any], as_json: bool) -> None:
    """Print one thing: JSON, or a name and a value a line."""
    if as_json:
        click.echo(dumped(value))
        return
    width = max(len(name) for name in value)
    for name, each in value.items():
        if each not in (None, ""):
            click.echo(f"{name:<{width}}  {plain(each)}")


def show_all(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], as_json: bool) -> None:
    """Print a list: one JSON object a line, or a table of these columns."""
    if as_json:
        for row in rows:
            click.echo(dumped(row))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(plain(row[column]) for column in columns))
    console = Console(markup=False, emoji=False)  # what people wrote is no markup of ours
    if not console.is_terminal:
        console.width = WIDEST
    console.print(table)


def dumped(value: Mapping[str, Any]) -> str:
    """Return one line of JSON."""
    return json.dumps(value, ensure_ascii=False, default=_written)


def plain(value: Any) -> str:
    """Return a value as a table shows it."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S UTC")
    if isinstance(value, list):
        return " ".join(str(each) for each in value)
    return str(value)


def _written(value: object) -> str:
    if isinstance(value, datetime | date):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not for JSON")

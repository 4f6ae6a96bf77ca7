"""Editions: list, add and edit them."""

import json
from collections.abc import Callable
from typing import Any

import click

from app.cli.desk import as_json, in_house, show, show_all
from app.core.errors import Invalid
from app.edge import House
from app.editors import audit
from app.issues import editions as catalogue
from app.issues import store
from app.issues.models import Edition

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
OPTIONS = (
    click.option("--name"),
    click.option("--label", help="The short name, as on the form: 日报"),
    click.option("--description"),
    click.option("--language"),
    click.option("--accent", help="Its colour by day: #b4371e"),
    click.option("--accent-dark", help="Its colour by night: #f08a6e"),
    click.option("--cadence", help="mon,tue,wed… or daily, or a day of the month: 1"),
    click.option("--timezone"),
    click.option("--sender", help="The address it is from."),
    click.option("--sender-name"),
    click.option("--list-id", help="Its lasting name; for ever, once mail has gone out."),
    click.option("--footer", help="Lines at the foot of its mails; an empty one takes them away."),
    click.option("--letters", help="Those that it sends: welcome, goodbye, both with a comma, or none."),
    click.option("--max-lateness", type=int, help="Seconds."),
    click.option("--time-to-live", type=int, help="Seconds."),
)


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command an option for each thing an edition has."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@click.group()
def editions() -> None:
    """The series that readers choose from."""


@editions.command("list")
@as_json
@in_house
async def list_editions(at: House, as_json: bool) -> None:
    """List the editions."""
    async with at.db.reading() as session:
        rows = [_row(at, one, as_json) for one in await store.editions(session)]
    show_all(rows, ("slug", "name", "language", "cadence", "sender"), as_json)


@editions.command()
@click.argument("slug")
@with_options
@as_json
@in_house
async def add(at: House, slug: str, as_json: bool, **given: Any) -> None:
    """Add an edition; forms and lists show it by themselves."""
    if not given["name"]:
        raise click.UsageError("an edition needs a --name")
    async with at.db.transaction() as session:
        row = await catalogue.add(session, slug, _read(given))
        audit.note(session, audit.COMMAND, "add", f"edition {slug}", at.now())
    show(_row(at, row, as_json), as_json)


@editions.command()
@click.argument("slug")
@with_options
@as_json
@in_house
async def edit(at: House, slug: str, as_json: bool, **given: Any) -> None:
    """Change an edition."""
    async with at.db.transaction() as session:
        row = await catalogue.edit(session, slug, _read(given))
        audit.note(session, audit.COMMAND, "edit", f"edition {slug}", at.now())
    show(_row(at, row, as_json), as_json)


def _read(given: dict[str, Any]) -> dict[str, Any]:
    if given["cadence"]:
        given = given | {"cadence": cadence(given["cadence"])}
    if given["letters"] is not None:
        words = given["letters"].replace(",", " ").split()
        given = given | {"letters": [] if words == ["none"] else words}
    return given


def cadence(written: str) -> dict[str, Any]:
    """Read `mon,wed,fri`, `daily`, a day of the month, or the JSON of a cadence. Raises Invalid."""
    words = written.lower().replace(",", " ").split()
    if words == ["daily"]:
        return {"weekdays": list(range(7))}
    if words and all(word in WEEKDAYS for word in words):
        return {"weekdays": sorted(WEEKDAYS.index(word) for word in words)}
    if len(words) == 1 and words[0].isdecimal():
        return {"day_of_month": int(words[0])}
    try:
        found = json.loads(written)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Invalid("A cadence is daily, weekdays such as mon,wed,fri, or a day of the month such as 1.")
    return found


def spoken(given: dict[str, Any]) -> str:
    """Return a cadence as `--cadence` takes it."""
    if "day_of_month" in given:
        return str(given["day_of_month"])
    days = given["weekdays"]
    return "daily" if len(days) == len(WEEKDAYS) else ",".join(WEEKDAYS[day] for day in days)


def _row(at: House, one: Edition, as_json: bool) -> dict[str, Any]:
    row = one.model_dump(exclude={"id", "position"})
    cadence = one.cadence if as_json else spoken(one.cadence)
    return row | {"cadence": cadence, "sender": at.composer.sender(one), "list_id": at.composer.list_id(one)}

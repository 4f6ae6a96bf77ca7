"""Suppressions: list, add and remove them."""

import click

from app.cli.desk import as_json, in_house, number, show, show_all
from app.edge import House
from app.editors import audit
from app.flows import suppress
from app.subscribers import suppression as store

SEEN = ("id", "address", "reason", "note", "since")


@click.group()
def suppressions() -> None:
    """Addresses that must not be mailed."""


@suppressions.command("list")
@as_json
@in_house
async def list_suppressions(at: House, as_json: bool) -> None:
    """List the suppressions."""
    after, rows = 0, []
    while True:
        async with at.db.reading() as session:
            page = await store.page(session, after, 500)
        rows += [one.model_dump(include=set(SEEN)) for one in page]
        if len(page) < 500:
            break
        after = page[-1].id or 0
    show_all(rows, SEEN, as_json)


@suppressions.command()
@click.argument("address")
@click.option("--note", default="", help="Why, for whoever asks later.")
@as_json
@in_house
async def add(at: House, address: str, note: str, as_json: bool) -> None:
    """Never mail an address again; what it is still owed is taken back."""
    async with at.db.transaction() as session:
        row = await suppress.by_editor(session, at.settings, address, note, at.now())
        audit.note(session, audit.COMMAND, "suppress", f"suppression {row.id}", at.now())
    show(row.model_dump(include=set(SEEN)), as_json)


@suppressions.command()
@click.argument("suppression_id", type=number)
@in_house
async def remove(at: House, suppression_id: int) -> None:
    """Lift a suppression; the reader stays as they are until they subscribe again."""
    async with at.db.transaction() as session:
        await store.remove(session, suppression_id)
        audit.note(session, audit.COMMAND, "lift", f"suppression {suppression_id}", at.now())
    click.echo("Lifted.")

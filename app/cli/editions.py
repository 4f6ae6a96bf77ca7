"""Editions: list them."""

import click

from app.cli.desk import as_json, in_house, show_all
from app.edge import House
from app.issues import store


@click.group()
def editions() -> None:
    """The series that readers choose from."""


@editions.command("list")
@as_json
@in_house
async def list_editions(at: House, as_json: bool) -> None:
    """List the editions."""
    async with at.db.reading() as session:
        rows = [
            {
                "slug": one.slug,
                "name": one.name,
                "language": one.language,
                "cadence": one.cadence,
                "sender": at.composer.sender(one),
                "list_id": at.composer.list_id(one),
                "accent": one.accent,
            }
            for one in await store.editions(session)
        ]
    show_all(rows, ("slug", "name", "language", "cadence", "sender"), as_json)

"""API keys: create, list, revoke."""

import click

from app.cli.desk import as_json, in_house, show, show_all
from app.edge import House
from app.editors import audit
from app.editors import keys as store
from app.editors.models import ApiKey


@click.group()
def keys() -> None:
    """API keys: a key is shown once, when it is made."""


@keys.command()
@click.argument("name")
@click.option("--scope", type=click.Choice([scope.value for scope in store.Scope]), default="editor")
@as_json
@in_house
async def create(at: House, name: str, scope: str, as_json: bool) -> None:
    """Make a key and print it."""
    async with at.db.transaction() as session:
        row, key = await store.create(session, name, store.Scope(scope), at.now())
        audit.note(session, audit.COMMAND, "make", f"key {row.id}", at.now())
    if as_json:
        show({"key": key}, as_json)
    else:
        click.echo(key)
        click.echo("It is shown only now; keep it where the program that uses it can read it.", err=True)


@keys.command("list")
@as_json
@in_house
async def list_keys(at: House, as_json: bool) -> None:
    """List the keys, without their secrets."""
    async with at.db.reading() as session:
        rows = [_row(one) for one in await store.all_keys(session)]
    show_all(rows, ("id", "name", "scope", "created_at", "last_used_at", "revoked_at"), as_json)


@keys.command()
@click.argument("key")
@in_house
async def revoke(at: House, key: str) -> None:
    """End a key at once, by its number or its handle."""
    async with at.db.transaction() as session:
        row = await store.revoke(session, key, at.now())
        audit.note(session, audit.COMMAND, "revoke", f"key {row.id}", at.now())
    click.echo(f"The key “{row.name}” is revoked.")


def _row(one: ApiKey) -> dict[str, object]:
    return {
        "id": one.id,
        "handle": one.handle,
        "name": one.name,
        "scope": one.scope,
        "created_at": one.created_at,
        "last_used_at": one.last_used_at,
        "revoked_at": one.revoked_at,
    }

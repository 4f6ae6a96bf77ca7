"""Readers: add, list, show, import, export, ask again, erase."""

import asyncio
import sys
from pathlib import Path
from typing import IO, Any

import click

from app.cli.desk import as_json, dumped, in_house, show, show_all
from app.core.errors import Invalid
from app.edge import House
from app.editors import audit
from app.flows import erase as erasing
from app.flows import exports, imports, readers, subscribe
from app.issues import store as issues
from app.subscribers import store
from app.subscribers.store import Origin

LARGEST = 1_000_000_000  # bytes of a file
SHOWN = 1_000  # rows read at a time
STOPPED = "It was stopped by hand. What was taken stays; hand the file in again for the rest."
SEEN = ("id", "email", "status", "reason", "editions", "source")

state = click.option("--state", type=click.Choice(["pending", "active", "paused", "ended"]))
edition = click.option("--edition", help="Only who has chosen this one.")


@click.group()
def subscribers() -> None:
    """Readers."""


@subscribers.command()
@click.argument("address")
@click.option("--editions", required=True, help="daily,weekly")
@click.option("--name", default="")
@click.option("--language", type=click.Choice(["zh", "en"]), default="zh")
@click.option("--source", default="editor", help="Where their consent came from.")
@click.option("--confirm", is_flag=True, help="Ask them by mail first.")
@as_json
@in_house
async def add(
    at: House, address: str, editions: str, name: str, confirm: bool, as_json: bool, **how: str
) -> None:
    """Add a reader who asked you for it."""
    request = subscribe.Request(address, slugs(editions), how["language"], Origin(how["source"]))
    async with at.db.transaction() as session:
        who = await readers.add(session, at.settings, request, name, confirm, at.now())
        told = (await readers.view(session, [who]))[0]
    show(told, as_json)


@subscribers.command("list")
@click.option("--q", default="", help="A part of the address.")
@state
@edition
@as_json
@in_house
async def list_subscribers(at: House, q: str, state: str | None, edition: str | None, as_json: bool) -> None:
    """List readers."""
    after = 0
    while True:
        async with at.db.reading() as session:
            edition_id = (await issues.edition(session, edition)).id if edition else None
            rows = await readers.view(session, await store.page(session, after, 500, q, state, edition_id))
            totals = await store.totals(session)
        if rows or not after:
            show_all(rows, SEEN, as_json)
        if len(rows) < 500:
            break
        after = rows[-1]["id"]
    if not as_json:
        click.echo(" · ".join(f"{count} {name}" for name, count in totals.items()), err=True)


@subscribers.command("show")
@click.argument("address")
@as_json
@in_house
async def show_reader(at: House, address: str, as_json: bool) -> None:
    """Show all that is known of a reader."""
    async with at.db.reading() as session:
        told = await readers.record(session, await readers.by_address(session, address))
    if as_json:
        click.echo(dumped(told))
        return
    proofs = told.pop("consent")
    show(told, as_json)
    if proofs:
        click.echo()
        show_all(proofs, ("at", "kind", "source", "editions"), as_json)


@subscribers.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Count, and change nothing.")
@click.option("--source", help="Where these readers' consent came from; the file's name, if not given.")
@click.option("--editions", default="", help="For rows that name none: daily,weekly")
@click.option("--language", type=click.Choice(["zh", "en"]), default="zh", help="For rows that name none.")
@click.option("--confirm", is_flag=True, help="Ask each by mail instead of taking them as confirmed.")
@click.option("--update", is_flag=True, help="Let the file change what active readers get.")
@as_json
@in_house
async def import_file(
    at: House, file: Path, source: str | None, editions: str, as_json: bool, **how: Any
) -> None:
    """Take readers from a CSV: ours, or an export of Substack, Mailchimp, Ghost and others."""
    plan = imports.Plan((source or f"import:{file.name}")[:120], tuple(slugs(editions)), **how)
    if file.stat().st_size > LARGEST:
        raise Invalid(f"The file is larger than {LARGEST:,} bytes; hand it in in parts.")
    with file.open("rb") as binary:
        job_id = await imports.start(at.db, at.settings, binary, plan, file.name, at.now())
    try:
        told = await _run(at, job_id, file.name)
    except asyncio.CancelledError:
        await imports.stop(at.db, at.settings, job_id, STOPPED, at.now())
        raise
    async with at.db.transaction() as session:
        audit.note(session, audit.COMMAND, "import", f"import {job_id}", at.now())
    await (_tell_machines(at, told) if as_json else _tell(at, told))
    counts = told["counts"]
    if told["state"] == "failed" or counts["invalid"] == sum(counts.values()):
        sys.exit(1)


@subscribers.command()
@state
@edition
@click.option("-o", "--output", type=click.File("w", encoding="utf-8", atomic=True), default="-")
@in_house
async def export(at: House, state: str | None, edition: str | None, output: IO[str]) -> None:
    """Write readers as our own CSV, which can be imported again."""
    async for page in exports.write(at.db, state, edition):
        output.write(page)
    async with at.db.transaction() as session:
        audit.note(session, audit.COMMAND, "export", f"{state or 'all'} readers", at.now())


@subscribers.command()
@click.argument("address")
@click.option("--yes", is_flag=True, help="Do not ask.")
@in_house
async def erase(at: House, address: str, yes: bool) -> None:
    """Erase a reader for good; no file brings them back, a new sign-up of theirs does."""
    if not yes and sys.stdin.isatty():
        click.confirm(f"Erase {address} and all that is known of them?", abort=True, err=True)
    async with at.db.transaction() as session:
        erased = await erasing.by_address(session, at.settings, address, at.now())
        audit.note(session, audit.COMMAND, "erase", f"subscriber {erased or '-'}", at.now())
    click.echo("Erased.")


@subscribers.command("resend-confirmation")
@click.argument("address")
@in_house
async def resend_confirmation(at: House, address: str) -> None:
    """Ask a reader who has not confirmed once more."""
    async with at.db.transaction() as session:
        await readers.ask_again(session, await readers.by_address(session, address), at.now())
    click.echo("The letter is owed; a worker sends it.")


def slugs(written: str) -> list[str]:
    """Return the editions of `daily,weekly`."""
    return written.replace(",", " ").split()


async def _run(at: House, job_id: int, name: str) -> dict[str, Any]:
    """Take batch after batch, with a bar on a terminal, and return the job."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(),
        TextColumn("{task.fields[rows]:,} rows"),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=1.0, rows=0)
        while True:
            goes_on = await imports.step(at.db, at.settings, job_id, at.now())
            async with at.db.reading() as session:
                told = await imports.view(session, job_id, limit=1)
            bar.update(task, completed=told["progress"], rows=sum(told["counts"].values()))
            if not goes_on:
                return told


async def _tell(at: House, told: dict[str, Any]) -> None:
    taken = ", ".join(f"{field} ← {name}" for field, name in told["columns"].items())
    click.echo(f"Read as {told['preset'] or 'a table'}: {taken}", err=True)
    if told["ignored"]:
        click.echo(f"Ignored: {', '.join(told['ignored'])}", err=True)
    async for row in _rows(at, told["id"]):
        click.echo(f"line {row['line']}: {row['kind']}: {row['problem']}", err=True)
    counts = [{"rows": name, "count": f"{count:,}"} for name, count in told["counts"].items() if count]
    show_all(
        [*counts, {"rows": "in all", "count": f"{sum(told['counts'].values()):,}"}], ("rows", "count"), False
    )
    if told["problem"]:
        click.echo(told["problem"], err=True)
    elif told["dry_run"]:
        click.echo("This was a dry run; nothing was changed.")


async def _tell_machines(at: House, told: dict[str, Any]) -> None:
    rows = [row async for row in _rows(at, told["id"])]
    click.echo(dumped({**told, "rows": rows, "next": None}))


async def _rows(at: House, job_id: int) -> Any:
    after: int | None = 0
    while after is not None:
        async with at.db.reading() as session:
            page = await imports.view(session, job_id, after, SHOWN)
        for row in page["rows"]:
            yield row
        after = page["next"]

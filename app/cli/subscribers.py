"""Readers: add, list, import."""

from pathlib import Path
from typing import Any

import click

from app.cli.desk import as_json, dumped, in_house, show, show_all
from app.edge import House
from app.flows import imports, readers, subscribe
from app.subscribers import store
from app.subscribers.imports import csv
from app.subscribers.store import Origin


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
@click.option("--state", type=click.Choice(["pending", "active", "paused", "ended"]))
@as_json
@in_house
async def list_subscribers(at: House, q: str, state: str | None, as_json: bool) -> None:
    """List readers."""
    after = 0
    while True:
        async with at.db.reading() as session:
            page = await store.page(session, after, 500, q, state)
            rows = await readers.view(session, page)
            totals = await store.totals(session)
        if rows or not after:
            show_all(rows, ("id", "email", "status", "reason", "editions", "source"), as_json)
        if len(rows) < 500:
            break
        after = rows[-1]["id"]
    if not as_json:
        click.echo(" · ".join(f"{count} {name}" for name, count in totals.items()), err=True)


@subscribers.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Count, and change nothing.")
@click.option("--source", help="Where these readers' consent came from; the file's name, if not given.")
@click.option("--editions", default="", help="For rows that name none: daily,weekly")
@click.option("--confirm", is_flag=True, help="Ask each by mail instead of taking them as confirmed.")
@click.option("--update", is_flag=True, help="Let the file change what active readers get.")
@as_json
@in_house
async def import_file(
    at: House, file: Path, source: str | None, editions: str, as_json: bool, **how: Any
) -> None:
    """Take readers from a CSV with the columns email, name, language, editions, status, …"""
    plan = imports.Plan(source or f"import:{file.name}"[:120], slugs(editions), **how)
    with file.open(encoding="utf-8-sig", newline="") as lines:
        report = await imports.run(at.db, at.settings, csv.read(lines), plan, at.now())
    if as_json:
        rows = [{"line": fault.line, "problem": fault.message} for fault in report.faults]
        click.echo(dumped({"counts": dict(report.counts), "rows": rows}))
        return
    for fault in report.faults:
        click.echo(f"line {fault.line}: {fault.message}", err=True)
    said = ", ".join(f"{count:,} {name}" for name, count in report.counts.items()) or "no rows"
    click.echo(f"{'Would be' if plan.dry_run else 'Taken'}: {said}.")


def slugs(written: str) -> list[str]:
    """Return the editions of `daily,weekly`."""
    return written.replace(",", " ").split()

"""Issues: hand one in, look at it, send a test."""

import sys
from pathlib import Path
from typing import Any

import click
from sqlmodel import col, select

from app.cli.desk import as_json, in_house, show, show_all
from app.edge import House
from app.flows import account, publish
from app.issues import store
from app.issues.models import Issue


@click.group()
def issues() -> None:
    """Hand in, look at, and test an issue."""


@issues.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--edition", required=True)
@click.option("--date", "day", required=True, type=click.DateTime(["%Y-%m-%d"]))
@click.option("--language")
@click.option("--subject")
@as_json
@in_house
async def add(at: House, file: Path, edition: str, day: Any, as_json: bool, **given: str | None) -> None:
    """Hand in a text as the issue of an edition and a date; prints its id."""
    manuscript = publish.Manuscript(file.read_bytes(), "text", given["language"], given["subject"])
    async with at.db.transaction() as session:
        issue, of, text = await publish.hand_in(session, edition, day.date(), manuscript, at.now())
        handed = await account.handed_in(session, issue, of, text)
    if as_json:
        show(handed, as_json)
        return
    click.echo(issue.id)
    click.echo(f"{of.name} {issue.date}: {text.subject}", err=True)
    for section in handed["outline"]:
        if section["section"]:
            click.echo(f"  {section['section']}", err=True)
        for item in section["items"]:
            click.echo(f"    {item['title']}", err=True)
    for finding in handed["diagnostics"]:
        click.echo(f"  note: {finding['message']}", err=True)


@issues.command("list")
@as_json
@in_house
async def list_issues(at: House, as_json: bool) -> None:
    """List the issues."""
    async with at.db.reading() as session:
        found = (await session.scalars(select(Issue).order_by(col(Issue.id)))).all()
        rows = [await account.issue(session, one) for one in found]
    for row in rows:
        row["subject"] = row["texts"][0]["subject"] if row["texts"] else ""
    show_all(rows, ("id", "edition", "date", "state", "subject"), as_json)


@issues.command("show")
@click.argument("issue_id", type=int)
@as_json
@in_house
async def show_issue(at: House, issue_id: int, as_json: bool) -> None:
    """Show an issue and its text."""
    async with at.db.reading() as session:
        found = await account.issue(session, await store.issue(session, issue_id))
    if as_json:
        show(found, as_json)
        return
    texts = found.pop("texts")
    show(found, as_json)
    for text in texts:
        click.echo(f"\n{text['language']} · {text['subject']}\n\n{text['source'].rstrip()}")


@issues.command()
@click.argument("issue_id", type=int)
@click.option("--part", type=click.Choice(account.PARTS), default="text")
@click.option("--language")
@in_house
async def preview(at: House, issue_id: int, part: str, language: str | None) -> None:
    """Print a part of exactly what a reader gets."""
    async with at.db.reading() as session:
        issue = await store.issue(session, issue_id)
        _, body = await account.preview(session, at.composer, issue, part, language, at.now())
    sys.stdout.buffer.write(body)


@issues.command()
@click.argument("issue_id", type=int)
@click.option("--to", "addresses", multiple=True, required=True)
@in_house
async def test(at: House, issue_id: int, addresses: tuple[str, ...]) -> None:
    """Send a test to an address, outside the books."""
    async with at.db.transaction() as session:
        await publish.owe_tests(session, at.composer, issue_id, addresses, at.now())
    click.echo("The worker sends it now.")

"""Issues: hand one in, look at it, send a test."""

import sys
from pathlib import Path
from typing import Any

import click
from sqlmodel import col, select

from app.cli.desk import as_json, in_house, number, show, show_all
from app.edge import House
from app.editors import audit
from app.flows import account, manuscript, proofread
from app.issues import sources, store
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
@click.option("--format", type=click.Choice(list(sources.SOURCES)), help="Markdown for *.md, else text.")
@as_json
@in_house
async def add(at: House, file: Path, edition: str, day: Any, as_json: bool, **given: str | None) -> None:
    """Hand in a text as the issue of an edition and a date; prints its id."""
    format = given["format"] or sources.format_of(file.name)
    text = manuscript.Manuscript(file.read_bytes(), format, given["language"], given["subject"])
    async with at.db.transaction() as session:
        issue, of, kept = await manuscript.hand_in(session, edition, day.date(), text, at.now())
        audit.note(session, audit.COMMAND, "hand in", f"issue {issue.id}", at.now())
        handed = await account.handed_in(session, issue, of, kept)
    if as_json:
        show(handed, as_json)
        return
    click.echo(issue.id)
    click.echo(f"{of.name} {issue.date}: {kept.subject}", err=True)
    for section in handed["outline"]:
        if section["section"]:
            click.echo(f"  {section['section']}", err=True)
        for item in section["items"]:
            click.echo(f"    {item['title']}", err=True)
    for finding in handed["diagnostics"]:
        where = f"line {finding['line']}" if finding["line"] else finding["part"] or "text"
        click.echo(f"  note: {where}: {finding['message']}", err=True)


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
@click.argument("issue_id", type=number)
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
@click.argument("issue_id", type=number)
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
@click.argument("issue_id", type=number)
@as_json
@in_house
async def preflight(at: House, issue_id: int, as_json: bool) -> None:
    """Say what is wrong with an issue as readers would get it (exit code 1), and what is worth a look."""
    async with at.db.reading() as session:
        found = await proofread.look(session, at.composer, issue_id, at.now())
    if as_json:
        show(found, as_json)
    for level, findings in found.items():
        for one in findings if not as_json else ():
            where = f"line {one['line']}" if one["line"] else one["part"] or "text"
            click.echo(f"{level[:-1]}: {one['language']}, {where}: {one['message']}")
    if not as_json and not any(found.values()):
        click.echo("Nothing stands in the way.")
    if found["errors"]:
        sys.exit(1)


@issues.command()
@click.argument("issue_id", type=number)
@click.option("--to", "addresses", multiple=True, required=True)
@in_house
async def test(at: House, issue_id: int, addresses: tuple[str, ...]) -> None:
    """Send a test to an address, outside the books."""
    async with at.db.transaction() as session:
        await manuscript.owe_tests(session, at.composer, issue_id, addresses, at.now())
        audit.note(session, audit.COMMAND, "test", f"issue {issue_id}", at.now())
    click.echo("The worker sends it now.")


@issues.command()
@click.argument("issue_id", type=number)
@click.option("--to", "address", required=True)
@in_house
async def copy(at: House, issue_id: int, address: str) -> None:
    """Send an issue once more to one reader who lost it, outside the books."""
    async with at.db.transaction() as session:
        await manuscript.copy_for(session, at.composer, issue_id, address, at.now())
        audit.note(session, audit.COMMAND, "copy", f"issue {issue_id}", at.now())
    click.echo("The worker sends it now.")

"""Issues: hand one in, look at it, send a test."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col, select

from app.cli.desk import as_json, in_house, number, show, show_all
from app.cli.watch import Watch
from app.core import paths
from app.edge import House
from app.editors import audit
from app.flows import account, manuscript, proofread, references
from app.issues import sources, store
from app.issues.models import Issue

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def issues() -> None:
    """Hand in, look at, change and test an issue."""


@issues.command()
@click.argument("file", type=FILE)
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
    _tell(handed, of.name, as_json)


def _tell(handed: dict[str, Any], name: str, as_json: bool) -> None:
    """Print the id of an issue, and beside it how its text was understood."""
    if as_json:
        show(handed, as_json)
        return
    click.echo(handed["id"])
    click.echo(f"{name} {handed['date']}: {handed['subject']}", err=True)
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
@click.option("--watch", "watched", is_flag=True, help="Show it on a page that follows every change.")
@click.option("--file", type=FILE, help="With --watch: a text to show in place of the issue's own.")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="With --watch: where the page is.")
@in_house
async def preview(
    at: House, issue_id: int, part: str, language: str | None, watched: bool, **shown: Any
) -> None:
    """Print a part of exactly what a reader gets, or show it on a page while it is being written."""
    async with at.db.reading() as session:
        issue = await store.issue(session, issue_id)
        if not watched:
            _, body = await account.preview(session, at.composer, issue, part, language, at.now())
            sys.stdout.buffer.write(body)
            return
        set_type = await _typesetter(at, session, issue, language, shown["file"])

    def files() -> list[Path]:
        folders = [each for each in (at.settings.templates, paths.templates()) if each]
        found = [path for folder in folders for path in (folder / "email").rglob("*") if path.is_file()]
        return [*found, shown["file"]] if shown["file"] else found

    with Watch(shown["port"], set_type, files) as server:
        click.echo(f"{server.url} shows it, and follows every change. Ctrl-C ends it.")
        try:
            await asyncio.to_thread(server.serve_forever)
        finally:
            server.shutdown()


async def _typesetter(
    at: House, session: AsyncSession, issue: Issue, language: str | None, file: Path | None
) -> Callable[[], str]:
    """Return what renders an issue as it is now, with the text of a file where one is given."""
    text = await store.text(session, issue, language)
    edition = await store.edition_of(session, issue)
    others = store.other_labels(edition, await store.editions(session))
    pages = await references.of_text(session, text)

    def set_type() -> str:
        draft = manuscript.as_in_file(text, file) if file else text
        return at.composer.render_issue(edition, issue.date, draft, others, pages).html

    return set_type


@issues.command()
@click.argument("issue_id", type=number)
@click.argument("file", type=FILE, required=False)
@click.option("--language", help="Of which text.")
@click.option("--subject")
@as_json
@in_house
async def edit(at: House, issue_id: int, file: Path | None, as_json: bool, **given: str | None) -> None:
    """Change the text of an issue whose mailing has not started, its subject, or both."""
    if file is None and given["subject"] is None:
        raise click.UsageError("Give a FILE with the new text, a --subject, or both.")
    change = manuscript.Change(given["language"], given["subject"])
    if file is not None:
        change = replace(change, source=file.read_bytes(), format=sources.format_of(file.name))
    async with at.db.transaction() as session:
        issue, of, text = await manuscript.amend(session, issue_id, change)
        audit.note(session, audit.COMMAND, "amend", f"issue {issue_id}", at.now())
        handed = await account.handed_in(session, issue, of, text)
    _tell(handed, of.name, as_json)


@issues.command()
@click.argument("issue_id", type=number)
@in_house
async def delete(at: House, issue_id: int) -> None:
    """Delete a draft that never had a mailing."""
    async with at.db.transaction() as session:
        await manuscript.discard(session, issue_id)
        audit.note(session, audit.COMMAND, "delete", f"issue {issue_id}", at.now())
    click.echo(f"Issue {issue_id} is deleted.")


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

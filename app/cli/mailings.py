"""Send an issue, watch it go, steer it."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import click
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col, select

from app.cli.desk import as_json, in_house, number, show, show_all
from app.delivery import mailings as store
from app.delivery import workers
from app.delivery.models import Mailing
from app.edge import House
from app.editors import audit
from app.flows import account, proofread, publish
from app.flows import why as telling
from app.issues import store as issues
from app.issues.cadence import instant, moment

WHEN = click.DateTime(["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"])
OVER = ("finished", "cancelled", "paused")
UNSEEN = timedelta(seconds=10)
SOONEST, LATEST = 60, 30 * 86_400  # seconds that a mailing may be late
GOES_ON = """Mailing {mailing} goes on without this window.
Watch it again:  broadsheet send {issue}
Stop it:         broadsheet mailings pause {mailing}"""
LONG = 7  # digits of LATEST


@click.command()
@click.argument("issue_id", type=number)
@click.option("--at", "when", type=WHEN)
@click.option("--tz", help="The zone of --at, such as Asia/Shanghai.")
@click.option("--max-lateness", help="How late it may still go: 6h, 90m.")
@click.option("--on-uncertain", type=click.Choice(["resend", "hold"]), default="resend")
@click.option("--force", is_flag=True, help="Send in spite of what preflight says.")
@click.option("--detach", is_flag=True, help="Do not wait for the end.")
@as_json
@in_house
async def send(
    at: House, issue_id: int, when: datetime | None, as_json: bool, detach: bool, **how: Any
) -> None:
    """Send an issue to its readers and show how far it is."""
    order = publish.Order(moment(when, how["tz"]), lasting(how["max_lateness"]), how["on_uncertain"])
    async with at.db.transaction() as session:
        if not how["force"]:
            await proofread.require_fit(session, at.composer, issue_id, at.now())
        mailing, is_new = await publish.send(session, issue_id, order, at.now())
        if is_new:
            audit.note(session, audit.COMMAND, "send", f"issue {issue_id}", at.now())
        told = await account.mailing(session, mailing, at.now())
    if as_json or detach or told["state"] == "scheduled":
        show(told, as_json)
        return
    try:
        await watch(at, told["id"])
    except asyncio.CancelledError:  # Ctrl-C ends the watching, not the sending
        click.echo(GOES_ON.format(mailing=told["id"], issue=issue_id), err=True)


@click.group()
def mailings() -> None:
    """Watch and steer what is being sent."""


@mailings.command("list")
@as_json
@in_house
async def list_mailings(at: House, as_json: bool) -> None:
    """List the mailings."""
    async with at.db.reading() as session:
        found = (await session.scalars(select(Mailing).order_by(col(Mailing.id)))).all()
        rows = [await account.mailing(session, one, at.now()) | await _issue(session, one) for one in found]
    columns = ("id", "edition", "date", "state", "audience", "sent", "owed", "deferred", "refused", "subject")
    show_all(rows, columns, as_json)


@mailings.command("show")
@click.argument("mailing_id", type=number)
@as_json
@in_house
async def show_mailing(at: House, mailing_id: int, as_json: bool) -> None:
    """Show a mailing and its balanced counts."""
    async with at.db.reading() as session:
        told = await account.mailing(session, await store.get(session, mailing_id), at.now())
    show(told, as_json)


def steering(act: str, sentence: str) -> None:
    """Add a command that does one thing to a mailing and shows it."""

    async def command(at: House, mailing_id: int, as_json: bool) -> None:
        async with at.db.transaction() as session:
            one = await publish.steer(session, mailing_id, act, at.now())
            audit.note(session, audit.COMMAND, act, f"mailing {mailing_id}", at.now())
            told = await account.mailing(session, one, at.now())
        show(told, as_json)

    argument = click.argument("mailing_id", type=number)
    mailings.command(act, help=sentence)(argument(as_json(in_house(command))))


steering("pause", "Stop handing over; what is in flight is finished.")
steering("resume", "Go on where it stopped.")
steering("cancel", "Take back everything not yet handed over; `send` reopens it.")
steering("retry", "Owe again what failed, expired or is uncertain.")


@mailings.command()
@click.argument("mailing_id", type=number)
@click.option("--at", "when", required=True, type=WHEN)
@click.option("--tz", help="The zone of --at, such as Asia/Shanghai.")
@as_json
@in_house
async def reschedule(at: House, mailing_id: int, when: datetime, tz: str | None, as_json: bool) -> None:
    """Give a mailing that has not started another time."""
    async with at.db.transaction() as session:
        one = await store.reschedule(session, mailing_id, instant(when, tz))
        audit.note(session, audit.COMMAND, "reschedule", f"mailing {mailing_id}", at.now())
        told = await account.mailing(session, one, at.now())
    show(told, as_json)


@mailings.command()
@click.argument("mailing_id", type=number)
@as_json
@in_house
async def reconcile(at: House, mailing_id: int, as_json: bool) -> None:
    """Count the rows anew, say each difference from the tallies, and set them right."""
    async with at.db.transaction() as session:
        differences = await account.reconcile(session, await store.get(session, mailing_id), at.now())
        audit.note(session, audit.COMMAND, "reconcile", f"mailing {mailing_id}", at.now())
    if as_json or differences:
        show_all(differences, ("state", "tally", "rows"), as_json)
    else:
        click.echo("The books balance: rows and tallies agree.")


@click.command()
@click.argument("address")
@click.argument("issue_id", type=number)
@as_json
@in_house
async def why(at: House, address: str, issue_id: int, as_json: bool) -> None:
    """Say whether somebody got an issue, and why (not)."""
    async with at.db.reading() as session:
        issue = await issues.issue(session, issue_id)
        told = await telling.why(session, at.settings, issue, address, at.now())
    if as_json:
        show(told, as_json)
    else:
        click.echo(told["sentence"])


async def _issue(session: AsyncSession, one: Mailing) -> dict[str, Any]:
    """Return the date and the subject of a mailing's issue."""
    issue = await issues.issue(session, one.issue_id)
    return {"date": issue.date, "subject": (await issues.text(session, issue, None)).subject}


async def watch(at: House, mailing_id: int) -> None:
    """Show a mailing's progress until it is over: a live bar on a terminal, its last word elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("preparing", total=None, note="")
        while True:
            async with at.db.reading() as session:
                told = await account.mailing(session, await store.get(session, mailing_id), at.now())
                seen = await workers.last_seen(session)
            done = told["audience"] - told["owed"] - told["in_flight"] - told["deferred"]
            alone = seen is None or at.now() - seen > UNSEEN
            note = "no worker is running: start `broadsheet worker`" if alone else _note(told)
            bar.update(
                task, description=told["state"], total=told["audience"] or None, completed=done, note=note
            )
            if told["state"] in OVER:
                break
            await asyncio.sleep(0.25)
    click.echo(summary(told))


def summary(told: dict[str, Any]) -> str:
    """Return a mailing's outcome in one line."""
    counts = ("sent", "deferred", "refused", "failed", "uncertain", "withdrawn", "suppressed", "expired")
    parts = [f"{told[name]:,} {name}" for name in counts if told[name]]
    said = ", ".join(parts) or "nobody to send to"
    problem = f" ({told['problem']})" if told["problem"] else ""
    return f"Mailing {told['id']} is {told['state']}{problem}: {said}."


def lasting(written: str | None) -> int | None:
    """Return the seconds of a duration such as 6h, 90m or 45s."""
    if written is None:
        return None
    number, unit = written[:-1], {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(written[-1:])
    if unit is None or not number.isdecimal():
        raise click.BadParameter("a duration is a number and s, m, h or d, such as 6h")
    if len(number) > LONG or not SOONEST <= int(number) * unit <= LATEST:
        raise click.BadParameter("seconds, from a minute to 30 days")
    return int(number) * unit


def _note(told: dict[str, Any]) -> str:
    if told["problem"]:
        return str(told["problem"])
    parts = [f"{told['rate']:.0f}/s"] if told["rate"] else []
    if told["eta"] is not None:
        parts.append(f"{timedelta(seconds=told['eta'])} left")
    parts += [f"{told[name]} {name}" for name in ("deferred", "refused") if told[name]]
    return " · ".join(parts)

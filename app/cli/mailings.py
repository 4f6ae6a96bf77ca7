"""Send an issue, watch it go, steer it."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import click
from sqlmodel import col, select

from app.cli.desk import as_json, in_house, show, show_all
from app.delivery import mailings as store
from app.delivery import workers
from app.delivery.models import Mailing
from app.edge import House
from app.flows import account, publish
from app.issues.cadence import moment

OVER = ("finished", "cancelled", "paused")
UNSEEN = timedelta(seconds=10)


@click.command()
@click.argument("issue_id", type=int)
@click.option("--at", "when", type=click.DateTime(["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"]))
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
        mailing, _ = await publish.send(session, issue_id, order, at.now())
        told = await account.mailing(session, mailing, at.now())
    if as_json or detach or told["state"] == "scheduled":
        show(told, as_json)
        return
    await watch(at, told["id"])


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
        rows = [await account.mailing(session, one, at.now()) for one in found]
    show_all(rows, ("id", "edition", "state", "audience", "sent", "owed", "deferred", "refused"), as_json)


@mailings.command("show")
@click.argument("mailing_id", type=int)
@as_json
@in_house
async def show_mailing(at: House, mailing_id: int, as_json: bool) -> None:
    """Show a mailing and its balanced counts."""
    async with at.db.reading() as session:
        told = await account.mailing(session, await store.get(session, mailing_id), at.now())
    show(told, as_json)


@mailings.command()
@click.argument("mailing_id", type=int)
@as_json
@in_house
async def pause(at: House, mailing_id: int, as_json: bool) -> None:
    """Stop handing over; what is in flight is finished."""
    async with at.db.transaction() as session:
        one = await store.pause(session, mailing_id, "paused by an editor")
        show(await account.mailing(session, one, at.now()), as_json)


@mailings.command()
@click.argument("mailing_id", type=int)
@as_json
@in_house
async def resume(at: House, mailing_id: int, as_json: bool) -> None:
    """Go on where it stopped."""
    async with at.db.transaction() as session:
        one = await store.resume(session, mailing_id, at.now())
        show(await account.mailing(session, one, at.now()), as_json)


@mailings.command()
@click.argument("mailing_id", type=int)
@as_json
@in_house
async def cancel(at: House, mailing_id: int, as_json: bool) -> None:
    """Take back everything not yet handed over; `send` reopens it."""
    async with at.db.transaction() as session:
        one = await publish.cancel(session, mailing_id, at.now())
        show(await account.mailing(session, one, at.now()), as_json)


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
    return int(number) * unit


def _note(told: dict[str, Any]) -> str:
    if told["problem"]:
        return str(told["problem"])
    parts = [f"{told['rate']:.0f}/s"] if told["rate"] else []
    if told["eta"] is not None:
        parts.append(f"{timedelta(seconds=told['eta'])} left")
    parts += [f"{told[name]} {name}" for name in ("deferred", "refused") if told[name]]
    return " · ".join(parts)

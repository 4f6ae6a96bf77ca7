"""A first run: two sample issues, five sample readers, and a word on where to look."""

import asyncio
from datetime import date, timedelta
from pathlib import Path

import click
from sqlmodel import select

from app.delivery import mailings
from app.edge import House
from app.editors import keys
from app.flows import manuscript, publish, readers, subscribe
from app.issues import store
from app.issues.models import Issue
from app.subscribers.store import Origin

SAMPLES = Path(__file__).parent / "samples"
NAME = "demo"
READERS = (
    ("daily.reader@example.com", ("daily",)),
    ("weekly.reader@example.com", ("weekly",)),
    ("lin@example.com", ("daily", "weekly")),
    ("chen@example.com", ("daily", "weekly")),
    ("zhou@example.com", ("daily",)),
)


async def show(house: House, host: str, port: int) -> None:
    """Fill an empty database with samples, send them, and print where to look."""
    sent = await _fill(house)
    house.wake.call()
    for mailing_id in sent:
        while not house.stopping.is_set():
            async with house.db.reading() as session:
                if (await mailings.get(session, mailing_id)).state == "finished":
                    break
            await asyncio.sleep(0.1)
    if house.stopping.is_set():
        return
    async with house.db.transaction() as session:
        await keys.revoke_named(session, NAME, house.now())  # the last start's: nobody has it written down
        _, key = await keys.create(session, NAME, keys.Scope.ADMIN, house.now())
    here = f"http://{host}:{port}"
    mails = f"{len(READERS)} sample readers have their mails" if sent else "empty since this start"
    click.echo(
        f"""
  Broadsheet is running. Ctrl-C stops it.

    The form       {here}/
    The archive    {here}/archive
    The mailbox    {here}/mailbox   {mails}
    An API key     {key}

  Your first own issue:

    .venv/bin/broadsheet issues add my.txt --edition daily --date {date.today() + timedelta(days=1)}
    .venv/bin/broadsheet send ID
"""
    )


async def _fill(house: House) -> list[int]:
    """Hand in and send the samples, unless there is an issue already; return the mailings made."""
    today = house.now().date()
    made = []
    async with house.db.transaction() as session:
        if (await session.scalars(select(Issue).limit(1))).first() is not None:
            return []
        for address, editions in READERS:
            request = subscribe.Request(address, editions, "zh", Origin("demo"))
            await readers.add(session, house.settings, request, "", False, house.now())
    async with house.db.transaction() as session:
        for edition in await store.editions(session):
            sample = SAMPLES / f"{edition.slug}.txt"
            if sample.is_file():
                text = manuscript.Manuscript(sample.read_bytes())
                issue, _, _ = await manuscript.hand_in(session, edition.slug, today, text, house.now())
                mailing, _ = await publish.send(session, issue.id or 0, publish.Order(), house.now())
                made.append(mailing.id or 0)
    return made

"""Start the programs: pages and API, the worker, or both with the embedded mailbox."""

import asyncio
import logging
import os
import resource
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import click
import uvloop

from app import mailbox
from app.cli import demo as samples
from app.cli.listening import listen
from app.core import config, log, misspelt, schema
from app.core.config import Settings, is_loopback
from app.core.db import Database
from app.core.errors import BroadsheetError, Misconfigured
from app.core.jobs import Wake
from app.edge import House, opening, require_current
from app.flows import returns, signing
from app.flows.compose import Composer
from app.issues import store
from app.mail.relay import Relay
from app.subscribers import suppression
from app.worker import Worker, claim_slot

spoken = logging.getLogger(__name__)

FILES = 8192

address = click.option("--host", default="127.0.0.1", show_default=True)
port = click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535))


@dataclass(frozen=True)
class Programs:
    """Which programs one process runs."""

    pages: bool = True
    delivers: bool = True
    migrates: bool = False
    demo: bool = False


@click.command()
@address
@port
@click.option("--demo", is_flag=True, help="On an empty database: hand in two sample issues and send them.")
def run(host: str, port: int, demo: bool) -> None:
    """Pages, API, worker and mailbox in one process; brings the database to this version first."""
    _start(host, port, Programs(migrates=True, demo=demo))


@click.command()
@address
@port
def serve(host: str, port: int) -> None:
    """Pages and API only."""
    _start(host, port, Programs(delivers=False))


@click.command()
def worker() -> None:
    """The worker only."""
    _start("", 0, Programs(pages=False))


@click.command()
def migrate() -> None:
    """Bring the database to this version."""

    async def upgrade() -> None:
        db = Database(config.load().database_url)
        try:
            with opening():
                before = await schema.upgrade(db)
        finally:
            await db.close()
        click.echo(f"The database was {before or 'empty'} and is now {schema.newest()}.")

    asyncio.run(upgrade())


def _start(host: str, port: int, programs: Programs) -> None:
    settings = _at_home(config.load(), host, port)
    if mailbox.wanted(settings) and not (programs.pages and programs.delivers):
        raise Misconfigured(
            "The embedded mailbox is part of `broadsheet run`; set BROADSHEET_RELAYS to a relay."
        )
    log.configure()
    _allow_many_files()
    taken = listen(host, port) if programs.pages else None
    try:
        uvloop.run(_run(settings, taken, programs))
    except ExceptionGroup as group:
        raise _first(group) or group from None
    except asyncio.CancelledError:
        raise click.Abort from None
    finally:
        if taken is not None:
            taken.close()


def _at_home(settings: Settings, host: str, port: int) -> Settings:
    """Return the settings with links that lead to this port of loopback, unless BASE_URL says where they lead."""
    if "base_url" in settings.model_fields_set or not is_loopback(host):
        return settings
    shown = f"[{host}]" if ":" in host else host
    return settings.model_copy(update={"base_url": f"http://{shown}:{port}"})


async def _run(settings: Settings, taken: socket.socket | None, programs: Programs) -> None:
    stop = _stopped_by_signals()
    lock = (
        claim_slot(settings.data_dir, settings.database_name, settings.database_url.startswith("sqlite"))
        if programs.delivers
        else None
    )
    async with _opened(settings, programs, stop) as (house, box), asyncio.TaskGroup() as tasks:
        if lock is not None:
            tasks.create_task(_deliver(house, stop, lock[0]))
        if taken is not None:
            from app.cli import pages  # a worker needs none of it

            tasks.create_task(pages.serve(house, box, taken))
        if programs.demo and box is not None and taken is not None:
            tasks.create_task(samples.show(house, *taken.getsockname()[:2]))
    if lock is not None:
        os.close(lock[1])


async def _deliver(house: House, stop: asyncio.Event, name: str) -> None:
    # On PostgreSQL by connections of its own, so that a rush on the pages does not keep mail from being recorded.
    db = house.db if house.db.is_sqlite else Database(house.settings.database_url)
    try:
        one = Worker(db, house.composer, house.wake, lambda url: Relay(url, house.settings.domain))
        await one.run(stop, name)
    finally:
        if db is not house.db:
            await db.close()


def _stopped_by_signals() -> asyncio.Event:
    """Return what the first signal sets; the second one ends everything at once."""
    stop, loop, whole = asyncio.Event(), asyncio.get_running_loop(), asyncio.current_task()

    def halt() -> None:
        if stop.is_set() and whole is not None:
            whole.cancel()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, halt)
    return stop


def _allow_many_files() -> None:
    """Let this process open as many connections as the machine allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _first(group: BaseExceptionGroup[BaseException]) -> BroadsheetError | None:
    """Return the first error of ours in a group, or None when it holds a bug."""
    ours, others = group.split(BroadsheetError)
    while isinstance(ours, BaseExceptionGroup):
        ours = ours.exceptions[0]  # type: ignore[assignment]
    return ours if others is None and isinstance(ours, BroadsheetError) else None


@asynccontextmanager
async def _opened(
    settings: Settings, programs: Programs, stop: asyncio.Event
) -> AsyncIterator[tuple[House, mailbox.Mailbox | None]]:
    """Open the database and the mailbox, and check that both are fit for this version."""
    db, box = Database(settings.database_url), None
    try:
        if programs.migrates:
            with opening():
                await schema.upgrade(db)
        await require_current(db)
        async with db.transaction() as session:
            await suppression.check_key(session, settings.suppression_key)
        if mailbox.wanted(settings):
            box = mailbox.Mailbox()
            settings = mailbox.pointed_at(settings, await box.open(mailbox.port_of(settings)))
        house = House(settings, db, Composer(settings), Wake(), stopping=stop)
        await _warn(house)
        yield house, box
    finally:
        if box is not None:
            await box.close()
        await db.close()


async def _warn(house: House) -> None:
    """Say what is doubtful about the settings, our signatures, and hearing of our mail; it goes out all the same."""
    async with house.db.reading() as session:
        senders = [house.composer.sender(one) for one in await store.editions(session)]
    signatures, doors = signing.doubts(house.composer.dkim, senders), returns.doubts(house.settings)
    for doubt in [*misspelt.doubts(), *signatures, *doors]:
        spoken.warning("%s", doubt)

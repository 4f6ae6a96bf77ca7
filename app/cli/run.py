"""Start the programs: pages and API, the worker, or both with the embedded mailbox."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import click
import uvicorn

from app import mailbox, main
from app.cli import demo as samples
from app.core import config, log, schema
from app.core.config import Settings
from app.core.db import Database
from app.core.errors import Misconfigured
from app.core.jobs import Wake
from app.edge import House
from app.flows.compose import Composer
from app.mail.relay import Relay
from app.subscribers import suppression
from app.worker import Worker, claim_slot

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
            before = await schema.upgrade(db)
        finally:
            await db.close()
        click.echo(f"The database was {before or 'empty'} and is now {schema.newest()}.")

    asyncio.run(upgrade())


def _start(host: str, port: int, programs: Programs) -> None:
    settings = config.load()
    if mailbox.wanted(settings) and not (programs.pages and programs.delivers):
        raise Misconfigured(
            "The embedded mailbox is part of `broadsheet run`; set BROADSHEET_RELAYS to a relay."
        )
    log.configure()
    asyncio.run(_run(settings, host, port, programs))


async def _run(settings: Settings, host: str, port: int, programs: Programs) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    lock = (
        claim_slot(settings.data_dir, settings.database_url.startswith("sqlite"))
        if programs.delivers
        else None
    )
    async with _opened(settings, programs) as (house, box), asyncio.TaskGroup() as tasks:
        if lock is not None:
            one = Worker(house.db, house.composer, house.wake, lambda url: Relay(url, settings.domain))
            tasks.create_task(one.run(stop, lock[0]))
        if programs.pages:
            tasks.create_task(_serve(house, box, host, port, stop))
        if programs.demo and box is not None:
            tasks.create_task(samples.show(house, host, port))
    if lock is not None:
        os.close(lock[1])


@asynccontextmanager
async def _opened(
    settings: Settings, programs: Programs
) -> AsyncIterator[tuple[House, mailbox.Mailbox | None]]:
    """Open the database and the mailbox, and check that both are fit for this version."""
    db, box = Database(settings.database_url), None
    try:
        if programs.migrates:
            await schema.upgrade(db)
        await schema.require_current(db)
        async with db.transaction() as session:
            await suppression.check_key(session, settings.suppression_key)
        if mailbox.wanted(settings):
            box = mailbox.Mailbox()
            settings = mailbox.pointed_at(settings, await box.open())
        yield House(settings, db, Composer(settings), Wake()), box
    finally:
        if box is not None:
            await box.close()
        await db.close()


async def _serve(
    house: House, box: mailbox.Mailbox | None, host: str, port: int, stop: asyncio.Event
) -> None:
    app = main.build(house)
    if box is not None:
        app.include_router(mailbox.router(box))
    server = _Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(house.settings.trusted_proxies),
            forwarded_allow_ips=list(house.settings.trusted_proxies),
            timeout_keep_alive=10,
            timeout_graceful_shutdown=10,
        )
    )
    serving = asyncio.create_task(server.serve())
    await asyncio.wait((serving, asyncio.create_task(stop.wait())), return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    stop.set()
    await serving


class _Server(uvicorn.Server):
    """Leaves the signals to us, who have more to stop than the server."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

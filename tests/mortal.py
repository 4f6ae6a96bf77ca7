"""Processes that may die at any point: each is forked from one that has imported everything and opened nothing.

`python -m tests.mortal` reads one order a line (JSON), forks a child for it, writes the child's pid and, when
it has ended, its exit code. A child that dies at its fault point ends with `DEAD`.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from fastapi import FastAPI
from sqlalchemy import Connection, func, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import configure_mappers

from app import main
from app import worker as app_worker
from app.core import config
from app.core.config import Settings
from app.core.db import Database, Found
from app.core.jobs import Wake
from app.delivery import workers
from app.delivery.models import Mailing
from app.edge import House
from app.flows.compose import Composer
from app.issues.models import Edition, IssueText
from app.mail.relay import Relay
from app.mail.smtp import Timeouts
from app.sending import fence
from app.worker import Worker
from tests.issues import samples

ROOT = Path(__file__).resolve().parents[1]
DEAD = 71
# What differs from before once a transaction has changed something.
CHANGES = {
    "sqlite": text("SELECT total_changes()"),
    "postgresql": text("SELECT pg_current_xact_id_if_assigned()::text"),
}
KEY = "0123456789abcdef" * 4
TIMEOUTS = Timeouts(opening=5, command=5, data=5, block=5, dot=5, quit=0.5)


class Mortal(Database):
    """A database whose process dies right before or right after its n-th commit that changes anything; 0 is never."""

    def __init__(self, url: str, dies_at: int) -> None:
        super().__init__(url)
        self.dies_at, self.points = dies_at, 0
        self.changes = CHANGES[self.engine.dialect.name]

    def pass_point(self, counts: bool) -> None:
        """Die if this is the fault point."""
        self.points += counts
        if counts and self.points == self.dies_at:
            os._exit(DEAD)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncSession]:
        """Yield a session as every database does, with a fault point on either side of the commit."""
        async with super().transaction() as session:
            before = (await session.execute(self.changes)).scalar_one()
            yield session
            is_changed = (await session.execute(self.changes)).scalar_one() != before
            self.pass_point(is_changed)
        self.pass_point(is_changed)

    async def work(self, step: Callable[[Connection], Found]) -> Found:
        """Run a step as every database does, with a fault point on either side of the commit."""

        def mortal(connection: Connection) -> tuple[Found, bool]:
            before = connection.execute(self.changes).scalar_one()
            found = step(connection)
            is_changed = connection.execute(self.changes).scalar_one() != before
            self.pass_point(is_changed)
            return found, is_changed

        found, is_changed = await super().work(mortal)
        self.pass_point(is_changed)
        return found


def settings(url: str, port: int, connections: int) -> Settings:
    """Return the settings that every process of a test shares."""
    return config.load(
        database_url=url,
        relays=f"smtp+plain://127.0.0.1:{port}?connections={connections}",
        base_url="http://127.0.0.1:8000",
        secret_key=KEY,
        suppression_key=KEY,
        _env_file=None,
    )


async def work(db: Database, composer: Composer, order: dict[str, Any]) -> None:
    """Run a worker until every mailing is finished, or until SIGTERM."""
    if "lease" in order:
        shorten(order["lease"])
    wake, stop = Wake(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    one = Worker(db, composer, wake, lambda url: Relay(url, "test.example", timeouts=TIMEOUTS))
    running = asyncio.create_task(one.run(stop, order["name"]))
    ear = wake.ear()
    unfinished = select(func.count()).select_from(Mailing).where(Mailing.state != "finished")  # type: ignore[arg-type]
    while order["until_finished"] and not running.done() and not stop.is_set():
        async with db.reading() as session:
            if not (await session.execute(unfinished)).scalar_one():
                stop.set()
        await ear.wait(0.05)
    await running
    await db.close()


async def post(app: FastAPI, path: str, key: str) -> None:
    """Make one call to the API, and die by SIGKILL in the moment in which its answer begins."""
    headers = [(b"authorization", f"Bearer {key}".encode()), (b"host", b"127.0.0.1")]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "headers": headers, "root_path": "",
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8000),
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def answer(message: Any) -> None:
        if message["type"] == "http.response.start":
            os.kill(os.getpid(), signal.SIGKILL if message["status"] == 202 else signal.SIGABRT)

    await app(scope, receive, answer)


@lru_cache
def composer_for(port: int, connections: int) -> Composer:
    """Return a composer that has rendered once, so that no child has to compile the templates."""
    composer = Composer(settings("sqlite:///nowhere.db", port, connections))
    edition = Edition(
        slug="daily", name="x", label="x", language="zh", accent="#000000", accent_dark="#ffffff",
        cadence={"weekdays": [0]}, timezone="UTC", max_lateness=60, time_to_live=60,
    )  # fmt: skip
    written = IssueText(issue_id=0, language="zh", format="text", source=samples.DAILY, subject="x")
    composer.render_issue(edition, date(2026, 10, 26), written)
    return composer


@lru_cache
def api_on(database: str, composer: Composer) -> FastAPI:
    """Return the pages and the API on a database that only a child opens."""
    return main.build(House(composer.settings, Database(database), composer, Wake()))


def prepared(order: dict[str, Any]) -> Coroutine[Any, Any, None]:
    """Return what a child has to run for an order."""
    composer = composer_for(order["port"], order["connections"])
    if "post" in order:
        return post(api_on(order["database"], composer), order["post"], order["key"])
    db = Mortal(order["database"], order.get("dies_at", 0))
    return work(db, composer, order)


def shorten(lease: float) -> None:
    """Let a child be taken for dead after so many seconds, not 30, and all that hangs on it in proportion."""
    workers.LEASE = timedelta(seconds=lease)
    fence.SILENCE, app_worker.BEAT = 0.6 * lease, lease / 6


def obey(task: Coroutine[Any, Any, None]) -> NoReturn:
    """Run a child's task, and end without looking back."""
    try:
        asyncio.run(task)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def say(word: object) -> None:
    """Write one line to whoever gives the orders."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def serve() -> None:
    """Fork a child for each order that comes."""
    configure_mappers()
    say("ready")
    for line in sys.stdin:
        task = prepared(json.loads(line))
        child = os.fork()
        if child == 0:
            obey(task)
        task.close()
        say(child)
        say(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


@dataclass
class Child:
    """A process on its way; `ended` waits for it."""

    pid: int
    _answers: Iterator[str] = field(repr=False)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def ended(self) -> int:
        """Wait for its end and return its exit code, or the negative number of the signal that ended it."""
        return int(next(self._answers))


@dataclass
class Graveyard:
    """Where children are started, one at a time."""

    _process: "subprocess.Popen[str]"

    def start(self, database: Path | str, port: int, **order: object) -> Child:
        """Start a child on an SQLite file, or on the database of a URL.

        `dies_at` names its fault point, `until_finished` lets it end by itself.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        url = database if isinstance(database, str) else f"sqlite:///{database}"
        usual = {"until_finished": True, "connections": 1, "name": "mortal-0"}
        line = json.dumps(usual | order | {"database": url, "port": port})
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return Child(int(next(self._process.stdout)), self._process.stdout)


@contextmanager
def graveyard() -> Iterator[Graveyard]:
    """Start the process that all children are forked from."""
    command = [sys.executable, "-m", "tests.mortal"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert next(process.stdout) == "ready\n"
        yield Graveyard(process)
        process.stdin.close()


if __name__ == "__main__":
    serve()

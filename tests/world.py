"""A whole Broadsheet for a test: pages and API without a socket, a real worker, a real SMTP sink, a clock to turn."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from app import main
from app.core import config, schema
from app.core.config import Settings
from app.core.db import Database
from app.core.jobs import Wake
from app.delivery import books, mailings
from app.edge import House
from app.editors import keys
from app.flows import account, manuscript, publish, readers, subscribe
from app.flows.compose import Composer
from app.mail.relay import Relay
from app.mail.smtp import Timeouts
from app.subscribers.store import Origin
from app.worker import Worker
from tests.issues import samples
from tests.sink import Sink

START = datetime(2026, 10, 26, 0, 0, tzinfo=UTC)
DAY = date(2026, 10, 26)
QUICK = Timeouts(opening=2, command=2, data=2, block=2, dot=2, quit=0.5)


@dataclass
class Clock:
    """A clock that runs, and that a test may turn forward."""

    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    moved: timedelta = timedelta()

    def __call__(self) -> datetime:
        """Return the time: START and what has passed since, really or by turning."""
        return START + (datetime.now(UTC) - self.started) + self.moved

    def forward(self, **by: float) -> None:
        """Turn the clock forward, `minutes=5` for instance."""
        self.moved += timedelta(**by)


@dataclass
class World:
    """One house with its doors: `api` for an editor, `web` for readers."""

    house: House
    clock: Clock
    sink: Sink
    api: httpx.AsyncClient
    web: httpx.AsyncClient
    key: str

    @property
    def db(self) -> Database:
        """The database."""
        return self.house.db

    async def reader(self, address: str, *editions: str, language: str = "zh") -> int:
        """Add an active reader and return their id."""
        request = subscribe.Request(address, editions or ("daily",), language, Origin("test"))
        async with self.db.transaction() as session:
            who = await readers.add(session, self.house.settings, request, "", False, self.clock())
        return who.id or 0

    async def readers(self, count: int, *editions: str, prefix: str = "r") -> list[str]:
        """Add `count` active readers and return their addresses."""
        addresses = [f"{prefix}{number}@example.com" for number in range(count)]
        async with self.db.transaction() as session:
            for address in addresses:
                request = subscribe.Request(address, editions or ("daily",), "zh", Origin("test"))
                await readers.add(session, self.house.settings, request, "", False, self.clock())
        return addresses

    async def issue(self, edition: str = "daily", day: date = DAY, source: str | bytes | None = None) -> int:
        """Hand in an issue and return its id."""
        text = source or (samples.DAILY if edition == "daily" else samples.WEEKLY)
        async with self.db.transaction() as session:
            issue, _, _ = await manuscript.hand_in(
                session, edition, day, manuscript.Manuscript(text), self.clock()
            )
        return issue.id or 0

    async def send(self, issue_id: int, **order: Any) -> int:
        """Trigger the send and return the mailing's id."""
        answer = await self.api.post(f"/issues/{issue_id}/send", json=order)
        assert answer.status_code in (200, 202), answer.text
        number: int = answer.json()["id"]
        return number

    async def mailing(self, mailing_id: int) -> dict[str, Any]:
        """Return a mailing as the API shows it; who asks again and again leaves the worker its turn."""
        await asyncio.sleep(0.005)
        answer = await self.api.get(f"/mailings/{mailing_id}")
        assert answer.status_code == 200, answer.text
        shown: dict[str, Any] = answer.json()
        return shown

    async def books_balance(self, mailing_id: int) -> dict[str, int]:
        """Assert that tallies, rows and audience agree, and return the counts."""
        async with self.db.reading() as session:
            counts = await books.counts(session, mailing_id)
            rows = await books.recount(session, mailing_id)
            shown = await account.mailing(session, await mailings.get(session, mailing_id), self.clock())
        assert counts == rows
        assert shown["audience"] == sum(counts.values())
        return counts

    async def enlist(self, session: AsyncSession, mailing_id: int) -> None:
        """Owe a mailing to the next chunk of its readers, as a worker does."""
        one = await mailings.get(session, mailing_id)
        await publish.enlist_next(session, mailing_id, await publish.audience_of(session, one), self.clock())

    def worker(self, timeouts: Timeouts = QUICK) -> Worker:
        """Return a worker on this house; its relays are those of the settings."""
        open_relay: Callable[..., Relay] = lambda url: Relay(url, "test.example", timeouts=timeouts)  # noqa: E731
        return Worker(self.db, self.house.composer, self.house.wake, open_relay, self.clock)

    @asynccontextmanager
    async def working(self, timeouts: Timeouts = QUICK) -> AsyncIterator[Worker]:
        """Let a worker work while the block runs, then drain it."""
        one, stop = self.worker(timeouts), asyncio.Event()
        task = asyncio.create_task(one.run(stop, "test-0"))
        try:
            yield one
        finally:
            stop.set()
            await task

    async def until(self, mailing_id: int, *states: str, seconds: float = 60) -> dict[str, Any]:
        """Wait until a mailing is in one of the states, finished if none is named."""
        async with asyncio.timeout(seconds):
            while (shown := await self.mailing(mailing_id))["state"] not in (states or ("finished",)):
                await asyncio.sleep(0.02)
        return shown

    async def deliver(self, *mailing_ids: int) -> None:
        """Work until these mailings are finished."""
        async with self.working():
            for mailing_id in mailing_ids:
                await self.until(mailing_id)

    async def letters(self, count: int, seconds: float = 10) -> list[Any]:
        """Work until the sink has `count` mails in all, and return them."""
        async with self.working(), asyncio.timeout(seconds):
            while len(self.sink.mails) < count:
                await asyncio.sleep(0.02)
        return self.sink.mails


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file, to be copied."""
    path = tmp_path_factory.mktemp("database") / "empty.db"

    async def make() -> None:
        db = Database(f"sqlite:///{path}")
        await schema.upgrade(db)
        await db.close()

    asyncio.run(make())
    return path


@pytest.fixture
def sink() -> Iterator[Sink]:
    """A real SMTP server that keeps what it accepts."""
    with Sink() as one:
        yield one


@pytest.fixture
async def world(tmp_path: Path, empty_database: Path, sink: Sink) -> AsyncIterator[World]:
    """A whole house on SQLite whose relay is the sink, with 5 connections."""
    async with house_at(tmp_path, empty_database, sink) as one:
        yield one


def settings_for(folder: Path, sink: Sink, **given: object) -> Settings:
    """Return settings for a database in `folder` and a sink as relay."""
    defaults: dict[str, object] = {
        "database_url": f"sqlite:///{folder}/broadsheet.db",
        "relays": f"smtp+plain://127.0.0.1:{sink.port}?connections=5",
        "base_url": "http://127.0.0.1:8000",
        # Tests ask for many from one place and in no time; what the limits do is tests/web/test_abuse.py's.
        "signups_a_network": 0,
        "form_seconds": 0,
        "_env_file": None,
    }
    return config.load(**(defaults | given))


@asynccontextmanager
async def house_at(folder: Path, empty_database: Path, sink: Sink, **given: object) -> AsyncIterator[World]:
    """Open a world in a folder; `given` are settings."""
    settings = settings_for(folder, sink, **given)
    if settings.database_url.startswith("sqlite") and not (folder / "broadsheet.db").exists():
        shutil.copy(empty_database, folder / "broadsheet.db")
    clock = Clock()
    db = Database(settings.database_url)
    house = House(settings, db, Composer(settings), Wake(), clock)
    if not db.is_sqlite:
        await schema.upgrade(db)
    async with db.transaction() as session:
        _, key = await keys.create(session, "test", keys.Scope.ADMIN, clock())
    app = main.build(house)
    headers = {"Authorization": f"Bearer {key}"}
    try:
        async with (
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app, raise_app_exceptions=False),
                base_url="http://127.0.0.1:8000/api/v1",
                headers=headers,
            ) as api,
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app, raise_app_exceptions=False),
                base_url="http://127.0.0.1:8000",
            ) as web,
        ):
            yield World(house, clock, sink, api, web, key)
    finally:
        await db.close()


def recipients(mails: Iterable[Any]) -> list[str]:
    """Return whom mails went to, sorted."""
    return sorted(mail.recipient for mail in mails)

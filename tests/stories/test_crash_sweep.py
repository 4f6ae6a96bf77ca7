"""A process dies at every point where one can die: nobody is lost, and at most one mail a connection is doubled."""

import asyncio
import random
import shutil
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from email import message_from_bytes
from pathlib import Path

import pytest

from app.core.db import Database
from app.delivery import books
from tests.crowd import crowd
from tests.mortal import DEAD, Child, Graveyard, graveyard
from tests.sink import Action, Event, Sink, Stage, accept_then, delay, reset
from tests.world import World, house_at

READERS = 3


@asynccontextmanager
async def house(folder: Path, empty_database: Path, sink: Sink) -> AsyncIterator[World]:
    """Open a world on the real clock, since those who die live by it."""
    async with house_at(folder, empty_database, sink) as world:
        world.clock.moved = datetime.now(UTC) - world.clock()
        yield world


def accepted(folder: Path, empty_database: Path, sink: Sink, readers: int) -> Path:
    """Return a database in which one mailing to so many readers has been accepted and not begun."""

    async def prepare() -> None:
        async with house(folder, empty_database, sink) as world:
            await crowd(world, readers)
            await world.send(await world.issue())

    folder.mkdir()
    asyncio.run(prepare())
    return folder / "broadsheet.db"


@pytest.fixture(scope="module")
def ground() -> Iterator[Graveyard]:
    """Where workers are started that may die."""
    with graveyard() as one:
        yield one


def all_accounts_agree(database: Path, sink: Sink, readers: int) -> int:
    """Assert that all is sent, said to be, and the same in each copy; return how many mails were doubled."""

    async def look() -> tuple[dict[str, int], dict[str, int]]:
        db = Database(f"sqlite:///{database}")
        async with db.reading() as session:
            found = await books.counts(session, 1), await books.recount(session, 1)
        await db.close()
        return found

    tallies, rows = asyncio.run(look())
    assert tallies == rows
    assert rows["sent"] == sum(rows.values()) == readers
    assert set(sink.recipients()) == {f"r{number}@example.com" for number in range(readers)}
    copies: dict[str, set[bytes]] = {}
    for mail in sink.mails:
        copies.setdefault(message_from_bytes(mail.data)["Message-ID"], set()).add(mail.data)
    assert len(copies) == readers
    assert all(len(same) == 1 for same in copies.values())
    return len(sink.mails) - readers


def fresh(template: Path, folder: Path) -> Path:
    """Return a copy of a database in a folder of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return Path(shutil.copy(template, folder / "broadsheet.db"))


def test_a_worker_that_dies_at_any_commit_loses_nobody_and_doubles_one_at_most(
    tmp_path: Path, empty_database: Path, sink: Sink, ground: Graveyard
) -> None:
    template = accepted(tmp_path / "template", empty_database, sink, READERS)
    point, ended, doubled = 0, DEAD, []
    while ended == DEAD:
        point += 1
        sink.forget()
        database = fresh(template, tmp_path / "run")
        ended = ground.start(database, sink.port, dies_at=point).ended()
        if ended == DEAD:
            assert ground.start(database, sink.port).ended() == 0
        doubled.append(all_accounts_agree(database, sink, READERS))
    assert ended == 0
    assert point > 3 * READERS
    assert max(doubled) == 1, "no run died between an answer and its commit, so this proves nothing"


class Assassin:
    """A sink's script that kills the child at the n-th point at which the relay learns or says something."""

    def __init__(self, dies_at: int, accepts: bool) -> None:
        self.dies_at, self.accepts, self.points = dies_at, accepts, 0
        self.child: Child | None = None
        self.at: Stage | None = None

    @property
    def bound(self) -> int:
        """How many mails may be doubled: this one, or the last one while only an envelope is here."""
        return 1 if self.accepts or self.at in ENVELOPE else 0

    def __call__(self, event: Event) -> Action | None:
        """Count, and kill; with `accepts` only after a mail was taken, else only before."""
        self.points += (event.stage == "dot") if self.accepts else event.stage in STAGES
        if self.points != self.dies_at or (self.accepts and event.stage != "dot"):
            return None
        self.at = event.stage
        while self.child is None:
            time.sleep(0.001)
        with suppress(ProcessLookupError):
            self.child.kill()
        return accept_then("reset") if self.accepts else reset()


ENVELOPE: tuple[Stage, ...] = ("mail", "rcpt", "data")
STAGES = (*ENVELOPE, "body", "dot")


@pytest.mark.parametrize("accepts", [False, True], ids=["before the dot is taken", "after the dot is taken"])
def test_a_worker_that_dies_at_any_step_of_a_mail_loses_nobody(
    tmp_path: Path, empty_database: Path, sink: Sink, ground: Graveyard, accepts: bool
) -> None:
    template = accepted(tmp_path / "template", empty_database, sink, READERS)
    point, ended = 0, -signal.SIGKILL
    while ended == -signal.SIGKILL:
        point += 1
        sink.forget()
        database = fresh(template, tmp_path / "run")
        sink.script = assassin = Assassin(point, accepts)
        assassin.child = ground.start(database, sink.port)
        ended = assassin.child.ended()
        sink.script = None
        if ended != 0:
            assert ground.start(database, sink.port).ended() == 0
        assert all_accounts_agree(database, sink, READERS) <= assassin.bound
    assert ended == 0
    assert point > READERS * (1 if accepts else 5)


def test_five_random_deaths_in_the_middle_of_a_mailing_lose_nobody(
    tmp_path: Path, empty_database: Path, sink: Sink, ground: Graveyard
) -> None:
    rolls = random.Random(seed := random.SystemRandom().randrange(1 << 32))
    database = accepted(tmp_path / "house", empty_database, sink, 600)
    for death in range(1, 6):
        child = ground.start(database, sink.port, connections=5)
        sink.wait(len(sink.mails) + rolls.randrange(20, 90), seconds=30)
        time.sleep(rolls.random() * 0.005)
        child.kill()
        assert child.ended() == -signal.SIGKILL
        assert len(sink.mails) < 600 + 5 * death, f"it came after the last mail (seed {seed})"
    assert ground.start(database, sink.port, connections=5).ended() == 0
    assert all_accounts_agree(database, sink, 600) <= 5 * 5, f"seed {seed}"


def test_ten_deploys_in_the_middle_of_a_mailing_double_nobody(
    tmp_path: Path, empty_database: Path, sink: Sink, ground: Graveyard
) -> None:
    database = accepted(tmp_path / "house", empty_database, sink, 200)
    sink.script = lambda event: delay(0.01) if event.stage == "dot" else None
    for _ in range(10):
        child = ground.start(database, sink.port, connections=5, until_finished=False)
        sink.wait(len(sink.mails) + 8, seconds=30)
        child.kill(signal.SIGTERM)
        assert child.ended() == 0
    assert ground.start(database, sink.port, connections=5).ended() == 0
    assert all_accounts_agree(database, sink, 200) == 0


def test_what_was_accepted_survives_the_death_of_the_api_in_the_moment_of_its_answer(
    tmp_path: Path, empty_database: Path, sink: Sink, ground: Graveyard
) -> None:
    folder, first = tmp_path / "house", date(2026, 1, 1)
    folder.mkdir()

    async def prepare() -> tuple[list[int], str]:
        async with house(folder, empty_database, sink) as world:
            await crowd(world, READERS)
            return [await world.issue(day=first + timedelta(days=n)) for n in range(20)], world.key

    issues, key = asyncio.run(prepare())
    for issue in issues:
        child = ground.start(
            folder / "broadsheet.db", sink.port, post=f"/api/v1/issues/{issue}/send", key=key
        )
        assert child.ended() == -signal.SIGKILL
    with sqlite3.connect(folder / "broadsheet.db") as database:
        (kept,) = database.execute("SELECT count(DISTINCT issue_id) FROM mailing").fetchone()
    database.close()
    assert kept == 20
    assert ground.start(folder / "broadsheet.db", sink.port).ended() == 0
    each = Counter((mail.recipient, message_from_bytes(mail.data)["Message-ID"]) for mail in sink.mails)
    assert len(each) == 20 * READERS
    assert set(each.values()) == {1}

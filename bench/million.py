"""A mailing to a million: the audience, the first mail, what the progress call takes, the ledger's two ends.

The middle is not sent: it is settled in the database by statements of ours while the mailing is paused.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from bench import postfix, watch
from bench.place import Place, until, wait_for
from bench.sizes import Sizes
from bench.steady import Steady
from bench.stock import POSTGRES, SQLITE, Stock
from bench.table import Figure, Target, percentile
from bench.web import Client
from tests.ports import free_port

FEW = 1_000
LOOKS = 10.0  # progress calls a second
CHUNK = 20_000  # rows that are settled in one transaction
SNAPSHOT = {SQLITE: 15, POSTGRES: 25}  # seconds for a million
PATIENCE = 120.0  # seconds for the first mail


@dataclass(frozen=True, slots=True)
class Desk:
    """A place where the programs run, the sink that takes its mail, the port of its API, and an editor's key."""

    here: Place
    sink: postfix.Sink
    port: int
    key: str

    def call(self, what: str) -> float:
        """Make a call to the API, and return when it was answered."""

        async def order() -> float:
            async with Client(self.port, self.key) as client:
                await client.call(f"POST /api/v1/{what}", b"{}")
                return time.perf_counter()

        return asyncio.run(order())

    def first_mail(self, issue: int) -> float:
        """Order an issue to be sent; return the seconds from the answer to the first mail at the relay."""
        self.sink.settle()
        self.sink.expect()
        answered = self.call(f"issues/{issue}/send")
        return self.sink.came_at(PATIENCE) - answered

    def looking(self) -> Steady:
        """Ask how far the mailing is, again and again, while a block runs; what is told is 404 until there is one."""

        async def look(client: Client) -> int:
            status, _ = await client.ask("GET /api/v1/mailings/1")
            return status

        return Steady(self.port, LOOKS, look, self.key)

    def finish(self, issue: int) -> None:
        """Wait until a mailing is finished; raise RuntimeError unless the books have everybody as sent."""
        state = f"SELECT state FROM mailing WHERE issue_id = {issue}"
        until(lambda: self.here.one(state) == "finished", "an end of the mailing", watch.PATIENCE)
        books = f"FROM tally JOIN mailing ON mailing.id = mailing_id WHERE issue_id = {issue}"
        sent, audience = self.here.rows(f"SELECT sum(sent), max(audience) {books}")[0]
        if sent != audience:
            raise RuntimeError(f"{sent} of {audience} mails were sent")


@dataclass(slots=True)
class Found:
    """What was measured on one database: seconds, mails a second, milliseconds."""

    first_of_few: list[float] = field(default_factory=list)
    first_of_many: list[float] = field(default_factory=list)
    snapshot: float = 0.0
    begun: float = 0.0
    ended: float = 0.0
    peers: list[float] = field(default_factory=list)
    looks: list[float] = field(default_factory=list)


def million(sizes: Sizes, stock: Stock) -> list[Figure]:
    """All of it on each database; `broadsheet run` on SQLite, `serve` beside `worker` on PostgreSQL."""
    figures: list[Figure] = []
    for database in stock.databases:
        found = Found()
        with _at_work(sizes, stock, database, FEW) as desk:
            for number in range(sizes.rounds):
                issue = desk.here.hand_in(number)
                found.first_of_few.append(desk.first_mail(issue))
                desk.finish(issue)
        with _at_work(sizes, stock, database, sizes.many) as desk:
            _many(sizes, desk, found)
        figures += _told(sizes, database, found)
    return figures


def _told(sizes: Sizes, database: str, found: Found) -> list[Figure]:
    at_most, look = Target(1), Target(10)
    snapshot = Target(SNAPSHOT[database] * sizes.many / 1_000_000)
    return [
        Figure(f"{database}, audience of {sizes.many:,}, s", [found.snapshot], target=snapshot),
        Figure(f"  first mail after the 202, {FEW:,} recipients, s", found.first_of_few, target=at_most),
        Figure(f"  first mail after the 202, {sizes.many:,} recipients, s", found.first_of_many, target=at_most),
        Figure(f"  GET /mailings/1, median of {len(found.looks):,}, ms", [percentile(found.looks, 0.5)], target=look),
        Figure("  GET /mailings/1, p99, ms", [percentile(found.looks, 0.99)], target=look),
        Figure("  GET /mailings/1, the longest, ms", [max(found.looks)], target=look),
        Figure(f"  the first {sizes.edge:,}, mails/s", [found.begun], [found.begun / found.peers[0]]),
        Figure(f"  the last {sizes.edge:,}, mails/s", [found.ended], [found.ended / found.peers[1]]),
        Figure("  smtp-source after each of them, mails/s", found.peers),
    ]  # fmt: skip


@contextmanager
def _at_work(sizes: Sizes, stock: Stock, database: str, readers: int) -> Iterator[Desk]:
    """Give a desk with so many readers, the programs running."""
    port = free_port()
    with ExitStack() as ends:
        sink = ends.enter_context(postfix.sink())
        relay = f"smtp+plain://127.0.0.1:{sink.port}?connections={sizes.connections}"
        here = ends.enter_context(stock.place(database, readers, relay))
        key = here.key()
        serving = ("--port", str(port))
        if database == SQLITE:
            ends.enter_context(here.running("run", *serving))
        else:
            ends.enter_context(here.running("worker"))
            ends.enter_context(here.running("serve", *serving))
        wait_for(port)
        until(lambda: here.one("SELECT count(*) FROM worker"), "a worker at work")
        time.sleep(2)  # what it does at its start is over
        yield Desk(here, sink, port, key)


def _many(sizes: Sizes, desk: Desk, found: Found) -> None:
    """Send to all of them but the middle, looking at the progress all the while."""
    here, sink = desk.here, desk.sink
    issue = here.hand_in(0)
    size, firsts = here.size_of(issue), found.first_of_many
    with desk.looking() as looking:
        seen = watch.samples(sink, sizes.edge, lambda: firsts.append(desk.first_mail(issue)))
        found.begun = watch.rate(seen)
        found.snapshot = watch.complete(here, issue)
    found.looks += [one.took for one in looking.answers if one.told == 200]
    desk.call("mailings/1/pause")
    until(lambda: here.one("SELECT sum(in_flight) FROM tally") == 0, "an end of what was in flight")
    found.peers.append(postfix.source(sink.port, sizes.connections, sizes.mails, size))
    left = _settle_all_but(here, issue, sizes.edge)
    with desk.looking() as looking:
        found.ended = watch.rate(watch.samples(sink, left, lambda: desk.call("mailings/1/resume")))
    found.looks += [one.took for one in looking.answers if one.told == 200]
    desk.finish(issue)
    found.peers.append(postfix.source(sink.port, sizes.connections, sizes.mails, size))


def _settle_all_but(here: Place, issue: int, last: int) -> int:
    """Record as sent what is owed of a paused mailing, but for the last readers; return what is still owed."""
    most = here.one("SELECT max(subscriber_id) FROM delivery")
    for low in range(1, most - last + 1, CHUNK):
        high = min(low + CHUNK - 1, most - last)
        which = f"issue_id = {issue} AND state = 'owed' AND subscriber_id BETWEEN {low} AND {high}"
        many = f"(SELECT count(*) FROM delivery WHERE {which})"
        here.change(
            f"UPDATE tally SET owed = owed - {many}, sent = sent + {many} WHERE worker_id = 0",
            f"UPDATE delivery SET state = 'sent', attempts = 1, done_at = due_at WHERE {which}",
        )
    left: int = here.one("SELECT count(*) FROM delivery WHERE state = 'owed'")
    return left

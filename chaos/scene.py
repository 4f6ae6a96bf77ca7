"""What a fault is given: a place with readers and an issue, a relay to misbehave, dice, and ways to wait."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from chaos import program
from chaos.place import Place, Program, moment, until
from chaos.servers import Server
from tests.ports import free_port
from tests.sink import Sink, at, delay

OVER = ("finished", "cancelled")
WAITING = "state IN ('owed', 'deferred')"


@dataclass
class Scene:
    """One run: everything is its own but the PostgreSQL server, which is ours."""

    place: Place
    sink: Sink
    rolls: random.Random
    readers: dict[int, str]
    server: Server | None = None
    key: str = ""
    bound: int = 0  # how many doubles may be
    notes: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)  # databases of the server that are to be dropped

    @property
    def addresses(self) -> list[str]:
        """Everybody's address, in the order in which they came."""
        return list(self.readers.values())

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a file."""
        return self.place.url.startswith("sqlite")

    @property
    def came(self) -> int:
        """How many mails the relay has."""
        return len(self.sink.mails)

    def slowly(self, seconds: float = 0.02) -> None:
        """Let the relay take its time over each mail, so that there is a middle of the run."""
        self.sink.script = at("dot", delay(seconds))

    def send(self, issue: str = "1", **how: str) -> int:
        """Order an issue by the command line and return the mailing's id."""
        options = [word for name, value in how.items() for word in (f"--{name.replace('_', '-')}", value)]
        number: int = self.place.ask("send", issue, *options)["id"]
        return number

    def worker(self, **settings: str) -> Program:
        """Start a worker."""
        return self.place.start("worker", **settings)

    @contextmanager
    def serving(self, **settings: str) -> Iterator[tuple[Program, httpx.Client]]:
        """Run pages and API while the block runs; the client is an editor's."""
        port = free_port()
        one = self.place.start("serve", "--port", str(port), **settings)
        headers = {"Authorization": f"Bearer {self.key}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
            until(lambda: not one.alive or answers(client), "an answer of the API")
            yield one, client
        if one.alive:
            one.kill()

    def arrive(self, more: int, seconds: float = 120) -> None:
        """Wait until the relay has so many mails more."""
        wanted = self.came + more
        until(lambda: self.came >= wanted, f"mail {wanted} of {len(self.addresses)}", seconds)

    def mailing(self, number: int = 1) -> dict[str, Any]:
        """Return state, problem and audience of a mailing."""
        names = ("state", "problem", "audience", "started_at")
        found = self.place.rows(f"SELECT {', '.join(names)} FROM mailing WHERE id = {number}")
        return dict(zip(names, found[0], strict=True))

    def count(self, *states: str) -> int:
        """Return how many rows are in these states."""
        these = ", ".join(f"'{state}'" for state in states)
        return int(self.place.one(f"SELECT count(*) FROM delivery WHERE state IN ({these})"))

    def finished(self, seconds: float = 180) -> None:
        """Wait until every mailing is over."""
        until(self.is_over, "the end of the mailing", seconds)

    def is_over(self) -> bool:
        """Whether every mailing is over."""
        return all(state in OVER for (state,) in self.place.rows("SELECT state FROM mailing"))

    def now(self) -> datetime:
        """Return the time as the programs have it."""
        added = program.read(self.place.clock) if self.place.clock else 0.0
        return datetime.now(UTC) + timedelta(seconds=added)

    def forward(self, seconds: float) -> None:
        """Turn the clock of all programs."""
        assert self.place.clock is not None
        program.write(self.place.clock, program.read(self.place.clock) + seconds)

    def patiently(self, seconds: float = 240, look: Callable[[], None] = lambda: None) -> int:
        """Turn the clock whenever all that is left waits for a later try; return how often that was."""
        end, turns = time.monotonic() + seconds, 0
        while not self.is_over():
            if time.monotonic() > end:
                until(self.is_over, "the end of the mailing", 0)
            if (wait := self.rest()) > 0:
                self.forward(wait)
                turns += 1
            look()
            time.sleep(0.3)
        return turns

    def rest(self) -> float:
        """Return the seconds until the last waiting row is due, or 0 while there is something to do now."""
        if self.count("in_flight") or self.mailing()["state"] != "sending":
            return 0.0
        dues = [moment(due) for (due,) in self.place.rows(f"SELECT due_at FROM delivery WHERE {WAITING}")]
        if not dues or min(dues) <= self.now():
            return 0.0
        return (max(dues) - self.now()).total_seconds() + 1

    def attempts(self) -> int:
        """Return the most tries that a mail took."""
        return int(self.place.one("SELECT coalesce(max(attempts), 0) FROM delivery"))

    def note(self, word: str) -> None:
        """Add to what the table says of this run."""
        self.notes.append(word)


def answers(client: httpx.Client) -> bool:
    """Tell whether a server is ready."""
    try:
        return client.get("/readyz", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False

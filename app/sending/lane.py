"""A lane: claims that wait for a connection, letters first, and what is known of the relays that serve them."""

import asyncio
import heapq
import math
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from time import monotonic
from typing import NamedTuple

from app.delivery.claims import Claim, Key
from app.mail.relay import Relay
from app.sending.gate import Gate
from app.sending.paces import Paces
from app.sending.stock import Stock


class Job(NamedTuple):
    """A claim in the queue: letters go before issues, then the order of claiming.

    `term` is the worker's unbroken life in which it was claimed; a job of an earlier one is not ours any more.
    """

    rank: int
    number: int
    claim: Claim
    stock: Stock | None
    term: int

    @property
    def holds(self) -> bool:
        """Whether a lost answer leaves this mail uncertain instead of owed."""
        return self.stock is not None and self.stock.holds


class Lane:
    """A queue of jobs, the claims of this lane that are not settled yet, and its relays' gates.

    A job goes straight to a connection that waits, of the relay that is furthest behind its share. Where the
    relays' weights differ, nobody runs ahead of a relay that is well; where they are equal, none waits for another.
    """

    def __init__(self, relays: Sequence[Relay], paces: Paces) -> None:
        self._paces = paces
        self.jobs: list[Job] = []
        self.held: set[Key] = set()
        self.gates = {
            id(relay): Gate(relay.url.name, relay.url.connections, relay.url.weight) for relay in relays
        }
        self._is_weighted = len({gate.weight for gate in self.gates.values()}) > 1
        self._waiting: deque[tuple[Gate, asyncio.Future[Job]]] = deque()

    @property
    def problem(self) -> str | None:
        """What keeps every relay of this lane from taking mail, if something does."""
        if not self.gates:
            return "Every relay is kept to letters, so there is none for issues."
        shut = [gate.trouble for gate in self.gates.values() if gate.trouble]
        return shut[0] if len(shut) == len(self.gates) else None

    @property
    def in_hand(self) -> int:
        """How many jobs its connections have taken and not put down."""
        return sum(gate.in_hand for gate in self.gates.values())

    @property
    def health(self) -> dict[str, str | None]:
        """What is wrong with each of its relays, by name."""
        return {gate.name: gate.trouble for gate in self.gates.values()}

    @property
    def fault(self) -> str | None:
        """What is wrong with us at every relay of this lane, if something is."""
        gates = self.gates.values()
        return next(iter(gates)).fault if gates and all(gate.is_our_fault for gate in gates) else None

    @property
    def failures(self) -> int:
        """How often its relays have failed since they last took mail."""
        return sum(gate.failures for gate in self.gates.values())

    def doubt(self) -> None:
        """Let few mails go first, and relays that are left alone for a fault of ours be tried at once."""
        for gate in self.gates.values():
            gate.doubt()

    def room(self, held: int, at: float) -> int:
        """Return how many more may be claimed: up to two a connection, one for a relay that may be down."""
        if self.problem:
            return int(held == 0 and any(at >= gate.until and not gate.spent for gate in self.gates.values()))
        connections = sum(gate.connections for gate in self.gates.values() if not gate.trouble)
        return 2 * connections - held if 2 * held <= 3 * connections else 0

    def put(self, job: Job) -> None:
        """Queue a job, or hand it to who waits for one."""
        heapq.heappush(self.jobs, job)
        self.match()

    async def next(self, gate: Gate, seconds: float | None) -> Job:
        """Take a job for a connection of this gate, or wait for one. Raises TimeoutError after so many seconds."""
        at = monotonic()
        if self.jobs and not self._is_choosy and not (self._is_weighted and gate.turn > self._least(at)):
            gate.take(at)
            return heapq.heappop(self.jobs)
        given: asyncio.Future[Job] = asyncio.get_running_loop().create_future()
        self._waiting.append((gate, given))
        if self._is_choosy:
            self.match()
        try:
            async with asyncio.timeout(seconds):
                return await given
        except (TimeoutError, asyncio.CancelledError):
            if given.done() and not given.cancelled():
                gate.turn -= 1 / gate.weight
                self.put(given.result())  # it came at the very moment
            raise

    def match(self) -> None:
        """Hand out jobs for as long as there are any and somebody may take one."""
        if not self.jobs or not self._waiting:
            return
        at = monotonic()
        self._waiting = deque(one for one in self._waiting if not one[1].done())
        passed: list[Job] = []
        while self.jobs and self._waiting:
            job = heapq.heappop(self.jobs)
            if (first := self._first(job, at)) is not None:
                self._waiting.remove(first)
                first[0].take(at)
                self._paces.take(first[0].name, job.claim)
                first[1].set_result(job)
                continue
            passed.append(job)
            if not self._is_choosy:
                break
        for job in passed:
            heapq.heappush(self.jobs, job)

    def _first(self, job: Job, at: float) -> tuple[Gate, asyncio.Future[Job]] | None:
        """Return who may take a job, waits, and is furthest behind; None while it is another relay's turn."""
        able = [one for one in self._waiting if self._lets(one[0], job)] if self._is_choosy else self._waiting
        first = min(able, key=lambda one: one[0].turn, default=None)
        if first is not None and self._is_weighted and first[0].turn > self._least(at, job):
            return None
        return first

    @property
    def _is_choosy(self) -> bool:
        """Whether there is any mail that some relay may not take."""
        return self._paces.restricted or any(gate.spent for gate in self.gates.values())

    def _lets(self, gate: Gate, job: Job) -> bool:
        return not gate.spent and self._paces.lets(gate.name, job.claim.provider)

    def _least(self, at: float, job: Job | None = None) -> float:
        """Return the turn of the relay furthest behind, of those that are well and may take the job, if one is named.

        One that may not take it does not catch up on it later.
        """
        well = [gate for gate in self.gates.values() if gate.is_well(at)]
        able = [gate for gate in well if job is None or self._lets(gate, job)]
        least = min((gate.turn for gate in able), default=math.inf)
        for gate in well:
            if gate not in able and able:
                gate.turn = max(gate.turn, least)
        return least

    def stuck(self, all_of_them: bool) -> list[Job]:
        """Take from the queue, and return, the jobs that no relay may take now: it is out, or has closed to them.

        Before that, jobs are handed out that waited for a relay which has fallen silent.
        """
        self.match()
        if all_of_them or self.problem:
            return self.take_back(lambda _: True)
        if not self._is_choosy:
            return []
        gates = [gate for gate in self.gates.values() if not gate.trouble]
        return self.take_back(lambda job: not any(self._lets(gate, job) for gate in gates))

    def limits(self, providers: Collection[str]) -> Awaitable[dict[str, int | None]]:
        """Return how many mails of which providers its relays could take now; see `Paces.limits`."""
        open_now = [gate.name for gate in self.gates.values() if not gate.trouble]
        queued = Counter(job.claim.provider for job in self.jobs)
        return self._paces.limits(providers, open_now or [gate.name for gate in self.gates.values()], queued)

    def answered(self, gate: Gate, at: float) -> None:
        """Note that a relay answered to a mail; one that comes back does not catch up on what it missed."""
        if gate.failures:
            others = [one.turn for one in self.gates.values() if one is not gate and one.is_well(at)]
            gate.turn = max(gate.turn, min(others, default=gate.turn))
        gate.open(at)

    def take_back(self, which: Callable[[Job], bool]) -> list[Job]:
        """Take from the queue, and return, the jobs that `which` names and no connection has taken."""
        taken = [job for job in self.jobs if which(job)]
        self.jobs = [job for job in self.jobs if not which(job)]
        heapq.heapify(self.jobs)
        return taken

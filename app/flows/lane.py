"""A lane: claims that wait for a connection, letters first, and what is known of the relays that serve them."""

import asyncio
import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.delivery.claims import Claim, Key
from app.flows.deliver import Stock
from app.flows.gate import Gate, loop_time
from app.mail.relay import Relay


@dataclass(frozen=True, slots=True, order=True)
class Job:
    """A claim in the queue: letters go before issues, then the order of claiming.

    `term` is the worker's unbroken life in which it was claimed; a job of an earlier one is not ours any more.
    """

    rank: int
    number: int
    claim: Claim = field(compare=False)
    stock: Stock | None = field(compare=False)
    term: int = field(compare=False)

    @property
    def holds(self) -> bool:
        """Whether a lost answer leaves this mail uncertain instead of owed."""
        return self.stock is not None and self.stock.holds


class Lane:
    """A queue of jobs, the claims of this lane that are not settled yet, and its relays' gates.

    A job goes straight to a connection that waits, of the relay that is furthest behind its share. Where the
    relays' weights differ, nobody runs ahead of a relay that is well; where they are equal, none waits for another.
    """

    def __init__(self, relays: Sequence[Relay]) -> None:
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
        shut = [gate.problem for gate in self.gates.values() if gate.problem]
        return shut[0] if len(shut) == len(self.gates) else None

    @property
    def health(self) -> dict[str, str | None]:
        """What is wrong with each of its relays, by name."""
        return {gate.name: gate.problem for gate in self.gates.values()}

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
            return int(held == 0 and any(at >= gate.until for gate in self.gates.values()))
        connections = sum(gate.connections for gate in self.gates.values() if not gate.problem)
        return 2 * connections - held if held <= connections else 0

    def put(self, job: Job) -> None:
        """Queue a job, or hand it to who waits for one."""
        heapq.heappush(self.jobs, job)
        self.match()

    async def next(self, gate: Gate, seconds: float | None) -> Job:
        """Take a job for a connection of this gate, or wait for one. Raises TimeoutError after so many seconds."""
        at = loop_time()
        if self.jobs and not (self._is_weighted and gate.turn > self._least(at)):
            gate.take(at)
            return heapq.heappop(self.jobs)
        given: asyncio.Future[Job] = asyncio.get_running_loop().create_future()
        self._waiting.append((gate, given))
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
        at = loop_time()
        self._waiting = deque(one for one in self._waiting if not one[1].done())
        while self.jobs and self._waiting:
            first = min(self._waiting, key=lambda one: one[0].turn)
            if self._is_weighted and first[0].turn > self._least(at):
                return
            self._waiting.remove(first)
            first[0].take(at)
            first[1].set_result(heapq.heappop(self.jobs))

    def _least(self, at: float) -> float:
        """Return the turn of the relay furthest behind, of those that are well."""
        return min((gate.turn for gate in self.gates.values() if gate.is_well(at)), default=math.inf)

    def answered(self, gate: Gate, at: float) -> None:
        """Note that a relay answered to a mail; one that comes back does not catch up on what it missed."""
        others = [one.turn for one in self.gates.values() if one is not gate and one.is_well(at)]
        if gate.failures and others:
            gate.turn = max(gate.turn, min(others))
        gate.open(at)

    def take_back(self, which: Callable[[Job], bool]) -> list[Job]:
        """Take from the queue, and return, the jobs that `which` names and no connection has taken."""
        taken = [job for job in self.jobs if which(job)]
        self.jobs = [job for job in self.jobs if not which(job)]
        heapq.heapify(self.jobs)
        return taken

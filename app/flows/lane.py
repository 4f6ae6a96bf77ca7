"""A lane: claims that wait for a connection, letters first, and what is known of the relays that serve them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from app.delivery.claims import Claim
from app.flows.deliver import Stock
from app.mail.relay import Line, Outcome, Refused, Relay, RelayDown, Uncertain, Unreached

log = logging.getLogger(__name__)

TOO_LARGE = 552  # the one refusal of MAIL that is about the message (RFC 1870 §6.1)
LONGEST_WAIT = 60.0  # seconds between two tries at a relay that is down
RECENT = 5.0  # seconds for which an answer shows that a relay takes mail, whatever one connection meets

Name = tuple[str, tuple[int, ...]]  # a claim's table and key


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


@dataclass
class Gate:
    """Whether a relay can be reached, and when to try again: after 1 s, 2 s, 4 s … a minute."""

    probing: asyncio.Lock = field(default_factory=asyncio.Lock)
    failures: int = 0
    until: float = 0.0
    problem: str | None = None
    answered: float = float("-inf")  # loop time of the last answer to a mail

    def shut(self, problem: str, at: float) -> None:
        """Note a failure at loop time `at`: those of one burst count once, none while other mails get through."""
        if at >= self.until and at - self.answered > RECENT:
            self.failures += 1
            self.until = at + pause(self.failures)
            self.problem = problem

    def open(self, at: float) -> None:
        """Note that the relay answered to a mail at loop time `at`; a connection alone proves nothing."""
        self.failures, self.until, self.problem, self.answered = 0, 0.0, None, at


def name_of(claim: Claim) -> Name:
    """Return what names a claim's row."""
    return claim.table.name, claim.key


def pause(failures: int) -> float:
    """Return how many seconds to wait after so many failures in a row."""
    return float(min(2.0 ** (min(failures, 32) - 1), LONGEST_WAIT))


class Patience:
    """Waits that a worker breaks off when it stops."""

    def __init__(self) -> None:
        self._waits: set[asyncio.Timeout] = set()
        self._is_over = False

    @asynccontextmanager
    async def lasting(self) -> AsyncIterator[None]:
        """Give a block that `end` breaks off with TimeoutError."""
        async with asyncio.timeout(0 if self._is_over else None) as wait:
            self._waits.add(wait)
            try:
                yield
            finally:
                self._waits.discard(wait)

    def end(self) -> None:
        """Break off every wait, now and from now on."""
        self._is_over = True
        while self._waits:
            self._waits.pop().reschedule(asyncio.get_running_loop().time())


class Lane:
    """A queue of jobs, the claims of this lane that are not settled yet, and its relays' gates."""

    def __init__(self, relays: Sequence[Relay]) -> None:
        self.jobs: asyncio.PriorityQueue[Job] = asyncio.PriorityQueue()
        self.held: set[Name] = set()
        self.gates = {id(relay): Gate() for relay in relays}
        self._connections = sum(relay.url.connections for relay in relays)

    @property
    def problem(self) -> str | None:
        """What keeps every relay of this lane from taking mail, if something does."""
        if not self.gates:
            return "Every relay is kept to letters, so there is none for issues."
        shut = [gate.problem for gate in self.gates.values() if gate.problem]
        return shut[0] if len(shut) == len(self.gates) else None

    def room(self, held: int, at: float) -> int:
        """Return how many more may be claimed: up to two a connection, one for a relay that may be down."""
        if self.problem:
            return int(held == 0 and any(at >= gate.until for gate in self.gates.values()))
        return 2 * self._connections - held if held <= self._connections else 0

    async def next(self, seconds: float | None) -> Job:
        """Wait for a job and take it. Raises TimeoutError after so many seconds."""
        with suppress(asyncio.QueueEmpty):
            return self.jobs.get_nowait()
        async with asyncio.timeout(seconds):
            return await self.jobs.get()

    def take_back(self, which: Callable[[Job], bool]) -> list[Job]:
        """Take from the queue, and return, the jobs that `which` names and no connection has taken."""
        jobs = []
        while not self.jobs.empty():
            jobs.append(self.jobs.get_nowait())
        taken = [job for job in jobs if which(job)]
        for job in jobs:
            if job not in taken:
                self.jobs.put_nowait(job)
        return taken


@dataclass
class Post:
    """One connection's place: which relay and lane it serves, the line it has open, and its own bad luck."""

    relay: Relay
    lane: Lane
    line: Line | None = None
    in_hand: bool = False  # whether a mail may have been handed over whose outcome is not known yet
    refused: int = 0  # failures of this connection in a row, while others may get through

    @property
    def gate(self) -> Gate:
        """What all connections to this relay know of it."""
        return self.lane.gates[id(self.relay)]

    @property
    def ready(self) -> bool:
        """Whether a line is open that may take another mail."""
        return self.line is not None and self.line.usable

    def answered(self, at: float) -> None:
        """Note that the relay answered to a mail at loop time `at`."""
        self.refused = 0
        self.gate.open(at)

    def heard(self, outcome: Outcome, was_fresh: bool, at: float) -> str | None:
        """Note what an outcome at loop time `at` says of the relay; returns why the mail is to wait, if it is."""
        name = self.relay.url.name
        if isinstance(outcome, Refused) and outcome.stage == "mail" and outcome.reply.code != TOO_LARGE:
            said = f"{outcome.reply.code} {outcome.reply.text}"  # it is we who are refused, not this reader
            self.failed(f"The relay {name} refuses our sender: {said}", at)
            return said
        if not isinstance(outcome, Uncertain | Unreached):
            self.answered(at)
        elif was_fresh or isinstance(outcome, Uncertain):  # any other connection is simply replaced
            self.failed(f"The relay {name} takes no mail: {outcome.reason}", at)
            if isinstance(outcome, Unreached) and outcome.reply is None:
                return outcome.reason  # it broke off without a word, so this very mail may be why
        return None

    def failed(self, problem: str, at: float) -> None:
        """Note a failure at loop time `at`: this connection waits, or all do where nobody gets through."""
        self.gate.shut(problem, at)
        self.refused = 0 if self.gate.failures else self.refused + 1

    async def connect(self, patience: Patience) -> None:
        """Open the line, or note why that failed; a worker that stops waits no longer."""
        try:
            async with patience.lasting():
                self.line = await self.relay.connect()
        except RelayDown as down:
            self.failed(down.sentence, asyncio.get_running_loop().time())
            log.warning("%s", down.sentence)
        except TimeoutError:
            log.info("stopping, so a relay that has not answered is left alone")

    async def hang_up(self) -> None:
        """Close the line, if there is one."""
        line, self.line = self.line, None
        if line is not None:
            await line.close()

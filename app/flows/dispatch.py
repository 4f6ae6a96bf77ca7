"""Hands over what is owed: one writer claims and records, each connection sends one mail after the other.

A connection takes its next mail only after the outcome of its last is committed, so a crash can double at
most one mail for each connection. While results cannot be saved, nothing more is sent.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from app.core.db import Database
from app.core.errors import Unavailable
from app.core.jobs import Wake
from app.delivery import claims, mailings
from app.delivery.claims import Claim, Settlement
from app.delivery.models import State
from app.flows import deliver
from app.flows.compose import Composer
from app.flows.deliver import Stock
from app.mail.relay import Line, Outcome, Relay, RelayDown, Unreached

log = logging.getLogger(__name__)

TICK = 1.0  # seconds between looks at the ledger when nobody calls
IDLE = 10.0  # seconds after which an unused connection is closed
LONGEST_WAIT = 60.0  # seconds between two tries at a relay that is down
FENCE = 18.0  # seconds without a heartbeat after which nothing more is handed over


@dataclass(frozen=True, slots=True, order=True)
class Job:
    """A claim in the queue: letters go before issues, then the order of claiming."""

    rank: int
    number: int
    claim: Claim = field(compare=False)
    stock: Stock | None = field(compare=False)

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

    def shut(self, problem: str, at: float) -> None:
        """Note a failure to reach the relay at loop time `at`; those of one burst count once."""
        if at >= self.until:
            self.failures += 1
            self.until = at + min(2.0 ** (self.failures - 1), LONGEST_WAIT)
            self.problem = problem

    def open(self) -> None:
        """Note that the relay answers."""
        self.failures, self.until, self.problem = 0, 0.0, None


class Dispatch:
    """The delivering half of a worker: `write` and one `send` a connection run side by side until cancelled."""

    def __init__(
        self,
        db: Database,
        composer: Composer,
        wake: Wake,
        relays: Sequence[Relay],
        now: Callable[[], datetime],
    ) -> None:
        self.db, self.composer, self.now = db, composer, now
        self._wake, self._ear = wake, wake.ear()
        self.worker_id = 0
        self.beat_at = 0.0  # loop time of the last heartbeat that was saved
        self.stopping = False
        self.sent: Counter[int] = Counter()  # mails recorded as sent, by mailing, since somebody last looked
        self.gates = {id(relay): Gate() for relay in relays}
        self._relays = relays
        self._letters: asyncio.PriorityQueue[Job] = asyncio.PriorityQueue()
        own_lane = any(relay.url.lane == "letters" for relay in relays)
        self._issues: asyncio.PriorityQueue[Job] = asyncio.PriorityQueue() if own_lane else self._letters
        self._connections = sum(relay.url.connections for relay in relays)
        self._stocks: dict[int, Stock] = {}
        self._results: list[tuple[Settlement, asyncio.Future[None]]] = []
        self._outstanding = 0
        self._number = 0

    @property
    def idle(self) -> bool:
        """Whether every claim has been settled and recorded."""
        return self._outstanding == 0

    @property
    def problem(self) -> str | None:
        """What keeps every relay from taking mail, if something does."""
        shut = [gate.problem for gate in self.gates.values() if gate.problem]
        return shut[0] if len(shut) == len(self.gates) else None

    async def write(self) -> None:
        """Record outcomes and claim more, one transaction after another, each with all that has arrived."""
        pause = TICK
        while True:
            await self._ear.wait(pause)
            try:
                await self._step()
                pause = TICK
            except Unavailable as error:
                pause = min(pause * 2, LONGEST_WAIT / 4)
                log.error("results cannot be saved, so nothing is sent: %s", error.detail)
                await asyncio.sleep(pause)

    async def send(self, relay: Relay) -> None:
        """Hand over jobs on one connection for as long as this worker lives."""
        queue = self._letters if relay.url.lane == "letters" else self._issues
        gate, line = self.gates[id(relay)], None
        try:
            while True:
                if gate.failures:
                    async with gate.probing:  # one connection tries, the others wait for what it finds
                        await asyncio.sleep(max(0.0, gate.until - _loop_time()))
                        line = await self._serve(relay, gate, queue, line)
                else:
                    line = await self._serve(relay, gate, queue, line)
        finally:
            if line is not None:
                await line.close()

    def release_queue(self) -> None:
        """Give back every claim that no connection has taken yet."""
        for queue in {id(q): q for q in (self._letters, self._issues)}.values():
            self._release(queue, lambda _: True)

    async def _serve(
        self, relay: Relay, gate: Gate, queue: asyncio.PriorityQueue[Job], line: Line | None
    ) -> Line | None:
        """Take one job and hand it over; returns the connection as long as it is of use."""
        try:
            job = await _next(queue, IDLE if line is not None else None)
        except TimeoutError:
            await _close(line)
            return None
        now = self.now()
        try:
            envelope = deliver.compose(self.composer, job.stock, job.claim)
        except Exception as error:
            if not isinstance(error, ValueError):
                log.exception("a message could not be composed")
            await self._record(deliver.failed(job.claim, str(error), now))
            return line
        if _loop_time() - self.beat_at > FENCE:
            await self._record(deliver.released(job.claim, now))
            return line
        if line is None or not line.usable:
            await _close(line)
            line = await self._connect(relay, gate)
        outcome: Outcome = Unreached(gate.problem or "the relay cannot be reached")
        if line is not None:
            was_fresh = line.fresh
            outcome = await line.hand_over(envelope.sender, envelope.recipient, envelope.message)
            if isinstance(outcome, Unreached) and was_fresh:
                gate.shut(f"The relay {relay.url.name} takes no mail: {outcome.reason}", _loop_time())
        jitter = random.uniform(-1, 1)
        settled = deliver.settlement(job.claim, outcome, relay.url.name, job.holds, self.now(), jitter)
        await self._record(settled)
        return line

    async def _connect(self, relay: Relay, gate: Gate) -> Line | None:
        try:
            line = await relay.connect()
        except RelayDown as down:
            gate.shut(down.sentence, _loop_time())
            log.warning("%s", down.sentence)
            return None
        gate.open()
        return line

    async def _record(self, one: Settlement) -> None:
        """Return once the outcome is committed, whenever that is."""
        saved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._results.append((one, saved))
        self._ear.call()
        await saved

    async def _step(self) -> None:
        """Record what has arrived and claim what there is room for, in one transaction."""
        if self.problem or self.stopping:
            self.release_queue()
        taken = list(self._results)
        held = self._outstanding - len(taken)
        room = 0 if self.stopping else self._room(held)
        if not taken and not room:
            return
        async with self.db.transaction() as session:
            await claims.settle(session, self.worker_id, [one for one, _ in taken])
            taken_on = await self._claim(session, room) if room else []
        self._results = self._results[len(taken) :]
        self._outstanding = held + len(taken_on)
        self.sent.update(
            one.claim.mailing_id for one, _ in taken if one.claim.mailing_id and one.state == State.SENT
        )
        for _, saved in taken:
            if not saved.done():
                saved.set_result(None)
        for claim in taken_on:
            self._enqueue(claim)
        if taken and self.idle:
            self._wake.call()  # a mailing may be finished

    def _room(self, held: int) -> int:
        """Return how many more may be claimed: up to two a connection, one for a relay that may be down."""
        at = _loop_time()
        if self.problem:
            return int(any(at >= gate.until for gate in self.gates.values()) and held == 0)
        return 2 * self._connections - held if held <= self._connections else 0

    async def _claim(self, session: AsyncSession, room: int) -> list[Claim]:
        now = self.now()
        letters = await claims.claim_letters(session, self.worker_id, max(1, room // 2), now)
        under_way = await mailings.under_way(session)
        ids = {one.id or 0 for one in under_way}
        self._release(self._issues, lambda job: job.stock is not None and job.stock.mailing_id not in ids)
        known = {key: one for key, one in self._stocks.items() if key in ids}
        for one in under_way:
            if one.id not in known and (made := await deliver.stock(session, self.composer, one)):
                known[made.mailing_id] = made
        self._stocks = known
        room -= len(letters)
        return letters + await deliver.claim(session, self.worker_id, list(known.values()), room, now)

    def _enqueue(self, claim: Claim) -> None:
        self._number += 1
        stock = self._stocks.get(claim.mailing_id or 0)
        queue = self._letters if claim.mailing_id is None else self._issues
        queue.put_nowait(Job(int(claim.mailing_id is not None), self._number, claim, stock))

    def _release(self, queue: asyncio.PriorityQueue[Job], which: Callable[[Job], bool]) -> None:
        jobs = []
        while not queue.empty():
            jobs.append(queue.get_nowait())
        for job in jobs:
            if which(job):
                saved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._results.append((deliver.released(job.claim, self.now()), saved))
                self._ear.call()
            else:
                queue.put_nowait(job)


async def _next(queue: asyncio.PriorityQueue[Job], seconds: float | None) -> Job:
    with suppress(asyncio.QueueEmpty):
        return queue.get_nowait()
    async with asyncio.timeout(seconds):
        return await queue.get()


async def _close(line: Line | None) -> None:
    if line is not None:
        await line.close()


def _loop_time() -> float:
    return asyncio.get_running_loop().time()

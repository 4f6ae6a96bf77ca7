"""A worker: it registers, dispatches what is owed, and its timers bring every mailing forward."""

import asyncio
import fcntl
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncSession

from app.core import jobs
from app.core.clock import clock
from app.core.db import Database
from app.core.errors import BroadsheetError, Misconfigured
from app.core.jobs import Ear, Wake
from app.core.relay_url import RelayUrl
from app.delivery import books, mailings, workers
from app.editors import answers
from app.feedback import store as feedback
from app.flows import bounce, imports, numbers, publish
from app.flows.compose import Composer
from app.flows.exchanges import Exchanges
from app.flows.rounds import Rounds
from app.flows.watch import Watch
from app.mail import verdict
from app.mail.relay import Relay
from app.sending import deliver
from app.sending.dispatch import Dispatch

log = logging.getLogger(__name__)

TICK = 1.0
BEAT = 5.0
LAST_STEPS = 10.0  # seconds that the loops have to come to an end
SMOOTHING = 0.3  # how much the last second counts in a mailing's rate


class Worker:
    """One process's share of the work; `run` goes on until it is told to stop, then drains."""

    def __init__(
        self,
        db: Database,
        composer: Composer,
        wake: Wake,
        open_relay: Callable[[RelayUrl], Relay],
        now: Callable[[], datetime] = clock,
    ) -> None:
        self.db, self.composer, self.wake, self.now = db, composer, wake, now
        self.relays = [open_relay(url) for url in composer.settings.relay_urls]
        self.dispatch = Dispatch(db, composer, wake, self.relays, now)
        self.watch = Watch(db, composer.settings, wake, now)
        self._rounds = Rounds(db, composer)
        self._exchanges = Exchanges(db)
        self.id = 0
        self._problem: str | None = ""  # what was last said on the mailings; at first nobody knows
        self._pulse, self._over = Ear(), asyncio.Event()
        self._steady_since = 0.0  # loop time of the first heartbeat after a silence
        self._rates: dict[int, float] = {}
        self._rated_at = float("-inf")  # loop time of the last look at the rates

    async def run(self, stop: asyncio.Event, name: str) -> None:
        """Register under `name`, deliver until `stop` is set, finish what is open, and sign off."""
        await asyncio.to_thread(verdict.table)  # made now, so that no mail waits for it
        async with self.db.transaction() as session:
            await publish.pause_stale(session, await workers.last_at_work(session), self.now())
            self.id = await workers.register(session, name, self.now())
        self.dispatch.worker_id = self.id
        self._beaten()
        loops: list[Callable[[], Awaitable[None]]] = [
            self.dispatch.write,
            lambda: jobs.every(TICK, self.dispatch.look, self._over, self.wake.ear()),
            lambda: jobs.every(TICK, self.report, self._over, self.wake.ear()),
            lambda: jobs.every(BEAT, self.beat, self._over, self._pulse),
            lambda: jobs.every(TICK, self.watch.step, self._over, Ear()),
            lambda: jobs.engine(self.db.url, self.wake).run(self._jobs(), self._over),
        ]
        sends: list[Callable[[], Awaitable[None]]] = []
        for relay in self.relays:
            sends += [lambda relay=relay: self.dispatch.send(relay)] * relay.url.connections  # type: ignore[misc]
        senders = [asyncio.create_task(restarted(send)) for send in sends]
        steady = [asyncio.create_task(restarted(loop)) for loop in loops]
        try:
            await stop.wait()
            await self._drain()
            # A loop is let out of its transaction by itself: one cut short would leave the database held.
            await asyncio.wait(steady, timeout=LAST_STEPS)
        finally:
            for task in (*senders, *steady):
                task.cancel()
            await asyncio.gather(*senders, *steady, return_exceptions=True)
            await self.watch.close()
        async with self.db.transaction() as session:
            await workers.sign_off(session, self.id, self.now())

    def _jobs(self) -> dict[str, jobs.Job]:
        """Return what any one worker does for all."""
        those = (self.advance, self.hear, self.round, self.take_in, self.look_up)
        return {name: safely(job) for name, job in zip(jobs.NAMES, those, strict=True)}

    async def advance(self) -> None:
        """Start what is due, render it, owe it to its readers, and finish what is done."""
        await self.db.perform(lambda session: publish.begin_due(session, self.now()))
        await publish.set_type(self.db, self.composer)
        await self._enlist()
        for mailing_id in await self.db.perform(lambda session: deliver.look_after(session, self.now())):
            log.info("mailing %d is finished", mailing_id)

    async def report(self) -> None:
        """Say on the mailings what keeps this worker from sending, and how fast it sends."""
        self._note_rates()
        if (problem := self.dispatch.problem) or problem != self._problem or self._rates:
            await self.db.perform(partial(self._tell, problem))
        self._problem = problem

    async def _tell(self, problem: str | None, session: AsyncSession) -> None:
        if problem or problem != self._problem:  # else what another worker says would be taken back
            await mailings.report_problem(session, problem)
        for mailing_id, rate in self._rates.items():
            await books.note_rate(session, mailing_id, self.id, rate, self.now())

    async def beat(self) -> None:
        """Show that this worker lives, and give back what the dead held.

        Nobody is called dead in the first 30 s after one's own start or silence: after a database that
        stood still every heartbeat is old.
        """
        async with self.db.transaction() as session:
            await workers.beat(session, self.id, self.now())
        self._beaten()
        if asyncio.get_running_loop().time() - self._steady_since < workers.LEASE.total_seconds():
            return
        async with self.db.transaction() as session:
            freed = await workers.free_lapsed(session, self.id, self.now())
            await answers.forget_old(session, self.now())
            await feedback.forget_old(session, self.now())
        if freed:
            log.warning("%d deliveries of a worker that is gone were given back", freed)

    async def take_in(self) -> None:
        """Take files of readers in, a batch at a time."""
        while not self.dispatch.stopping and await imports.work(self.db, self.composer.settings, self.now()):
            pass

    async def hear(self) -> None:
        """Act on what came back, and count what went where."""
        while not self.dispatch.stopping and await bounce.work(self.db, self.composer, self.now()):
            pass
        await numbers.count_reach(self.db)

    async def round(self) -> None:
        """Do for readers what is not mail: answer the form, end pauses, forget what has had its time."""
        if not self.dispatch.stopping and await self._rounds.work(self.now()):
            self.wake.call()

    async def look_up(self) -> None:
        """Find out whose mailboxes the readers have."""
        while not self.dispatch.stopping and await self._exchanges.work(self.now()):
            pass

    def _beaten(self) -> None:
        if not self.dispatch.fence.renew():
            self._steady_since = asyncio.get_running_loop().time()

    async def _enlist(self) -> None:
        """Owe every mailing in preparation to its audience, a chunk a transaction, sending meanwhile."""
        for mailing in [one for one in await self.db.told(mailings.under_way) if one.enlisted_at is None]:
            async with self.db.reading() as session:
                whose = await publish.audience_of(session, mailing)
            while mailing.enlisted_at is None and mailing.state == "preparing":
                had = mailing.audience
                mailing = await self.db.perform(
                    lambda session: publish.enlist_next(session, mailing.id or 0, whose, self.now())  # noqa: B023
                )
                if not had:  # whoever hands over looks by himself from then on
                    self.wake.call()

    def _note_rates(self) -> None:
        at = asyncio.get_running_loop().time()
        if (passed := at - self._rated_at) < TICK:
            return
        self._rated_at = at
        recent, self.dispatch.sent = self.dispatch.sent, type(self.dispatch.sent)()
        for mailing_id in {*self._rates, *recent}:
            before = self._rates.get(mailing_id, float(recent[mailing_id]))
            self._rates[mailing_id] = before + SMOOTHING * (recent[mailing_id] / passed - before)
        self._rates = {mailing_id: rate for mailing_id, rate in self._rates.items() if rate > 0.01}

    async def _drain(self) -> None:
        """Take nothing new, and wait until what is in the air has landed and is recorded."""
        self.dispatch.stop()
        while not self.dispatch.idle:
            await asyncio.sleep(0.02)
        self._over.set()
        self._pulse.call()
        self.wake.call()


def safely(job: jobs.Job) -> jobs.Job:
    """Let nothing out of a job: what went wrong is logged, and it is asked for again soon."""

    async def safe() -> None:
        try:
            await job()
        except BroadsheetError as error:
            log.error("%s", error.detail)
        except Exception:
            log.exception("a job of the worker failed; it is tried again")

    return safe


async def restarted(loop: Callable[[], Awaitable[None]]) -> None:
    """Keep a loop going until it ends by itself: a bug is logged with its trace, and it begins anew."""
    while True:
        try:
            return await loop()
        except BroadsheetError as error:
            log.error("%s", error.detail)
        except Exception:
            log.exception("a loop of the worker failed and begins anew")
        await asyncio.sleep(1)


def claim_slot(data_dir: Path, database: str, alone: bool) -> tuple[str, int]:
    """Take a database's first free slot on this machine by a file lock; return the worker's name and the lock.

    Raises Misconfigured when the database allows one worker only (`alone`) and there is one already.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    for slot in range(1 if alone else 64):
        lock = os.open(data_dir / f"worker-{database}-{slot}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        return f"{socket.gethostname()}-{slot}", lock
    raise Misconfigured(
        "Another worker already delivers from this SQLite file; stop it first, or use PostgreSQL for several."
    )

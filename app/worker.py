"""A worker: it registers, sends what is owed, shows that it lives, and signs off; beside that it does the chores."""

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
from app.flows import publish
from app.flows.compose import Composer
from app.flows.watch import Watch
from app.mail import verdict
from app.mail.relay import Relay
from app.sending.chores import Chores
from app.sending.dispatch import Dispatch
from app.sending.rates import Rates

log = logging.getLogger(__name__)

TICK = 1.0
BEAT = 5.0
LAST_STEPS = 10.0  # seconds that the loops have to come to an end


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
        self.chores = Chores(db, composer, wake, now, lambda: self.dispatch.stopping)
        self.id = 0
        self._problem: str | None = ""  # what was last said on the mailings; at first nobody knows
        self._pulse, self._over = Ear(), asyncio.Event()
        self._steady_since = 0.0  # loop time of the first heartbeat after a silence
        self._rates = Rates()

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
            lambda: jobs.engine(self.db.url, self.wake).run(self.chores.jobs(), self._over),
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

    async def report(self) -> None:
        """Say on the mailings what keeps this worker from sending, and how fast it sends."""
        self._rates.note(self.dispatch.sent)
        if (problem := self.dispatch.problem) or problem != self._problem or self._rates.by_mailing:
            await self.db.perform(partial(self._tell, problem))
        self._problem = problem

    async def _tell(self, problem: str | None, session: AsyncSession) -> None:
        if problem or problem != self._problem:  # else what another worker says would be taken back
            await mailings.report_problem(session, problem)
        for mailing_id, rate in self._rates.by_mailing.items():
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

    def _beaten(self) -> None:
        if not self.dispatch.fence.renew():
            self._steady_since = asyncio.get_running_loop().time()

    async def _drain(self) -> None:
        """Take nothing new, and wait until what is in the air has landed and is recorded."""
        self.dispatch.stop()
        while not self.dispatch.idle:
            await asyncio.sleep(0.02)
        self._over.set()
        self._pulse.call()
        self.wake.call()


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

"""Hands over what is owed: one writer claims and records, each connection sends one mail after the other.

A connection begins a message only after the outcome of its last mail is committed, so a crash can double at most
one mail for each connection. While results cannot be saved, nothing more is sent.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from time import monotonic

from app.core.clock import Clock
from app.core.db import Database
from app.core.errors import Unavailable
from app.core.jobs import TICK, Ear, Wake
from app.delivery.claims import Claim, Key, Settlement
from app.delivery.models import State
from app.flows.compose import Composer, Envelope
from app.mail.outcome import Outcome, Uncertain
from app.mail.relay import Relay
from app.sending import deliver, faults
from app.sending.deliver import Wish
from app.sending.faults import Faults
from app.sending.fence import Fence
from app.sending.gate import RECENT, Patience
from app.sending.health import Health
from app.sending.lane import Job, Lane
from app.sending.paces import Paces
from app.sending.post import Halted, Post
from app.sending.stock import Stock, restock
from app.sending.turns import Turns

log = logging.getLogger(__name__)

MOMENT, MOMENTS = 0.001, 5  # seconds that outcomes wait for others, to share a commit, and how often at most
IDLE = 10.0  # seconds after which an unused connection is closed
LONGEST_PAUSE = 15.0  # seconds between two tries to record while the database is away


class Dispatch:
    """The delivering half of a worker: `write` and one `send` a connection run side by side until cancelled."""

    def __init__(
        self, db: Database, composer: Composer, wake: Wake, relays: Sequence[Relay], now: Clock
    ) -> None:
        self.db, self.composer, self.now = db, composer, now
        self._wake, self._ear = wake, Ear()
        self.worker_id, self.stopping = 0, False
        self.sent: Counter[int] = Counter()  # mails recorded as sent, by mailing, since somebody last looked
        apart = [relay for relay in relays if relay.url.lane == "letters"]
        self._paces = Paces(db, [relay.url for relay in relays], now, self._ear.call)
        self._issues = Lane([relay for relay in relays if relay not in apart], self._paces)
        self._letters = Lane(apart, self._paces) if apart else self._issues
        self._lanes = (self._letters, self._issues) if apart else (self._issues,)
        self._stocks: dict[int, Stock] = {}
        self._results: list[tuple[Settlement, asyncio.Future[None]]] = []
        self._patience = Patience()
        self._turns = Turns(db, relays, self._paces, self._patience, now)
        self._faults, self._faults_told = Faults(), 0
        self._health = Health(db)
        self.fence, self._number, self._may_owe_letters = Fence(), 0, True
        self._in_doubt = False  # a claim may be committed unknown to us

    @property
    def idle(self) -> bool:
        """Whether every claim has been settled and recorded."""
        return not any(lane.held for lane in self._lanes)

    @property
    def problem(self) -> str | None:
        """What keeps every relay from taking issues, if something does."""
        return self._issues.problem

    def stop(self) -> None:
        """Take nothing new, give back what no connection has taken, and wait for no relay that does not answer."""
        self.stopping = True
        self._patience.end()
        self._ear.call()

    async def look(self) -> None:
        """Know the mailings under way, and give back the claims in the queue of those that are not any more."""
        await self._turns.look()
        stocks = await restock(self.db, self.composer, self._stocks, self.now())
        for mailing_id in stocks.keys() - self._stocks.keys():  # somebody has just said that it shall go out
            self._issues.doubt()
            self._faults.forget(mailing_id)
        self._stocks = {number: one for number, one in stocks.items() if number not in self._faults.halts}
        await self._stop_for_faults()
        await self._health.tell(self._lanes, self.now())
        self._give_back(self._issues.take_back(lambda job: not self._goes_on(job)))
        self._may_owe_letters = True
        self._ear.call()

    async def write(self) -> None:
        """Record outcomes and claim more, one transaction after another, each with all that has arrived."""
        wait = TICK
        while not (self.stopping and self.idle):
            await self._ear.wait(TICK)
            await self._gather()
            try:
                await self._step()
                wait = TICK
            except Unavailable as error:
                log.error("results cannot be saved, so nothing is sent: %s", error.detail)
                await asyncio.sleep(wait)
                wait = min(wait * 2, LONGEST_PAUSE)

    async def send(self, relay: Relay) -> None:
        """Hand over jobs on one connection for as long as this worker lives."""
        post = Post(relay, self._letters if relay.url.lane == "letters" else self._issues)
        try:
            while True:
                await post.in_turn(self._serve)
        finally:
            await post.hang_up()

    async def _stop_for_faults(self) -> None:
        """Pause what every relay refuses for a fault of ours; one that has been told is told once."""
        fault, failures = self._issues.fault, self._issues.failures
        if fault and failures != self._faults_told and self._stocks:
            await faults.hold(self.db, list(self._stocks), fault)
            self._stocks, self._faults_told = {}, failures

    async def _serve(self, post: Post) -> None:
        """Take one job, hand it over, and put its outcome down."""
        try:
            job = await post.lane.next(post.gate, IDLE if post.line is not None else None)
        except TimeoutError:
            await post.hang_up()
            return
        try:
            settled = await self._carry(post, job)
        except Exception as error:
            log.exception("a mail's outcome is not known")
            reason = f"our own fault: {type(error).__name__}"
            if post.in_hand:
                settled = self._settlement(post, job, Uncertain(reason))
            else:
                settled = deliver.put_off(job.claim, reason, self.now(), random.uniform(-1, 1))
        finally:
            post.gate.put_down(monotonic())
        await post.settled(self._put_down(settled))

    async def _carry(self, post: Post, job: Job) -> Settlement:
        """Compose a job's message, a letter's in a thread (it may be rendered first), and hand it over."""
        post.in_hand = False
        made = (self.composer, job.stock, job.claim, self.now())
        envelope = deliver.composed(*made) if job.stock else await asyncio.to_thread(deliver.composed, *made)
        if isinstance(envelope, Settlement):
            return envelope
        if post.gate.proven:
            return await self._hand_over(post, job, envelope)
        try:
            async with post.gate.trial(self._patience):
                return await self._hand_over(post, job, envelope)
        except TimeoutError:  # the worker stops
            return self._released(job)

    async def _hand_over(self, post: Post, job: Job, envelope: Envelope) -> Settlement:
        if post.gate.until > monotonic():  # another connection has failed while this one waited
            return self._released(job)
        if not post.ready and self._goes_on(job):
            await post.hang_up()
            await post.connect(self._patience)
        has_turn = post.line is not None and await self._turns.come(post)
        if not has_turn or self.fence.is_shut or not self._goes_on(job) or post.line is None:
            return self._released(job)
        post.in_hand = True
        was_fresh, sender, since = post.line.fresh, post.relay.url.sender or envelope.sender, self.now()
        try:
            permit = partial(self._permit, post, job)
            outcome = await post.line.hand_over(sender, envelope.recipient, *envelope.pieces, permit=permit)
        except Halted:
            return self._released(job)
        except ValueError as error:  # an address or a text that SMTP cannot carry; nothing was sent
            return deliver.failed(job.claim, error, self.now())
        if await post.gave_up(outcome) and not was_fresh:  # at once on a new one, whose word counts
            return await self._hand_over(post, job, envelope)
        outcome = self._paces.heard(post.name, job.claim, outcome, since)
        if (reason := post.heard(outcome, was_fresh, monotonic())) is not None:
            return deliver.put_off(job.claim, reason, self.now(), random.uniform(-1, 1))
        self._note_fault(job, outcome)
        return self._settlement(post, job, outcome)

    async def _permit(self, post: Post, job: Job) -> None:
        """Return when a message may go, after the outcome of the last one is committed; raise Halted if it must not."""
        since = monotonic()
        await post.settled()
        if monotonic() - since > RECENT or self.stopping or self.fence.is_shut or not self._goes_on(job):
            raise Halted

    def _note_fault(self, job: Job, outcome: Outcome) -> None:
        """Stop a mailing at once where too many of its mails meet a fault of our own."""
        if self._faults.note(job.claim, outcome):
            self._stocks.pop(job.claim.mailing_id or 0, None)
            self._give_back(self._issues.take_back(lambda one: not self._goes_on(one)))

    def _goes_on(self, job: Job) -> bool:
        """Tell whether a job is still to be done: it is ours, and nobody has stopped its mailing."""
        return job.term == self.fence.term and (job.stock is None or job.stock.mailing_id in self._stocks)

    def _settlement(self, post: Post, job: Job, outcome: Outcome) -> Settlement:
        return deliver.settlement(job.claim, outcome, post.name, job.holds, self.now(), random.uniform(-1, 1))

    def _put_down(self, one: Settlement) -> asyncio.Future[None]:
        """Hand an outcome to the writer; the future is done once it is committed, whenever that is."""
        saved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._results.append((one, saved))
        self._ear.call()
        return saved

    async def _gather(self) -> None:
        """Wait a moment until half as many outcomes are here as mails are in the air: one commit is for all."""
        for _ in range(MOMENTS):
            if not 0 < 2 * len(self._results) < sum(lane.in_hand for lane in self._lanes):
                return
            await asyncio.sleep(MOMENT)

    async def _step(self) -> None:
        """Record what has arrived and claim what there is room for, in one transaction."""
        await self._faults.hold(self.db)
        await self._paces.settle()
        self._give_back(job for lane in self._lanes for job in lane.stuck(self.stopping))
        taken = list(self._results)
        gone = [one.claim.key for one, _ in taken]
        if not taken and not any(self._room(lane, gone) or lane.jobs for lane in self._lanes):
            return
        taken_on, stocks = list[Claim](), dict(self._stocks)  # a mailing may be stopped meanwhile
        try:
            await self._reconcile()
            outcomes, wish, now = [one for one, _ in taken], await self._wish(gone), self.now()
            self._may_owe_letters &= not wish.letters
            taken_on = await self.db.work(
                lambda connection: deliver.exchange(connection, self.worker_id, outcomes, wish, now)
            )
        except Exception as error:
            self._in_doubt = self._may_owe_letters = True
            if isinstance(error, Unavailable):
                raise
            log.exception("nothing is claimed now, and outcomes are recorded one by one")
            record = partial(deliver.record_alone, self.db, self.worker_id, now=self.now())
            taken = [pair for pair in taken if await record(pair[0])]
            await asyncio.sleep(TICK)
        else:
            self._may_owe_letters |= 0 < sum(one.mailing_id is None for one in taken_on) == wish.letters
        self._settled(taken)
        for claim in taken_on:
            self._enqueue(claim, stocks)
        if taken and self.idle:
            self._wake.call()  # a mailing may be finished

    async def _reconcile(self) -> None:
        """After a commit that may or may not have been: give back claims that we do not know to be ours."""
        if self._in_doubt:
            held = set().union(*(lane.held for lane in self._lanes))
            await deliver.give_back_unknown(self.db, self.worker_id, held, self.now())
            self._in_doubt = False

    def _settled(self, done: Sequence[tuple[Settlement, asyncio.Future[None]]]) -> None:
        futures = {saved for _, saved in done}
        self._results = [pair for pair in self._results if pair[1] not in futures]
        for one, saved in done:
            for lane in self._lanes:
                lane.held.discard(one.claim.key)
            if one.claim.mailing_id and one.state == State.SENT:
                self.sent[one.claim.mailing_id] += 1
            if not saved.done():
                saved.set_result(None)

    def _room(self, lane: Lane, gone: Collection[Key]) -> int:
        held = len(lane.held) - sum(key in lane.held for key in gone)
        return 0 if self.stopping or self.fence.is_shut else lane.room(held, monotonic())

    async def _wish(self, gone: Collection[Key]) -> Wish:
        """Return what there is room for; the order of the mailings turns from claim to claim."""
        letters = self._room(self._letters, gone) if self._may_owe_letters else 0
        issues = self._room(self._issues, gone)
        stocks = list(self._stocks.values())
        turn = self._number % len(stocks) if stocks else 0
        limits = await self._issues.limits({each for one in stocks for each in one.providers})
        return Wish(-(-letters // 2), issues, len(self._lanes) > 1, stocks[turn:] + stocks[:turn], limits)

    def _enqueue(self, claim: Claim, stocks: Mapping[int, Stock]) -> None:
        self._number += 1
        lane, rank = (self._letters, 0) if claim.mailing_id is None else (self._issues, 1)
        lane.held.add(claim.key)
        lane.put(Job(rank, self._number, claim, stocks.get(claim.mailing_id or 0), self.fence.term))

    def _released(self, job: Job) -> Settlement:
        """Give a job back untried: it is due as it was, whatever a clock says by then."""
        since_start = job.stock.started_at if job.stock else self.now()
        return deliver.released(job.claim, job.claim.slot or since_start)

    def _give_back(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self._put_down(self._released(job))

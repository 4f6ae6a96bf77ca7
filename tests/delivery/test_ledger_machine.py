"""The ledger and the lives of mailings against a small model of them: any order of moves, and the books balance."""

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.core import schema
from app.core.db import Database, run
from app.core.errors import Conflict
from app.delivery import books, ledger, mailings
from app.delivery.claims import Claim, Settlement
from app.delivery.ledger import Audience
from app.delivery.models import Delivery, Mailing, State
from app.issues.models import Issue
from app.subscribers import audience
from app.subscribers.models import Subscriber, Subscription, Suppression
from tests.delivery import steps

delivery = Delivery.__table__  # type: ignore[attr-defined]
START = datetime(2026, 10, 26, tzinfo=UTC)
EDITION, CHUNK, LIFE = 1, 2, timedelta(hours=20)
WAITING = {"owed", "deferred"}
OPEN = WAITING | {"in_flight"}
WORKERS = (1, 2)
OUTCOMES = (State.SENT, State.DEFERRED, State.REFUSED, State.FAILED, State.UNCERTAIN, State.OWED)

T = TypeVar("T")
DEEDS = ("claims", "claims", "claims", "settles", "settles", "settles", "settles", "forgets", "dies")

Key = tuple[int, int]  # mailing, subscriber


@cache
def empty() -> Path:
    """Return a migrated file, to be copied."""
    path = Path(tempfile.mkdtemp(prefix="broadsheet-ledger-")) / "empty.db"

    async def make() -> None:
        db = Database(f"sqlite:///{path}")
        await schema.upgrade(db)
        await db.close()

    asyncio.run(make())
    return path


@dataclass
class Reader:
    """What the model knows of a reader."""

    since: datetime
    stands: str = "due"  # or left, suppressed


@dataclass
class Sending:
    """What the model knows of a mailing."""

    cutoff: datetime
    expires: datetime
    holds: bool
    state: str = "preparing"
    cursor: int = 0
    whole: bool = False


@dataclass
class Row:
    """What the model knows of a delivery."""

    state: str
    due: datetime
    holder: int | None = None
    cancelled: bool = False


@dataclass
class Model:
    """What there should be."""

    readers: dict[int, Reader] = field(default_factory=dict)
    mailings: dict[int, Sending] = field(default_factory=dict)
    rows: dict[Key, Row] = field(default_factory=dict)

    def of(self, mailing_id: int, states: Collection[str]) -> list[Key]:
        """Return a mailing's rows in some states."""
        return [key for key, row in self.rows.items() if key[0] == mailing_id and row.state in states]


class Ledger(RuleBasedStateMachine):
    """Each rule makes one move in the database and in the model."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="broadsheet-ledger-"))
        shutil.copy(empty(), self.folder / "one.db")
        self.runner = asyncio.Runner()
        self.db = Database(f"sqlite:///{self.folder / 'one.db'}")
        self.model, self.now, self.held = Model(), START, list[tuple[int, Claim]]()

    def teardown(self) -> None:
        """Close and forget."""
        self.runner.run(self.db.close())
        self.runner.close()
        shutil.rmtree(self.folder)

    def make(self, move: Callable[[AsyncSession], Awaitable[T]]) -> T:
        """Make one move in one transaction."""

        async def run() -> T:
            async with self.db.transaction() as session:
                return await move(session)

        return self.runner.run(run())

    @initialize(holds=st.booleans())
    def a_mailing_is_under_way(self, holds: bool) -> None:
        self.readers_join(6)
        self.a_mailing_starts(holds)
        for _ in range(3):
            self.enlist(1, self.model.mailings[1])

    def readers_join(self, many: int) -> None:
        """So many readers join."""

        async def move(session: AsyncSession) -> None:
            for number in range(len(self.model.readers) + 1, len(self.model.readers) + 1 + many):
                session.add(
                    Subscriber(id=number, address=f"{number}@example.com", address_key=f"{number}@example.com",
                               address_hash=b"%d" % number, language="zh", state="active", created_at=self.now)
                )  # fmt: skip
                await session.flush()
                session.add(Subscription(subscriber_id=number, edition_id=EDITION, since=self.now))

        self.make(move)
        for number in range(len(self.model.readers) + 1, len(self.model.readers) + 1 + many):
            self.model.readers[number] = Reader(self.now)

    def a_reader_leaves(self, who: int, tells_ledger: bool) -> None:
        """A reader leaves; the ledger hears of it, or a claim finds out."""

        async def move(session: AsyncSession) -> None:
            await session.execute(update(Subscriber).where(Subscriber.id == who).values(state="ended"))  # type: ignore[arg-type]
            if tells_ledger:
                await ledger.withdraw(session, who, None, self.now, "the reader left")

        self.make(move)
        if self.model.readers[who].stands == "due":
            self.model.readers[who].stands = "left"
        for key, row in self.model.rows.items():
            if tells_ledger and key[1] == who and row.state in WAITING:
                self.model.rows[key] = Row("withdrawn", row.due)

    def an_address_is_suppressed(self, who: int) -> None:
        """An address is suppressed."""
        if self.model.readers[who].stands == "suppressed":
            return

        async def move(session: AsyncSession) -> None:
            session.add(Suppression(address_hash=b"%d" % who, reason="bounce", since=self.now))

        self.make(move)
        self.model.readers[who].stands = "suppressed"

    def a_mailing_starts(self, holds: bool) -> None:
        """A mailing starts."""
        number = len(self.model.mailings) + 1

        async def move(session: AsyncSession) -> None:
            session.add(
                Issue(
                    id=number,
                    edition_id=EDITION,
                    date=START.date() + timedelta(days=number),
                    created_at=self.now,
                )
            )
            await session.flush()
            session.add(
                Mailing(id=number, issue_id=number, state="scheduled", scheduled_at=self.now, max_lateness=60,
                        time_to_live=int(LIFE.total_seconds()), on_uncertain="hold" if holds else "resend",
                        created_at=self.now)
            )  # fmt: skip
            await session.flush()
            assert await mailings.start(session, number, self.now, self.now)

        self.make(move)
        self.model.mailings[number] = Sending(self.now, self.now + LIFE, holds)

    def enlist(self, number: int, one: Sending) -> None:
        """Owe a mailing to its next chunk."""
        readers = partial(audience.between, audience.readers_of(EDITION, one.cutoff))
        whose = Audience(audience.choosers_of(EDITION, one.cutoff), readers)

        async def move(session: AsyncSession) -> None:
            if await ledger.enlist(session, number, whose, self.now, CHUNK):
                await mailings.complete(session, number)

        self.make(move)
        if one.state != "preparing":
            return
        chosen = [
            who
            for who, reader in sorted(self.model.readers.items())
            if who > one.cursor and reader.since <= one.cutoff
        ][:CHUNK]
        for who in chosen:
            if self.model.readers[who].stands == "due":
                self.model.rows.setdefault((number, who), Row("owed", self.now))
            one.cursor = who
        if not chosen:
            one.whole, one.state = True, "sending"

    def a_worker_claims(self, worker: int, limit: int, number: int) -> None:
        """A worker claims from a mailing, where it is under way."""
        one = self.model.mailings[number]
        if one.state not in ("preparing", "sending"):
            return
        who = audience.addressees(EDITION)
        taken = self.make(
            lambda session: run(session, steps.claim, worker, (number, ""), who, limit, self.now)
        )
        due = [
            key
            for key in self.model.of(number, WAITING)
            if self.model.rows[key].due <= self.now < one.expires
        ]
        moved = [key for key in due if self.states()[key] not in WAITING]
        assert len(moved) == min(limit, len(due))
        for key in moved:
            stands = self.model.readers[key[1]].stands
            state = {"due": "in_flight", "left": "withdrawn"}.get(stands, "suppressed")
            self.model.rows[key] = Row(state, self.now, worker if state == "in_flight" else None)
        mine = {key for key in moved if self.model.rows[key].state == "in_flight"}
        assert {(number, claim.subscriber_id) for claim in taken} == mine
        self.held += [(worker, claim) for claim in taken]

    @rule(data=st.data(), worker=st.sampled_from(WORKERS), word=st.sampled_from(DEEDS))
    def a_worker(self, data: st.DataObject, worker: int, word: str) -> None:
        if word == "claims" or not self.held:
            number, _ = self.some_mailing(data)
            self.a_worker_claims(worker, data.draw(st.integers(1, 4)), number)
        elif word == "settles":
            holder, one = data.draw(st.sampled_from(self.held))
            outcome, again = data.draw(st.sampled_from(OUTCOMES)), data.draw(st.booleans())
            self.a_claim_is_settled(holder, one, outcome, again)
        elif word == "forgets" and (its := self.flying(worker)):
            self.a_worker_forgets(worker, set(data.draw(st.lists(st.sampled_from(its)))))
        else:
            self.a_worker_dies(worker)

    @rule(
        data=st.data(),
        word=st.sampled_from(("join", "leave", "suppress", "start", "enlist", "enlist", "enlist")),
    )
    def life_goes_on(self, data: st.DataObject, word: str) -> None:
        who = data.draw(st.sampled_from(sorted(self.model.readers)))
        if word == "join":
            self.readers_join(1 + who % 3)
        elif word == "leave":
            self.a_reader_leaves(who, data.draw(st.booleans()))
        elif word == "suppress":
            self.an_address_is_suppressed(who)
        elif word == "enlist":
            self.enlist(*self.some_mailing(data))
        elif len(self.model.mailings) < 3:
            self.a_mailing_starts(data.draw(st.booleans()))

    def a_claim_is_settled(self, worker: int, claim: Claim, outcome: State, again: bool) -> None:
        """A claim is settled, also one that was settled before or freed since: a repeat is harmless."""
        later = self.now + timedelta(minutes=5) if outcome == State.DEFERRED else self.now
        one = Settlement(claim, outcome, due_at=later, done_at=self.now, attempts=claim.attempts)
        for _ in range(1 + again):
            self.make(lambda session: run(session, steps.settle, worker, [one]))
        key = (claim.mailing_id or 0, claim.subscriber_id or 0)
        row = self.model.rows[key]
        if row.state == "in_flight" and row.holder == worker:
            self.model.rows[key] = Row(outcome, later)
        elif outcome == State.SENT:
            self.model.rows[key] = Row("sent", later)

    def a_worker_dies(self, worker: int) -> None:
        """A worker dies, and its claims are given back."""
        self.make(lambda session: ledger.free(session, [worker], self.now))
        for key, row in self.model.rows.items():
            if row.state == "in_flight" and row.holder == worker:
                held = self.model.mailings[key[0]].holds
                self.model.rows[key] = Row("uncertain" if held else "owed", self.now)

    def a_worker_forgets(self, worker: int, known: set[Key]) -> None:
        """A worker gives back what it does not know of."""
        its = self.flying(worker)
        known &= set(its)
        freed = self.make(lambda session: ledger.free_unknown(session, worker, known, self.now))
        assert freed == len(its) - len(known)
        for key in set(its) - known:
            self.model.rows[key] = Row("owed", self.now)

    @precondition(lambda self: self.model.mailings)
    @rule(data=st.data(), word=st.sampled_from(("pauses", "resumes", "cancels", "sends_again", "retries")))
    def an_editor(self, data: st.DataObject, word: str) -> None:
        number, one = self.some_mailing(data)
        getattr(self, word)(number, one)

    def pauses(self, number: int, one: Sending) -> None:
        """An editor pauses."""
        if self.is_refused(lambda session: mailings.pause(session, number, "by an editor")):
            assert one.state in ("finished", "cancelled")
        else:
            one.state = "paused"

    def resumes(self, number: int, one: Sending) -> None:
        """An editor resumes."""
        if self.is_refused(lambda session: mailings.resume(session, number, self.now)):
            assert one.state in ("finished", "cancelled")
        elif one.state == "paused":
            one.state, one.expires = "sending" if one.whole else "preparing", self.now + LIFE

    def cancels(self, number: int, one: Sending) -> None:
        """An editor cancels."""
        if self.is_refused(lambda session: mailings.cancel(session, number, self.now)):
            assert one.state == "finished"
            return
        if one.state != "cancelled":
            one.state = "cancelled"
            self.take_back()

    def sends_again(self, number: int, one: Sending) -> None:
        """An editor sends again."""
        self.make(lambda session: mailings.reopen(session, number, self.now, self.now))
        if one.state != "cancelled":
            return
        one.state, one.expires = "sending" if one.whole else "preparing", self.now + LIFE
        for key in self.model.of(number, {"withdrawn"}):
            if self.model.rows[key].cancelled:
                self.model.rows[key] = Row("owed", self.now)

    def retries(self, number: int, one: Sending) -> None:
        """An editor retries."""
        if self.is_refused(lambda session: mailings.retry(session, number, self.now)):
            assert one.state == "cancelled"
            return
        again = self.model.of(number, {"failed", "expired", "uncertain"})
        for key in again:
            self.model.rows[key] = Row("owed", self.now)
        if again:
            one.expires = self.now + LIFE
            one.state = "sending" if one.state == "finished" else one.state

    @rule(minutes=st.sampled_from((0, 1, 6, 6, 6, 60, 21 * 60)))
    def time_passes(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

        async def timers(session: AsyncSession) -> list[int]:
            await ledger.expire(session, self.now)
            await mailings.withdraw_cancelled(session, self.now)
            return await mailings.finish(session, self.now)

        finished = self.make(timers)
        for number, one in self.model.mailings.items():
            if one.state in ("preparing", "sending") and one.expires <= self.now:
                for key in self.model.of(number, WAITING):
                    self.model.rows[key] = Row("expired", self.now)
        self.take_back()
        done = [
            n
            for n, one in self.model.mailings.items()
            if one.state == "sending" and not self.model.of(n, OPEN)
        ]
        assert sorted(finished) == done
        for number in done:
            self.model.mailings[number].state = "finished"

    @invariant()
    def the_rows_are_as_the_model_has_them(self) -> None:
        assert self.states() == {key: row.state for key, row in self.model.rows.items()}

    @invariant()
    def the_books_balance(self) -> None:
        async def look(session: AsyncSession) -> None:
            for number, one in self.model.mailings.items():
                found = await mailings.get(session, number)
                counts = await books.counts(session, number)
                assert counts == await books.recount(session, number)
                assert found.audience == sum(counts.values())
                assert found.state == one.state
                assert found.state != "finished" or not sum(counts[state] for state in OPEN)
                by_model = Counter(self.model.rows[key].state for key in self.model.of(number, set(State)))
                assert {state: many for state, many in counts.items() if many} == dict(by_model)

        self.make(look)

    def states(self) -> dict[Key, str]:
        """Return each row's state as the database has it."""

        async def look(session: AsyncSession) -> Any:
            columns = (delivery.c.mailing_id, delivery.c.subscriber_id, delivery.c.state)
            return (await session.execute(select(*columns))).all()

        return {(row[0], row[1]): row[2] for row in self.make(look)}

    def some_mailing(self, data: st.DataObject) -> tuple[int, Sending]:
        """Draw a mailing."""
        number = data.draw(st.sampled_from(sorted(self.model.mailings)))
        return number, self.model.mailings[number]

    def is_refused(self, move: Callable[[AsyncSession], Awaitable[object]]) -> bool:
        """Make a move, and tell whether it was refused as the state forbids it."""
        try:
            self.make(move)
        except Conflict:
            return True
        return False

    def flying(self, worker: int) -> list[Key]:
        """Return what a worker has in its hands by the model."""
        return [
            key for key, row in self.model.rows.items() if row.state == "in_flight" and row.holder == worker
        ]

    def take_back(self) -> None:
        """Withdraw in the model what cancelled mailings still owe."""
        for number, one in self.model.mailings.items():
            for key in self.model.of(number, WAITING) if one.state == "cancelled" else []:
                self.model.rows[key] = Row("withdrawn", self.now, cancelled=True)


Ledger.TestCase.settings = settings(
    max_examples=15, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLedger = Ledger.TestCase

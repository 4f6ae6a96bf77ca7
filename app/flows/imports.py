"""Readers come from a file: each row is counted, and nobody who left is brought back."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from sqlalchemy.ext.asyncio import AsyncSession

from app.core.config import Settings
from app.core.db import Database
from app.core.errors import Fault, Invalid
from app.core.i18n import LANGUAGES
from app.flows import subscribe
from app.issues import store as issues
from app.issues.models import Edition
from app.subscribers import addresses, store, suppression
from app.subscribers.addresses import Address
from app.subscribers.consent import Reason, State
from app.subscribers.imports.csv import Candidate
from app.subscribers.models import Subscriber
from app.subscribers.store import Origin

BATCH = 500  # rows in a transaction
MOST_FAULTS = 10_000  # rows reported by line; the counts go on
LASTING = (Reason.BOUNCED, Reason.COMPLAINED, Reason.ERASED, Reason.EDITOR)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a file is to be taken: `source` is kept as where consent came from, `editions` fill a missing column."""

    source: str
    editions: Sequence[str] = ()
    language: str = LANGUAGES[0]
    confirm: bool = False
    update: bool = False
    dry_run: bool = False


@dataclass
class Report:
    """What became of each row, counted, and by line where it was not taken."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)

    def skip(self, kind: str, line: int, message: str) -> None:
        """Count a row that was not taken and say why."""
        self.counts[kind] += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(Fault(message, line))


async def run(
    db: Database, settings: Settings, rows: Iterable[Candidate | Fault], plan: Plan, now: datetime
) -> Report:
    """Take the rows in batches, each its own transaction, so that a file may be taken again after a stop.

    Raises Invalid for a plan that names no known edition, or a file without a header.
    """
    async with db.reading() as session:
        await issues.chosen(session, plan.editions)
        editions = {one.slug: one for one in await issues.editions(session)}
    intake = Intake(settings, plan, editions, now)
    rows = iter(rows)
    while batch := list(islice(rows, BATCH)):
        async with db.transaction() as session:
            await intake.take(session, batch)
            if plan.dry_run:
                await session.rollback()
    return intake.report


@dataclass
class Intake:
    """One file on its way in: what is asked, what has been seen of it, and what became of its rows."""

    settings: Settings
    plan: Plan
    editions: dict[str, Edition]
    now: datetime
    seen: set[str] = field(default_factory=set)
    report: Report = field(default_factory=Report)

    async def take(self, session: AsyncSession, batch: Sequence[Candidate | Fault]) -> None:
        """Take a batch: two look-ups for all its rows, then each row by itself."""
        readable = [found for row in batch if (found := self._checked(row)) is not None]
        hashes = {address.key: address.hashed(self.settings.suppression_key) for _, address in readable}
        known = await store.by_keys(session, list(hashes))
        barred = await suppression.among(session, list(hashes.values()))
        for row, address in readable:
            if address.key in self.seen:
                self.report.skip("doubled", row.line, "The address stands in the file twice.")
                continue
            self.seen.add(address.key)
            if hashes[address.key] in barred:
                self.report.skip("suppressed", row.line, "The address must not be mailed.")
            elif (who := known.get(address.key)) is not None:
                await self._update(session, who, row)
            else:
                await self._admit(session, row, address)
                self.report.counts["new"] += 1

    def _checked(self, row: Candidate | Fault) -> tuple[Candidate, Address] | None:
        """Return a row with its address, or None when it was reported as faulty."""
        if isinstance(row, Fault):
            self.report.skip("invalid", row.line or 0, row.message)
            return None
        try:
            self._wanted(row)
            return row, addresses.accept(row.email)
        except Invalid as error:
            self.report.skip("invalid", row.line, error.faults[0].message if error.faults else error.detail)
            return None

    def _wanted(self, row: Candidate) -> list[Edition]:
        slugs = self.plan.editions if row.editions is None else row.editions
        if unknown := [slug for slug in slugs if slug not in self.editions]:
            raise Invalid(f"There is no edition “{unknown[0][:32]}”; there are: {', '.join(self.editions)}.")
        if not slugs and row.status != State.ENDED:
            raise Invalid("The row names no edition; add an `editions` column, or --editions.")
        if row.language is not None and row.language not in LANGUAGES:
            raise Invalid(f"“{row.language[:8]}” is no language here; there are: {', '.join(LANGUAGES)}.")
        return [self.editions[slug] for slug in slugs]

    async def _update(self, session: AsyncSession, who: Subscriber, row: Candidate) -> None:
        """Leave who left alone, and an active reader's choice too, unless the plan says to update it."""
        if who.reason is not None:
            said = f"The reader is here already, and {who.reason}; only they can come back."
            self.report.skip("left", row.line, said)
        elif self.plan.update and who.state in (State.ACTIVE, State.PAUSED) and row.status != State.ENDED:
            slugs, language = [one.slug for one in self._wanted(row)], row.language or who.language
            await subscribe.change(session, who, slugs, language, Origin(self.plan.source), self.now)
            self.report.counts["updated"] += 1
        else:
            said = f"The reader is here already ({who.state}); --update would change them."
            self.report.skip("known", row.line, said)

    async def _admit(self, session: AsyncSession, row: Candidate, address: Address) -> None:
        source, language = row.source or self.plan.source, row.language or self.plan.language
        hashed = address.hashed(self.settings.suppression_key)
        who = await store.add(session, address, hashed, language, source, self.now)
        who.name, who.timezone, who.hour = row.name, row.timezone, row.hour
        who.created_at = row.created_at or self.now
        if row.status == State.ENDED:
            who.state, who.reason = State.ENDED, row.reason
            if row.reason in LASTING:
                await suppression.add(session, hashed, Reason(row.reason or ""), self.now)
            return
        wanted = self._wanted(row)
        await store.choose(session, who.id or 0, [one.id or 0 for one in wanted], self.now)
        if self.plan.confirm:
            await subscribe.owe_letter(session, who, "confirm", wanted, self.now)
        elif row.status != State.PENDING:
            who.state, who.confirmed_at = State(row.status), row.confirmed_at or self.now
            store.note(session, who, "imported", Origin(source), self.now, " ".join(e.slug for e in wanted))

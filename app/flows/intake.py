"""A batch of rows becomes readers: what was decided is written, a few statements for all of them."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from app.core.errors import Fault
from app.delivery import ledger
from app.flows import subscribe, writing
from app.issues.models import Edition
from app.subscribers import bulk, store
from app.subscribers.consent import Reason, State
from app.subscribers.imports.candidate import Plan
from app.subscribers.imports.decide import LASTING, Decisions, Known, Ready, decide
from app.subscribers.models import Subscriber
from app.subscribers.store import Origin


async def take(
    session: AsyncSession,
    job_id: int,
    rows: Sequence[Ready | Fault],
    plan: Plan,
    editions: Sequence[Edition],
    now: datetime,
) -> Decisions:
    """Decide on a batch and carry it out, except in a dry run; returns counts and cases."""
    ready = [one for one in rows if isinstance(one, Ready)]
    seen = await bulk.seen(session, job_id, [one.digest for one in ready])
    barred = await bulk.barred(session, [one.hashed for one in ready])
    known = await bulk.known(session, [one.address.key for one in ready])
    taken = decide(rows, plan, seen, barred, known)
    if plan.dry_run:
        return taken
    by_slug = {one.slug: one.id or 0 for one in editions}
    await bulk.admit(session, taken.fresh, plan, by_slug, now)
    await bulk.bar(session, ((each, Reason.ERASED) for each in taken.erased), now)
    if plan.confirm:
        await _ask(session, [one for one in taken.fresh if one.row.reason is None], plan, editions, now)
    if taken.changes:
        await _change(session, taken.changes, plan, now)
    return taken


async def _ask(
    session: AsyncSession, rows: Sequence[Ready], plan: Plan, editions: Sequence[Edition], now: datetime
) -> None:
    """Owe each of these the letter that asks whether it was they who wished for it."""
    readers = await store.by_keys(session, [one.address.key for one in rows])
    for one in rows:
        wanted = [each for each in editions if each.slug in bulk.choice(one, plan)]
        await writing.owe(session, readers[one.address.key], "confirm", wanted, now)


async def _change(
    session: AsyncSession, changes: Sequence[tuple[Known, Ready]], plan: Plan, now: datetime
) -> None:
    """Give readers what the file says of them, or end them where it says that they have ended."""
    readers = await store.by_keys(session, [one.address.key for _, one in changes])
    origin = Origin(plan.source)
    for _, one in changes:
        who, row = readers[one.address.key], one.row
        if row.status == State.ENDED:
            await _end(session, who, one, origin, now)
            continue
        slugs = plan.editions if one.slugs is None else one.slugs
        if slugs:
            await subscribe.change(session, who, slugs, row.language or who.language, origin, now)
        who.language = row.language or who.language
        who.name = row.name or who.name
        who.timezone = row.timezone or who.timezone
        who.hour = who.hour if row.hour is None else row.hour


async def _end(session: AsyncSession, who: Subscriber, one: Ready, origin: Origin, now: datetime) -> None:
    reason = Reason(one.row.reason or Reason.LEFT)
    await store.choose(session, who.id or 0, (), now)
    who.state, who.reason = State.ENDED, reason
    store.note(session, who, reason, origin, now)
    await ledger.withdraw(session, who.id or 0, None, now, f"the reader had {reason} elsewhere")
    if reason in LASTING:
        await bulk.bar(session, [(one.hashed, reason)], now)

"""What is kept of people for a time is forgotten when the time is over: docs/readers.md has the list."""

from datetime import datetime, timedelta

from sqlalchemy import Table, and_, update

from app.core.db import Database
from app.delivery import ledger, mailings
from app.delivery.models import OPEN, Letter
from app.subscribers import asks, errands, store, suppression

letter: Table = Letter.__table__  # type: ignore[attr-defined]

LETTERS = timedelta(days=30)  # after that a letter that has gone is a number and a state
UNCONFIRMED = timedelta(days=30)
BATCH = 500
ROWS = 20_000  # deliveries that are forgotten in one transaction


async def forget(db: Database, now: datetime) -> None:
    """Forget what has had its time: who was sent what after 400 days, the rest much sooner."""
    async with db.transaction() as session:
        await asks.forget(session, now)
        await errands.forget(session, now)
        await suppression.forget_refusals(session, now)
        old = and_(letter.c.address != "", letter.c.done_at < now - LETTERS, letter.c.state.not_in(OPEN))
        await session.execute(update(letter).where(old).values(address="", data={}, reply=None))
    while await _forget_unconfirmed(db, now) or await _prune(db, now):
        pass


async def _forget_unconfirmed(db: Database, now: datetime) -> bool:
    async with db.transaction() as session:
        those = await store.never_confirmed(session, "form", now - UNCONFIRMED, BATCH)
        for number in those:
            await store.remove(session, number)
    return bool(those)


async def _prune(db: Database, now: datetime) -> bool:
    async with db.transaction() as session:
        return bool(await ledger.prune(session, now - mailings.KEPT, ROWS))

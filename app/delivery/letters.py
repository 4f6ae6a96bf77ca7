"""Letters: how many there were, and what becomes of those that wait when their reader goes."""

from datetime import datetime, timedelta

from sqlalchemy import Table, and_, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from app.delivery.models import Letter, State, is_waiting

GAP = timedelta(hours=24)  # between two letters of one kind to one reader
GAP_AFTER_BOUNCE = timedelta(
    days=30
)  # between two confirmations to an address that mail came back from for good
letter: Table = Letter.__table__  # type: ignore[attr-defined]


async def made_since(
    session: AsyncSession, kind: str, since: datetime, subscriber_id: int | None = None
) -> int:
    """Return how many letters of a kind were made after `since`, for one subscriber or for all."""
    which = select(func.count()).where(col(Letter.kind) == kind, col(Letter.created_at) > since)
    if subscriber_id is not None:
        which = which.where(col(Letter.subscriber_id) == subscriber_id)
    return (await session.execute(which)).scalar_one()


async def settle_waiting(
    session: AsyncSession, subscriber_id: int, to: State, reason: str, now: datetime
) -> None:
    """Settle the letters that still wait to go to a subscriber."""
    theirs = and_(letter.c.subscriber_id == subscriber_id, is_waiting(letter))
    await session.execute(update(letter).where(theirs).values(state=to, reason=reason, done_at=now))

"""Errands: what a reader asked for that takes a freshly mailed link, each good for a day."""

from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from app.subscribers.models import Errand

LIFE = timedelta(hours=24)


class Kind(StrEnum):
    """What an errand's link lets its holder do."""

    ADDRESS = "address"  # name a new address; mailed to the present one
    MOVE = "move"  # make the new address the present one; mailed to the new one
    DATA = "data"  # have everything we know
    ERASE = "erase"  # be erased


async def add(session: AsyncSession, subscriber_id: int, kind: Kind, now: datetime, address: str = "") -> int:
    """Keep an errand and return its number; of one kind a reader has one at a time."""
    theirs = (col(Errand.subscriber_id) == subscriber_id, col(Errand.kind) == kind)
    await session.execute(delete(Errand).where(*theirs))
    one = Errand(subscriber_id=subscriber_id, kind=kind, address=address, made_at=now)
    session.add(one)
    await session.flush()
    return one.id or 0


async def find(session: AsyncSession, number: int, now: datetime) -> Errand | None:
    """Return an errand, or None when it is done, has aged, or never was."""
    found = await session.get(Errand, number)
    return found if found is not None and now - found.made_at < LIFE else None


async def drop(session: AsyncSession, subscriber_id: int) -> None:
    """Forget every errand of a reader: no link that was mailed to them for one is good any more."""
    await session.execute(delete(Errand).where(col(Errand.subscriber_id) == subscriber_id))


async def forget(session: AsyncSession, now: datetime) -> None:
    """Forget the errands whose links are good no more."""
    await session.execute(delete(Errand).where(col(Errand.made_at) < now - 2 * LIFE))

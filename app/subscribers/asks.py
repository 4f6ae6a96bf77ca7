"""Requests from the form: how many came from a network, how many letters a mailbox has had, and what waits."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, func, literal_column, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col
from sqlmodel import select as select_model

from app.core.config import Settings
from app.subscribers.models import Ask, AskState

NETWORK_WINDOW = timedelta(minutes=10)
DAY, MONTH, MINUTE = timedelta(days=1), timedelta(days=30), timedelta(minutes=1)


async def others_of(session: AsyncSession, network: bytes | None, digest: bytes, now: datetime) -> int:
    """Return how many other mailboxes a network (its keyed hash) has asked for in the last ten minutes."""
    found = select(func.count(func.distinct(col(Ask.digest)))).where(
        col(Ask.network) == network, col(Ask.at) > now - NETWORK_WINDOW, col(Ask.digest) != digest
    )
    return (await session.execute(found)).scalar_one()


async def may_write(session: AsyncSession, settings: Settings, digest: bytes, now: datetime) -> bool:
    """Tell whether a mailbox may get one more letter that anybody at all may have asked for."""
    written = (col(Ask.digest) == digest, col(Ask.state) == AskState.WRITTEN)
    times = select(col(Ask.at)).where(*written, col(Ask.at) > now - MONTH)
    moments = list((await session.execute(times)).scalars())
    today = sum(moment > now - DAY for moment in moments)
    limits = ((today, settings.letters_a_day), (len(moments), settings.letters_a_month))
    return all(had < limit for had, limit in limits if limit)


def note_written(session: AsyncSession, digest: bytes, now: datetime) -> None:
    """Count a letter to a mailbox that somebody asked for otherwise than by the form."""
    session.add(Ask(at=now, state=AskState.WRITTEN, digest=digest))


async def written_lately(session: AsyncSession, now: datetime) -> int:
    """Return how many letters were called for in the last minute."""
    found = select(func.count()).where(col(Ask.at) > now - MINUTE, col(Ask.state) == AskState.WRITTEN)
    return (await session.execute(found)).scalar_one()


async def waiting(session: AsyncSession, limit: int) -> Sequence[Ask]:
    """Return the oldest requests that wait for an answer, and hold them."""
    which = select_model(Ask).where(col(Ask.state) == literal_column(f"'{AskState.WAITING}'"))
    held = which.order_by(col(Ask.id)).limit(limit).with_for_update(skip_locked=True)
    return (await session.scalars(held)).all()


async def any_waiting(session: AsyncSession) -> bool:
    """Tell whether a request waits for an answer."""
    which = select(col(Ask.id)).where(col(Ask.state) == literal_column(f"'{AskState.WAITING}'")).limit(1)
    return (await session.execute(which)).first() is not None


async def forget(session: AsyncSession, now: datetime) -> None:
    """Forget what was asked more than 30 days ago."""
    await session.execute(delete(Ask).where(col(Ask.at) < now - MONTH))

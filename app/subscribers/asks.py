"""Requests from the form: how many came from a network, how many letters a mailbox has had, and what waits."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, literal_column, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col
from sqlmodel import select as select_model

from app.core.config import Settings
from app.subscribers.models import Ask, AskState

NETWORK_WINDOW = timedelta(minutes=10)
ask: Table = Ask.__table__  # type: ignore[attr-defined]
DAY, MONTH, MINUTE = timedelta(days=1), timedelta(days=30), timedelta(minutes=1)


def take(
    connection: Connection, digest: bytes, network: bytes | None, wish: dict[str, Any], now: datetime
) -> None:
    """Keep a request until it is answered."""
    values = {"at": now, "state": AskState.WAITING, "digest": digest, "network": network, "wish": wish}
    connection.execute(insert(ask), values)


def others_of(connection: Connection, network: bytes | None, digest: bytes, now: datetime) -> int:
    """Return how many other mailboxes a network (its keyed hash) has asked for in the last ten minutes."""
    found = select(func.count(func.distinct(col(Ask.digest)))).where(
        col(Ask.network) == network, col(Ask.at) > now - NETWORK_WINDOW, col(Ask.digest) != digest
    )
    return connection.execute(found).scalar_one()


async def may_write(session: AsyncSession, settings: Settings, digest: bytes, now: datetime) -> bool:
    """Tell whether a mailbox may get one more letter that anybody at all may have asked for."""
    return is_within(settings, (await written(session, [digest], now))[digest], now)


async def written(
    session: AsyncSession, digests: Sequence[bytes], now: datetime
) -> defaultdict[bytes, list[datetime]]:
    """Return when letters to these mailboxes were called for, in the last 30 days."""
    those = (col(Ask.digest).in_(digests), col(Ask.state) == AskState.WRITTEN)
    found: defaultdict[bytes, list[datetime]] = defaultdict(list)
    for digest, at in await session.execute(
        select(col(Ask.digest), col(Ask.at)).where(*those, col(Ask.at) > now - MONTH)
    ):
        found[digest].append(at)
    return found


def is_within(settings: Settings, moments: Sequence[datetime], now: datetime) -> bool:
    """Tell whether a mailbox that has had letters at these moments may get one more."""
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

"""Who is at work: a worker registers, shows that it lives, and what the dead held is given back.

Leases go by the database's clock on PostgreSQL, since those of several machines differ.
"""

from datetime import datetime, timedelta

from sqlalchemy import Table, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from app.core.db import UTCDateTime, moment
from app.delivery import ledger
from app.delivery.models import Worker

worker: Table = Worker.__table__  # type: ignore[attr-defined]

LEASE = timedelta(seconds=30)  # a claim is good while its worker was seen this recently


async def register(session: AsyncSession, name: str, now: datetime) -> int:
    """Enter a worker and free at once what an earlier one of the same name held; returns its id."""
    predecessors = select(worker.c.id).where(worker.c.name == name, worker.c.stopped_at.is_(None))
    gone = list((await session.execute(predecessors)).scalars())
    row = Worker(name=name, started_at=now, seen_at=now)
    session.add(row)
    await session.flush()
    await beat(session, row.id or 0, now)
    await _bury(session, gone, now)
    return row.id or 0


async def beat(session: AsyncSession, worker_id: int, now: datetime) -> None:
    """Say that a worker lives, even where another took it for dead: what it claims from now on must be found."""
    values = {"seen_at": moment(session, now), "stopped_at": None}
    await session.execute(update(worker).where(worker.c.id == worker_id).values(values))


async def free_lapsed(session: AsyncSession, worker_id: int, now: datetime) -> int:
    """Give back what other workers held whom nobody has seen for longer than a lease; returns how many rows."""
    lapsed = select(worker.c.id).where(
        worker.c.stopped_at.is_(None),
        worker.c.seen_at < moment(session, now, LEASE),
        worker.c.id != worker_id,
    )
    return await _bury(session, list((await session.execute(lapsed)).scalars()), now)


async def sign_off(session: AsyncSession, worker_id: int, now: datetime) -> None:
    """Enter the end of a worker that has given back all it held."""
    await _bury(session, [worker_id], now)


async def at_work(session: AsyncSession, now: datetime) -> int:
    """Return how many workers there are, at least one."""
    alive = worker.c.stopped_at.is_(None), worker.c.seen_at >= moment(session, now, LEASE)
    return max(1, await session.scalar(select(func.count()).select_from(worker).where(*alive)) or 0)


async def last_seen(session: AsyncSession) -> datetime | None:
    """Return when any worker that has not signed off was last seen."""
    found = select(func.max(col(Worker.seen_at))).where(col(Worker.stopped_at).is_(None))
    return (await session.execute(found)).scalar()


async def last_at_work(session: AsyncSession) -> datetime | None:
    """Return when any worker at all was last seen, whether it has signed off or not."""
    last = func.max(func.coalesce(worker.c.stopped_at, worker.c.seen_at), type_=UTCDateTime())
    return (await session.execute(select(last))).scalar()


async def _bury(session: AsyncSession, dead: list[int], now: datetime) -> int:
    if not dead:
        return 0
    await session.execute(update(worker).where(worker.c.id.in_(dead)).values(stopped_at=now))
    return await ledger.free(session, dead, now)

"""How fast to go: a token bucket in one row a lane, exact over all workers (the generic cell rate algorithm).

A worker reserves the next quarter second's slots in one statement and spaces its mails over them. No lock
is held while a mail is sent, and a worker that dies wastes a quarter second at most.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import ColumnElement, Float, Table, cast, func, literal, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.core.db import Database, is_postgresql, upsert
from app.delivery.models import Lane

lane: Table = Lane.__table__  # type: ignore[attr-defined]

PROBLEM_LIMIT = 200  # characters
AHEAD = 0.25  # seconds' worth of slots that are reserved at once


async def reserve(session: AsyncSession, name: str, rate: float) -> list[float]:
    """Reserve the next slots of a lane of `rate` mails a second; returns how many seconds from now each is.

    The clock is the database's, so that workers on machines whose clocks differ share one pace.
    """
    many = max(1, int(rate * AHEAD))
    now = _clock(session)
    await session.execute(upsert(session, lane).values(name=name, next_slot=0.0).on_conflict_do_nothing())
    last = func.greatest(lane.c.next_slot, now) if is_postgresql(session) else func.max(lane.c.next_slot, now)
    taken = update(lane).where(lane.c.name == name).values(next_slot=last + many / rate)
    end, current = (await session.execute(taken.returning(lane.c.next_slot, now))).one()
    first: float = end - many / rate - current
    return [first + number / rate for number in range(many)]


async def note_health(session: AsyncSession, problems: Mapping[str, str | None], now: datetime) -> None:
    """Keep what is wrong with each relay, by name; None where it takes mail."""
    for name, problem in sorted(problems.items()):
        values = {"problem": problem and problem[:PROBLEM_LIMIT], "noted_at": now}
        statement = upsert(session, lane).values(name=name, next_slot=0.0, **values)
        await session.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))


async def health(session: AsyncSession, since: datetime) -> dict[str, str | None]:
    """Return what is wrong with each relay of which a worker has told since then."""
    found = select(lane.c.name, lane.c.problem).where(lane.c.noted_at >= since)
    told: dict[str, str | None] = dict((await session.execute(found)).all())
    return told


class Pacer:
    """Spaces the mails of one relay in this process by the slots of its lane."""

    def __init__(self, db: Database, name: str, rate: float) -> None:
        self._db, self._name, self._rate = db, name, rate
        self._slots: deque[float] = deque()  # loop times
        self._refill = asyncio.Lock()

    async def wait(self) -> None:
        """Return when the next slot of the lane has come. Raises Unavailable when none can be reserved."""
        async with self._refill:
            if not self._slots:
                loop = asyncio.get_running_loop()
                async with self._db.transaction() as session:
                    delays = await reserve(session, self._name, self._rate)
                self._slots.extend(loop.time() + delay for delay in delays)
            slot = self._slots.popleft()
        await asyncio.sleep(max(0.0, slot - asyncio.get_running_loop().time()))


def _clock(session: AsyncSession) -> ColumnElement[float]:
    if is_postgresql(session):
        return cast(func.extract("epoch", func.clock_timestamp()), Float)
    return (func.julianday("now") - 2440587.5) * literal(86400.0)

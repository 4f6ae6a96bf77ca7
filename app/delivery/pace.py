"""How fast to go: a token bucket in one row a lane, exact over all workers (the generic cell rate algorithm).

A worker reserves a quarter second's slots in one statement. No lock is held while a mail is sent, or over any other
round trip, and a worker that dies wastes a quarter second at most.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date, datetime
from typing import Any

from sqlalchemy import ColumnElement, Float, Row, Table, case, cast, func, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.core.db import Database, insert_for, is_postgresql, upsert
from app.core.outage import told_plainly
from app.delivery import tempo
from app.delivery.models import Lane
from app.delivery.tempo import Strike, Tempo

lane: Table = Lane.__table__  # type: ignore[attr-defined]

Key = tuple[str, str]  # a relay's name, and a provider's; "" is the relay as a whole

Lanes = Mapping[Key, Row[*tuple[Any, ...]]]

PROBLEM_LIMIT = 200  # characters
AHEAD = 0.25  # seconds' worth of slots that are reserved at once
_TEMPO = [field.name for field in fields(Tempo)]


@dataclass(frozen=True, slots=True)
class Allowance:
    """What may be reserved of a lane: `slots` at a `rate`, while the day's number is below `cap`; None is no limit.

    `tries` is the one mail that tries a lane whose pause is over.
    """

    slots: int
    rate: float | None = None
    cap: int | None = None
    tries: bool = False


async def reserve(session: AsyncSession, name: str, rate: float) -> list[float]:
    """Reserve the next slots of a relay's lane of `rate` mails a second; returns how many seconds from now each is.

    The clock is the database's, so that workers on machines whose clocks differ share one pace.
    """
    many = max(1, int(rate * AHEAD))
    now = _clock(is_postgresql(session))
    await session.execute(upsert(session, lane).values(_new(name)).on_conflict_do_nothing())
    last = _later(is_postgresql(session), now)
    taken = update(lane).where(*_is((name, ""))).values(next_slot=last + many / rate)
    end, current = (await session.execute(taken.returning(lane.c.next_slot, now))).one()
    first: float = end - many / rate - current
    return [first + number / rate for number in range(many)]


async def allow(db: Database, key: Key, wanted: Allowance, now: datetime) -> int:
    """Reserve of a lane what has come due, and return how many mails may go at once.

    Slots that nobody took add up to a quarter second's worth. Of several workers one gets them, or the one try.
    """
    lapsed, today = or_(lane.c.paused_until.is_(None), lane.c.paused_until <= now), now.date()
    which, values = [*_is(key), lapsed], dict[str, Any]()
    if wanted.rate is not None:
        clock = _clock(not db.is_sqlite)
        which.append(lane.c.next_slot <= clock)
        values["next_slot"] = _later(not db.is_sqlite, clock - AHEAD) + wanted.slots / wanted.rate
    if wanted.cap is not None:
        values |= {"day": today, "taken": _taken(today) + wanted.slots}
        which.append(_taken(today) + wanted.slots <= wanted.cap)
    if wanted.tries:
        which.append(lane.c.paused_until.is_not(None))
        values["paused_until"] = now + tempo.PROBING
    rows = await _at_once(db, update(lane).where(*which).values(values).returning(lane.c.name))
    return wanted.slots if rows else 0


async def count_day(db: Database, name: str, many: int, quota: int, now: datetime) -> int:
    """Take up to `many` mails of a relay's daily quota; returns how many there were, 0 when it is used up."""
    await put_down(db, (name, ""))
    while True:
        taken = (await _at_once(db, select(_taken(now.date())).where(*_is((name, "")))))[0][0]
        many = min(many, quota - taken)
        if many <= 0 or await allow(db, (name, ""), Allowance(many, cap=quota), now):
            return max(0, many)


async def began(db: Database, name: str, now: datetime) -> date:
    """Return the day on which a relay's warm-up began; it is today where it never did."""
    await put_down(db, (name, ""))
    first = func.coalesce(lane.c.began, literal(now.date(), lane.c.began.type))
    start = update(lane).where(*_is((name, ""))).values(began=first).returning(lane.c.began)
    day: date = (await _at_once(db, start))[0][0]
    return day


async def put_down(db: Database, key: Key) -> None:
    """Let there be a lane."""
    statement = insert_for(not db.is_sqlite, lane).values(_new(*key))
    await _at_once(db, statement.on_conflict_do_nothing())


async def lanes(session: AsyncSession) -> Lanes:
    """Return the row of every lane."""
    rows = await session.execute(select(lane))
    return {(row.name, row.provider): row for row in rows}


def tempo_of(row: Row[*tuple[Any, ...]]) -> Tempo:
    """Return the tempo that a lane's row holds."""
    return Tempo(*(getattr(row, name) for name in _TEMPO))


async def note(db: Database, key: Key, heard: Strike | None, words: str, now: datetime) -> None:
    """Note a reply that asks for less, or (None) that the mail which tried a paused lane was taken.

    Who comes second to a lane at the same moment looks again: no lock is held meanwhile.
    """
    await put_down(db, key)
    while True:
        row = (await _at_once(db, select(lane).where(*_is(key))))[0]
        before = tempo_of(row)
        after = tempo.struck(before, heard, now) if heard else tempo.passed(before, now)
        if after == before:
            return
        values = asdict(after) | {"version": row.version + 1, "noted_at": now}
        values["problem"] = words[:PROBLEM_LIMIT] if heard else row.problem
        same = lane.c.version == row.version
        if await _at_once(db, update(lane).where(*_is(key), same).values(values).returning(lane.c.name)):
            return


async def note_health(session: AsyncSession, problems: Mapping[str, str | None], now: datetime) -> None:
    """Keep what is wrong with each relay, by name; None where it takes mail."""
    for name, problem in sorted(problems.items()):
        values = {"problem": problem and problem[:PROBLEM_LIMIT], "noted_at": now}
        statement = upsert(session, lane).values(_new(name) | values)
        await session.execute(
            statement.on_conflict_do_update(index_elements=["name", "provider"], set_=values)
        )


async def health(session: AsyncSession, since: datetime) -> dict[str, str | None]:
    """Return what is wrong with each relay of which a worker has told since then."""
    found = select(lane.c.name, lane.c.problem).where(lane.c.noted_at >= since, lane.c.provider == "")
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


async def _at_once(db: Database, statement: Any) -> Sequence[Row[*tuple[Any, ...]]]:
    """Run one statement that is a transaction of its own, so that no lock outlives it; return its rows."""
    if db.is_sqlite:
        return await db.work(lambda connection: _rows(connection.execute(statement)))
    with told_plainly():
        async with db.engine.connect() as connection:
            alone = await connection.execution_options(isolation_level="AUTOCOMMIT")
            return _rows(await alone.execute(statement))


def _rows(result: Any) -> list[Row[*tuple[Any, ...]]]:
    return list(result) if result.returns_rows else []


def _new(name: str, provider: str = "") -> dict[str, Any]:
    zeros = dict.fromkeys(("next_slot", "taken", "strikes", "pause", "version"), 0)
    return {"name": name, "provider": provider} | zeros


def _is(key: Key) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return lane.c.name == key[0], lane.c.provider == key[1]


def _taken(today: date) -> ColumnElement[int]:
    """Return how many mails of today were counted."""
    return case((lane.c.day == today, lane.c.taken), else_=0)


def _later(is_postgresql: bool, than: ColumnElement[float]) -> ColumnElement[float]:
    return (func.greatest if is_postgresql else func.max)(lane.c.next_slot, than)


def _clock(is_postgresql: bool) -> ColumnElement[float]:
    if is_postgresql:
        return cast(func.extract("epoch", func.clock_timestamp()), Float)
    return (func.julianday("now") - 2440587.5) * literal(86400.0)

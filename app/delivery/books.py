"""The books of a mailing: how many of its deliveries stand in each state, kept beside the rows."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, bindparam, case, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.core.db import insert_for, upsert
from app.core.hot import Hot, given
from app.delivery.models import Delivery, State, Tally

delivery: Table = Delivery.__table__  # type: ignore[attr-defined]
tally: Table = Tally.__table__  # type: ignore[attr-defined]

NOBODY = 0  # the tally row of moves that no worker made
STALE = timedelta(seconds=10)
NOTHING = dict.fromkeys(map(str, State), 0)
Moves = Counter[tuple[int, State | None, State]]  # (mailing, from, to) and how many


def count(connection: Connection, worker_id: int, moves: Moves) -> None:
    """Move the tallies as the rows moved: one statement for each mailing."""
    changes: dict[int, Counter[str]] = {}
    for (mailing_id, before, after), many in moves.items():
        change = changes.setdefault(mailing_id, Counter())
        change[after] += many
        if before is not None:
            change[before] -= many
    for mailing_id, change in sorted(changes.items()):  # one order for all, so that nobody deadlocks
        if any(change.values()):
            COUNTING.run(connection, mailing_id=mailing_id, worker_id=worker_id, **NOTHING | change)


def _counting(is_postgresql: bool) -> Any:
    """Return the statement that adds to a worker's tally of a mailing, or begins it."""
    names = ("mailing_id", "worker_id", *State)
    statement = insert_for(is_postgresql, tally).values(
        **{name: given(name, tally.c[name].type) for name in names}, rate=0.0
    )
    added = {state: tally.c[state] + statement.excluded[state] for state in State}
    return statement.on_conflict_do_update(index_elements=["mailing_id", "worker_id"], set_=added)


COUNTING = Hot(_counting)


def _summed(values: Mapping[str, ColumnElement[Any]]) -> Select[*tuple[Any, ...]]:
    columns = [func.coalesce(func.sum(value), 0).label(name) for name, value in values.items()]
    return select(*columns).where(tally.c.mailing_id == bindparam("mailing"))


# Made once, for they are asked all the while a mailing is looked at.
_LATELY = tally.c.rated_at > bindparam("lately", type_=tally.c.rated_at.type)
_COUNTED: dict[str, ColumnElement[Any]] = {state: tally.c[state] for state in State}
_COUNTS = _summed(_COUNTED)
# Of `mailing`, with the mails a second of all workers that have said so since `lately`.
COUNTS_AND_RATE = _summed(_COUNTED | {"rate": case((_LATELY, tally.c.rate))})


async def counts(session: AsyncSession, mailing_id: int) -> dict[str, int]:
    """Return how many deliveries stand in each state, as the tallies have it."""
    return told((await session.execute(_COUNTS, {"mailing": mailing_id})).one())


def told(row: Any) -> dict[str, int]:
    """Return a row with the counts in the words of a mailing."""
    return {state.value: int(row._mapping[state]) for state in State}


async def recount(session: AsyncSession, mailing_id: int) -> dict[str, int]:
    """Return how many deliveries stand in each state, counted row by row."""
    found = (
        select(delivery.c.state, func.count())
        .where(delivery.c.mailing_id == mailing_id)
        .group_by(delivery.c.state)
    )
    rows: dict[str, int] = dict((await session.execute(found)).all())
    return {state.value: rows.get(state, 0) for state in State}


async def note_rate(
    session: AsyncSession, mailing_id: int, worker_id: int, rate: float, now: datetime
) -> None:
    """Keep how many mails a second a worker sends of a mailing."""
    which = (tally.c.mailing_id == mailing_id) & (tally.c.worker_id == worker_id)
    await session.execute(update(tally).where(which).values(rate=rate, rated_at=now))


async def correct(session: AsyncSession, mailing_id: int, changes: Mapping[str, int]) -> None:
    """Change a mailing's tallies by these numbers, whoever made them wrong."""
    values = {name: tally.c[name] + many for name, many in changes.items()}
    insert = upsert(session, tally).values(
        mailing_id=mailing_id, worker_id=NOBODY, rate=0.0, **(dict.fromkeys(State, 0) | dict(changes))
    )
    update_ = insert.on_conflict_do_update(index_elements=["mailing_id", "worker_id"], set_=values)
    await session.execute(update_ if values else insert.on_conflict_do_nothing())

"""Claim and settle: how a worker takes on what is owed, and records what became of it.

Like the ledger's other moves, each names the states it may start from and counts what the database changed.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, Table, and_, bindparam, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.delivery import books, timing
from app.delivery.models import Delivery, Letter, State, is_waiting

delivery: Table = Delivery.__table__  # type: ignore[attr-defined]
letter: Table = Letter.__table__  # type: ignore[attr-defined]

STANDINGS = {"due": State.IN_FLIGHT, "suppressed": State.SUPPRESSED}  # any other is withdrawn


@dataclass(frozen=True, slots=True)
class Claim:
    """What one worker has taken on: a delivery (its issue and subscriber) or a letter (its id)."""

    key: tuple[int, ...]
    mailing_id: int | None
    subscriber_id: int | None
    address: str
    language: str
    attempts: int
    letter: Mapping[str, Any] | None = None

    @property
    def table(self) -> Table:
        """The table that this claim's row is in."""
        return delivery if self.mailing_id is not None else letter


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of a claim, ready to be recorded."""

    claim: Claim
    state: State
    due_at: datetime
    done_at: datetime
    reason: str | None = None
    relay: str | None = None
    relay_id: str | None = None
    code: int | None = None
    reply: str | None = None
    attempts: int = 0
    stage: str = ""  # of a refusal


async def claim(
    session: AsyncSession,
    worker_id: int,
    mailing_id: int,
    addressees: Select[*tuple[Any, ...]],
    limit: int,
    now: datetime,
) -> list[Claim]:
    """Take up to `limit` due deliveries of a mailing for a worker, and settle those no longer due to anybody.

    `addressees` selects (subscriber_id, address, language, standing) for the mailing's edition.
    """
    rows = (await session.execute(_due(mailing_id, limit, now))).all()
    theirs = addressees.where(addressees.selected_columns.subscriber_id.in_([r.subscriber_id for r in rows]))
    known = {row.subscriber_id: row for row in await session.execute(theirs)} if rows else {}
    moves: books.Moves = Counter()
    by_state: dict[State, list[Row[*tuple[Any, ...]]]] = {}
    for row in rows:
        standing = known[row.subscriber_id].standing if row.subscriber_id in known else "erased"
        state = STANDINGS.get(standing, State.WITHDRAWN)
        moves[mailing_id, State(row.state), state] += 1
        by_state.setdefault(state, []).append(row)
    for state, those in by_state.items():
        await _take(session, worker_id, state, those, now)
    await books.count(session, worker_id, moves)
    taken = [(row, known[row.subscriber_id]) for row in by_state.get(State.IN_FLIGHT, [])]
    return [
        Claim(tuple(row[:2]), mailing_id, row.subscriber_id, who.address, who.language, row.attempts + 1)
        for row, who in taken
    ]


def _due(mailing_id: int, limit: int, now: datetime) -> Select[*tuple[Any, ...]]:
    return (
        select(delivery.c.issue_id, delivery.c.subscriber_id, delivery.c.state, delivery.c.attempts)
        .where(
            delivery.c.mailing_id == mailing_id,
            delivery.c.provider == "",
            is_waiting(delivery),
            delivery.c.due_at <= now,
        )
        .order_by(delivery.c.due_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )


async def claim_letters(session: AsyncSession, worker_id: int, limit: int, now: datetime) -> list[Claim]:
    """Take up to `limit` due letters for a worker, the oldest first."""
    due = (
        select(letter)
        .where(is_waiting(letter), letter.c.due_at <= now, letter.c.created_at > now - timing.LETTER_LIFE)
        .order_by(letter.c.due_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    rows = (await session.execute(due)).all()
    if rows:
        values = {"state": State.IN_FLIGHT, "worker_id": worker_id, "attempts": letter.c.attempts + 1}
        await session.execute(update(letter).where(letter.c.id.in_([row.id for row in rows])).values(values))
    return [
        Claim((row.id,), None, row.subscriber_id, row.address, row.language, row.attempts + 1, row._asdict())
        for row in rows
    ]


async def settle(session: AsyncSession, worker_id: int, settlements: Sequence[Settlement]) -> None:
    """Record what became of a worker's claims; `sent` is recorded whoever holds the claim by now."""
    moves: books.Moves = Counter()
    for table in (delivery, letter):
        those = [one for one in settlements if one.claim.table is table]
        if not those:
            continue
        found = await _standing(session, table, [one.claim.key for one in those])
        held = [one for one in those if _may_settle(one, found.get(one.claim.key), worker_id)]
        for one in held:
            if one.claim.mailing_id is not None:
                moves[one.claim.mailing_id, found[one.claim.key][0], one.state] += 1
        await _record(session, table, held)
    await books.count(session, worker_id, moves)


async def _take(
    session: AsyncSession, worker_id: int, state: State, rows: list[Row[*tuple[Any, ...]]], now: datetime
) -> None:
    values: dict[str, Any] = {"state": state}
    if state == State.IN_FLIGHT:
        values |= {"worker_id": worker_id, "attempts": delivery.c.attempts + 1}
    else:
        values |= {"done_at": now, "reason": "not due to this reader any more"}
    which = and_(
        delivery.c.issue_id == rows[0].issue_id,
        delivery.c.subscriber_id.in_([row.subscriber_id for row in rows]),
    )
    await session.execute(update(delivery).where(which).values(values))


async def _standing(
    session: AsyncSession, table: Table, keys: list[tuple[int, ...]]
) -> dict[tuple[int, ...], tuple[State, int | None]]:
    """Return state and holder of each row, locked until the transaction ends."""
    primary = list(table.primary_key.columns)
    which = tuple_(*primary).in_(keys)  # one cached statement for any number of keys
    found = select(*primary, table.c.state, table.c.worker_id).where(which).with_for_update()
    rows = (await session.execute(found)).all()
    return {tuple(row[:-2]): (State(row[-2]), row[-1]) for row in rows}


def _may_settle(one: Settlement, standing: tuple[State, int | None] | None, worker_id: int) -> bool:
    if standing is None:
        return False
    holds_claim = standing == (State.IN_FLIGHT, worker_id)
    return holds_claim or (one.state == State.SENT and standing[0] != State.SENT)


async def _record(session: AsyncSession, table: Table, settlements: Sequence[Settlement]) -> None:
    if not settlements:
        return
    names = ("state", "due_at", "done_at", "reason", "relay", "relay_id", "code", "reply", "attempts")
    primary = list(table.primary_key.columns)
    statement = (
        update(table)
        .where(*(column == bindparam(f"key_{i}") for i, column in enumerate(primary)))
        .values({name: bindparam(f"new_{name}") for name in names})
    )
    rows = [
        {f"key_{i}": value for i, value in enumerate(one.claim.key)}
        | {f"new_{name}": getattr(one, name) for name in names}
        for one in settlements
    ]
    await (await session.connection()).execute(statement, rows)

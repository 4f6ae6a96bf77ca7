"""Claim and settle: how a worker takes on what is owed, and records what became of it.

Like the ledger's other moves, each names the states it may start from and counts what the database changed.
They are steps of `Database.work`: this is what every mail waits for, so statements are made once and are few.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Sized
from datetime import datetime
from functools import cache, partial
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Integer,
    Select,
    Table,
    Update,
    bindparam,
    exists,
    select,
    update,
)

from app.core.hot import Columns, ForEach, Hot, given, instant
from app.delivery import books, timing
from app.delivery.models import UNDER_WAY, Delivery, Letter, Mailing, State, is_waiting

delivery: Table = Delivery.__table__  # type: ignore[attr-defined]
letter: Table = Letter.__table__  # type: ignore[attr-defined]
mailing: Table = Mailing.__table__  # type: ignore[attr-defined]

Key = tuple[int, ...]  # a claim's row: a delivery's issue and subscriber, or a letter's id

STANDINGS = {"due": State.IN_FLIGHT, "suppressed": State.SUPPRESSED}  # any other is withdrawn


class Claim(NamedTuple):
    """What one worker has taken on: a delivery (its issue and subscriber) or a letter (its id)."""

    key: Key
    mailing_id: int | None
    subscriber_id: int | None
    address: str
    language: str
    attempts: int
    letter: Mapping[str, Any] | None = None
    slot: datetime | None = None  # the reader's own hour
    provider: str = ""

    @property
    def table(self) -> Table:
        """The table that this claim's row is in."""
        return delivery if self.mailing_id is not None else letter


class Settlement(NamedTuple):
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


def claim(
    connection: Connection,
    worker_id: int,
    source: tuple[int, str],
    addressees: Hot,
    limit: int,
    now: datetime,
) -> tuple[list[Claim], books.Moves]:
    """Take up to `limit` due deliveries for a worker, and settle those no longer due to anybody.

    Returns what was taken and how rows moved, which the caller counts in the same transaction.

    `source` is a mailing and a provider, one at a time: so rows of one that is paused stand in nobody's way. Nothing
    is taken from a mailing that is not under way. `addressees` selects (subscriber_id, address, language, standing)
    for the mailing's edition, of those in its parameter `who`, as they stand `now`.
    """
    mailing_id, provider = source
    rows = DUE.run(connection, mailing=mailing_id, provider=provider, limit=limit, now=now)
    moves: books.Moves = Counter()
    if not rows:
        return [], moves
    who = {row[0]: row[1:] for row in addressees.run(connection, who=[row[1] for row in rows], now=now)}
    taken, unsent = list[Claim](), list[tuple[Any, ...]]()
    for issue_id, subscriber_id, was, attempts, slot in rows:
        key, nobody = (issue_id, subscriber_id), ("", "", "erased")
        address, language, standing = who.get(subscriber_id, nobody)
        state = STANDINGS.get(standing, State.WITHDRAWN)
        moves[mailing_id, State(was), state] += 1
        if state == State.IN_FLIGHT:
            its = (key, mailing_id, subscriber_id, address, language, attempts + 1)
            taken.append(Claim(*its, slot=instant(slot), provider=provider))
        else:
            unsent.append((*key, state))
    if unsent:
        _sure(SETTLE_UNSENT.change(connection, unsent, now=now), unsent)
    if taken:
        _sure(TAKE.change(connection, [one.key for one in taken], worker=worker_id), taken)
    return taken, moves


def _due(is_postgresql: bool) -> Select[*tuple[Any, ...]]:  # noqa: ARG001
    number, now = given("mailing", mailing.c.id.type), given("now", delivery.c.due_at.type)
    goes_on = exists().where(
        mailing.c.id == number, mailing.c.state.in_(UNDER_WAY), mailing.c.expires_at > now
    )
    c = delivery.c
    return (
        select(c.issue_id, c.subscriber_id, c.state, c.attempts, c.slot)
        .where(
            c.mailing_id == number,
            c.provider == given("provider", c.provider.type),
            is_waiting(delivery),
            c.due_at <= now,
            goes_on,
        )
        .order_by(c.due_at)
        .limit(given("limit", Integer()))
        .with_for_update(skip_locked=True, of=delivery)
    )


def _take(its: Columns) -> Update:
    taken = {"worker_id": given("worker", delivery.c.worker_id.type), "attempts": delivery.c.attempts + 1}
    return update(delivery).where(*_is_its(delivery, its)).values(state=State.IN_FLIGHT, **taken)


def _settle_unsent(its: Columns) -> Update:
    settled = {"state": its["state"], "done_at": given("now", delivery.c.done_at.type)}
    reason = "not due to this reader any more"
    return update(delivery).where(*_is_its(delivery, its)).values(reason=reason, **settled)


def _is_its(table: Table, its: Columns) -> list[ColumnElement[bool]]:
    """Return that a row has the key of one of those that a statement is for."""
    return [column == its[column.name] for column in table.primary_key]


def _sure(changed: int, meant: Sized) -> None:
    """Raise RuntimeError, which undoes it all, unless as many rows have changed as were locked for it."""
    if changed != len(meant):
        raise RuntimeError(f"{changed} of {len(meant)} rows have changed")


def _by_key(table: Table, make: Callable[[Columns], Executable], *others: str) -> ForEach:
    """Return a statement for rows that begin with a key of the table and go on with its other columns."""
    return ForEach(table, [*(column.name for column in table.primary_key), *others], make)


DUE = Hot(_due)
TAKE, SETTLE_UNSENT = _by_key(delivery, _take), _by_key(delivery, _settle_unsent, "state")


def claim_letters(connection: Connection, worker_id: int, limit: int, now: datetime) -> list[Claim]:
    """Take up to `limit` due letters for a worker, the oldest first."""
    young = now - timing.LETTER_LIFE
    rows = connection.execute(_due_letters(), {"limit": limit, "now": now, "young": young}).all()
    if rows:
        connection.execute(_take_letters(), {"these": [row.id for row in rows], "worker": worker_id})
    return [
        Claim((row.id,), None, row.subscriber_id, row.address, row.language, row.attempts + 1, row._asdict())
        for row in rows
    ]


@cache
def _due_letters() -> Select[*tuple[Any, ...]]:
    kind = letter.c.due_at.type
    return (
        select(letter)
        .where(
            is_waiting(letter),
            letter.c.due_at <= bindparam("now", type_=kind),
            letter.c.created_at > bindparam("young", type_=kind),
        )
        .order_by(letter.c.due_at)
        .limit(bindparam("limit"))
        .with_for_update(skip_locked=True)
    )


@cache
def _take_letters() -> Update:
    holder = bindparam("worker", type_=letter.c.worker_id.type)
    values = {"state": State.IN_FLIGHT, "worker_id": holder, "attempts": letter.c.attempts + 1}
    return update(letter).where(letter.c.id.in_(bindparam("these", expanding=True))).values(values)


def settle(connection: Connection, worker_id: int, settlements: Sequence[Settlement]) -> books.Moves:
    """Record what became of a worker's claims; `sent` is recorded whoever holds the claim by now.

    Returns how rows moved, which the caller counts in the same transaction.
    """
    moves: books.Moves = Counter()
    for table in TABLES:
        mine = [one for one in settlements if one.claim.table is table]
        if not mine:
            continue
        rows = STANDING[table.name].read(connection, [one.claim.key for one in mine])
        stood = {tuple(key): (was, holder) for *key, was, holder in rows}
        good = [one for one in mine if _may_settle(one, *stood.get(one.claim.key, (None, None)), worker_id)]
        if good:
            outcomes = [(*one.claim.key, *_recorded(one)) for one in good]
            _sure(RECORDING[table.name].change(connection, outcomes), good)
        for one in good:
            if (number := one.claim.mailing_id) is not None:
                moves[number, State(stood[one.claim.key][0]), one.state] += 1
    return moves


RECORDED = ("state", "due_at", "done_at", "reason", "relay", "relay_id", "code", "reply", "attempts")
_recorded = attrgetter(*RECORDED)


def _may_settle(one: Settlement, was: str | None, holder: int | None, worker_id: int) -> bool:
    """Tell whether an outcome is to be recorded, for a row that was so and was held by this worker or another."""
    holds = was == State.IN_FLIGHT and holder == worker_id
    return holds or (one.state == State.SENT and was not in (None, State.SENT))


def _standing(table: Table, its: Columns) -> Select[*tuple[Any, ...]]:
    """Return what locks the rows, in one order for all, and tells of each its key, its state and who holds it."""
    key = table.primary_key
    found = select(*key, table.c.state, table.c.worker_id).where(*_is_its(table, its)).order_by(*key)
    return found.with_for_update(of=table)


def _recording(table: Table, its: Columns) -> Update:
    return update(table).where(*_is_its(table, its)).values({name: its[name] for name in RECORDED})


TABLES = (delivery, letter)
STANDING = {table.name: _by_key(table, partial(_standing, table)) for table in TABLES}
RECORDING = {table.name: _by_key(table, partial(_recording, table), *RECORDED) for table in TABLES}

"""Claim and settle: how a worker takes on what is owed, and records what became of it.

Like the ledger's other moves, each names the states it may start from and counts what the database changed.
They are steps of `Database.work`: this is what every mail waits for, so statements are made once and are few.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from operator import attrgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    Table,
    Update,
    bindparam,
    exists,
    select,
    tuple_,
    update,
)

from app.core.hot import Hot, given, instant
from app.delivery import books, timing
from app.delivery.models import UNDER_WAY, Delivery, Letter, Mailing, State, is_in_flight, is_waiting

delivery: Table = Delivery.__table__  # type: ignore[attr-defined]
letter: Table = Letter.__table__  # type: ignore[attr-defined]
mailing: Table = Mailing.__table__  # type: ignore[attr-defined]

Key = tuple[int, ...]  # a claim's row: a delivery's issue and subscriber, or a letter's id

STANDINGS = {"due": State.IN_FLIGHT, "suppressed": State.SUPPRESSED}  # any other is withdrawn


@dataclass(frozen=True, slots=True)
class Claim:
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


def claim(
    connection: Connection,
    worker_id: int,
    source: tuple[int, str],
    addressees: Hot,
    limit: int,
    now: datetime,
) -> list[Claim]:
    """Take up to `limit` due deliveries for a worker, and settle those no longer due to anybody.

    `source` is a mailing and a provider, one at a time: so rows of one that is paused stand in nobody's way. Nothing
    is taken from a mailing that is not under way. `addressees` selects (subscriber_id, address, language, standing)
    for the mailing's edition, of those in its parameter `who`, as they stand `now`.
    """
    mailing_id, provider = source
    rows = DUE.run(connection, mailing=mailing_id, provider=provider, limit=limit, now=now)
    if not rows:
        return []
    who = {row[0]: row[1:] for row in addressees.run(connection, who=[row[1] for row in rows], now=now)}
    moves: books.Moves = Counter()
    taken, unsent = list[Claim](), list[dict[str, Any]]()
    for issue_id, subscriber_id, was, attempts, slot in sorted(rows):
        key, nobody = (issue_id, subscriber_id), ("", "", "erased")
        address, language, standing = who.get(subscriber_id, nobody)
        state = STANDINGS.get(standing, State.WITHDRAWN)
        moves[mailing_id, State(was), state] += 1
        if state == State.IN_FLIGHT:
            its = (key, mailing_id, subscriber_id, address, language, attempts + 1)
            taken.append(Claim(*its, slot=instant(slot), provider=provider))
        else:
            unsent.append(_named(key) | {"state": state, "now": now})
    SETTLE_UNSENT.each(connection, unsent)
    TAKE.each(connection, (_named(one.key) | {"worker": worker_id} for one in taken))
    books.count(connection, worker_id, moves)
    return taken


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


def _take(_: bool) -> Update:
    taken = {"worker_id": given("worker", delivery.c.worker_id.type), "attempts": delivery.c.attempts + 1}
    return _its_row(delivery).values(state=State.IN_FLIGHT, **taken)


def _settle_unsent(_: bool) -> Update:
    settled = {
        "state": given("state", delivery.c.state.type),
        "done_at": given("now", delivery.c.done_at.type),
    }
    return _its_row(delivery).values(reason="not due to this reader any more", **settled)


ITS = ("its_0", "its_1")  # what the parts of a key are called as parameters


def _its_row(table: Table) -> Update:
    """Return an update of one row by its key: of many rows PostgreSQL's plan is bad while it has no statistics."""
    parts = zip(table.primary_key, ITS, strict=False)
    return update(table).where(*(column == given(name, column.type) for column, name in parts))


def _named(key: Key) -> dict[str, Any]:
    return dict(zip(ITS, key, strict=False))


DUE, TAKE, SETTLE_UNSENT = Hot(_due), Hot(_take), Hot(_settle_unsent)


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


def settle(connection: Connection, worker_id: int, settlements: Sequence[Settlement]) -> None:
    """Record what became of a worker's claims; `sent` is recorded whoever holds the claim by now."""
    moves: books.Moves = Counter()
    for table in (delivery, letter):
        those = sorted((one for one in settlements if one.claim.table is table), key=_key)
        if not those:
            continue
        holding, whoever = RECORDING[table.name]
        held = holding.each(connection, (_row(one) | {"worker": worker_id} for one in those))
        was = {one.claim.key: State.IN_FLIGHT for one, many in zip(those, held, strict=True) if many}
        late = [one for one in those if one.claim.key not in was and one.state == State.SENT]
        if late:
            keys = {"keys": [one.claim.key for one in late]}
            was |= {tuple(row[:-1]): State(row[-1]) for row in connection.execute(_standing(table), keys)}
            whoever.each(connection, (_row(one) for one in late))
        for one in those:
            if one.claim.key in was and (number := one.claim.mailing_id) is not None:
                moves[number, was[one.claim.key], one.state] += 1
    books.count(connection, worker_id, moves)


RECORDED = ("state", "due_at", "done_at", "reason", "relay", "relay_id", "code", "reply", "attempts")


def _key(one: Settlement) -> Key:
    return one.claim.key


def _row(one: Settlement) -> dict[str, Any]:
    """Return an outcome as the statement that records it takes it."""
    return dict(zip(RECORDED, _recorded(one), strict=True)) | _named(one.claim.key)


_recorded = attrgetter(*RECORDED)


def _recording(table: Table) -> Update:
    """Return what records an outcome in its row."""
    return _its_row(table).values({name: given(name, table.c[name].type) for name in RECORDED})


def _recording_held(table: Table, _: bool) -> Update:
    """Return what records an outcome where the worker holds the claim."""
    holder = table.c.worker_id == given("worker", table.c.worker_id.type)
    return _recording(table).where(is_in_flight(table), holder)


def _recording_sent(table: Table, _: bool) -> Update:
    """Return what records an outcome whoever holds the claim."""
    return _recording(table).where(_not_sent(table))


@cache
def _standing(table: Table) -> Select[*tuple[Any, ...]]:
    """Return what locks the rows that are not sent yet, in one order for all, and tells key and state of each."""
    key = list(table.primary_key.columns)
    these = tuple_(*key).in_(bindparam("keys", expanding=True))
    return select(*key, table.c.state).where(these, _not_sent(table)).order_by(*key).with_for_update()


def _not_sent(table: Table) -> ColumnElement[bool]:
    return table.c.state != State.SENT


RECORDING = {
    table.name: (Hot(partial(_recording_held, table)), Hot(partial(_recording_sent, table)))
    for table in (delivery, letter)
}

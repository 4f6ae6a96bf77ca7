"""Claim and settle: how a worker takes on what is owed, and records what became of it.

Like the ledger's other moves, each names the states it may start from and counts what the database changed.
They are steps of `Database.work`: this is what every mail waits for, so statements are made once and are few.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Any

from sqlalchemy import (
    TIMESTAMP,
    ColumnElement,
    Connection,
    Integer,
    Row,
    Select,
    Table,
    Text,
    Update,
    bindparam,
    exists,
    func,
    select,
    tuple_,
    update,
)
from sqlalchemy import cast as as_type
from sqlalchemy.dialects.postgresql import JSON
from sqlalchemy.sql.dml import ReturningUpdate

from app.core.db import stored
from app.core.hot import Hot, given, instant, listed
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
    moves: books.Moves = Counter()
    those = [row.subscriber_id for row in rows]
    known = {row.subscriber_id: row for row in addressees.run(connection, who=those, now=now)}
    by_state: dict[State, list[Row[*tuple[Any, ...]]]] = {}
    for row in rows:
        standing = known[row.subscriber_id].standing if row.subscriber_id in known else "erased"
        state = STANDINGS.get(standing, State.WITHDRAWN)
        moves[mailing_id, State(row.state), state] += 1
        by_state.setdefault(state, []).append(row)
    for state, group in by_state.items():
        which = {"issue": group[0].issue_id, "who": [row.subscriber_id for row in group]}
        if state == State.IN_FLIGHT:
            TAKE.run(connection, worker=worker_id, **which)
        else:
            SETTLE_UNSENT.run(connection, state=state, now=now, **which)
    books.count(connection, worker_id, moves)
    taken = [(row, known[row.subscriber_id]) for row in by_state.get(State.IN_FLIGHT, [])]
    return [
        Claim(row[:2], mailing_id, row[1], who.address, who.language, row.attempts + 1, slot=instant(row.slot),
              provider=provider)
        for row, who in taken
    ]  # fmt: skip


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


def _take(is_postgresql: bool) -> Update:
    taken = {"worker_id": given("worker", delivery.c.worker_id.type), "attempts": delivery.c.attempts + 1}
    return _those(is_postgresql).values(state=State.IN_FLIGHT, **taken)


def _settle_unsent(is_postgresql: bool) -> Update:
    settled = {
        "state": given("state", delivery.c.state.type),
        "done_at": given("now", delivery.c.done_at.type),
    }
    return _those(is_postgresql).values(reason="not due to this reader any more", **settled)


def _those(is_postgresql: bool) -> Update:
    who = delivery.c.subscriber_id.in_(listed("who", is_postgresql))
    return update(delivery).where(delivery.c.issue_id == given("issue", delivery.c.issue_id.type), who)


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
        those = {one.claim.key: one for one in settlements if one.claim.table is table}
        if not those:
            continue
        holding, whoever = RECORDING[table.name]
        rows = holding.run(connection, rows=_rows(those.values()), worker=worker_id)
        recorded = [(tuple(row), State.IN_FLIGHT) for row in rows]
        lost = those.keys() - {key for key, _ in recorded}
        if late := [those[key] for key in lost if those[key].state == State.SENT]:
            keys = {"keys": [one.claim.key for one in late]}
            recorded += [
                (tuple(row[:-1]), State(row[-1])) for row in connection.execute(_standing(table), keys)
            ]
            whoever.run(connection, rows=_rows(late))
        for key, was in recorded:
            if (number := those[key].claim.mailing_id) is not None:
                moves[number, was, those[key].state] += 1
    books.count(connection, worker_id, moves)


RECORDED = ("state", "due_at", "done_at", "reason", "relay", "relay_id", "code", "reply", "attempts")


def _rows(settlements: Iterable[Settlement]) -> list[tuple[Any, ...]]:
    """Return outcomes as the statement that records them takes them, in the order of their keys."""
    return sorted(
        (
            *one.claim.key, one.state, stored(one.due_at), stored(one.done_at), one.reason,
            one.relay, one.relay_id, one.code, one.reply, one.attempts,
        )
        for one in settlements
    )  # fmt: skip


def _recording(table: Table, is_postgresql: bool) -> Update:
    """Return what records outcomes in the rows that they are of."""
    new = _given(table, is_postgresql)
    these = update(table).where(*(column == new[column.name] for column in table.primary_key))
    return these.values({name: new[name] for name in RECORDED})


def _recording_held(table: Table, is_postgresql: bool) -> ReturningUpdate[*tuple[Any, ...]]:
    """Return what records outcomes where the worker holds the claim, and tells the keys."""
    holder = table.c.worker_id == given("worker", table.c.worker_id.type)
    recording = _recording(table, is_postgresql).where(is_in_flight(table), holder)
    return recording.returning(*table.primary_key)


def _recording_sent(table: Table, is_postgresql: bool) -> Update:
    """Return what records outcomes whoever holds the claim."""
    return _recording(table, is_postgresql).where(_not_sent(table))


@cache
def _standing(table: Table) -> Select[*tuple[Any, ...]]:
    """Return what locks the rows that are not sent yet, in one order for all, and tells key and state of each."""
    key = list(table.primary_key.columns)
    these = tuple_(*key).in_(bindparam("keys", expanding=True))
    return select(*key, table.c.state).where(these, _not_sent(table)).order_by(*key).with_for_update()


def _not_sent(table: Table) -> ColumnElement[bool]:
    return table.c.state != State.SENT


def _given(table: Table, is_postgresql: bool) -> dict[str, ColumnElement[Any]]:
    """Return the columns of the JSON that `_rows` makes, as this database unpacks it."""
    names = [*(column.name for column in table.primary_key), *RECORDED]
    many = given("rows", Text())
    if not is_postgresql:
        row = func.json_each(many).table_valued("value", name="given").c.value
        return {
            name: func.json_extract(row, f"$[{at}]", type_=table.c[name].type)
            for at, name in enumerate(names)
        }
    row = func.json_array_elements(as_type(many, JSON)).table_valued("value", name="given").c.value
    texts: dict[str, ColumnElement[Any]] = {
        name: func.json_extract_path_text(row, str(at)) for at, name in enumerate(names)
    }
    new: dict[str, ColumnElement[Any]] = {name: as_type(texts[name], table.c[name].type) for name in names}
    for name in ("due_at", "done_at"):
        new[name] = func.timezone("UTC", as_type(texts[name], TIMESTAMP()))
    return new


RECORDING = {
    table.name: (Hot(partial(_recording_held, table)), Hot(partial(_recording_sent, table)))
    for table in (delivery, letter)
}

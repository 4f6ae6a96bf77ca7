"""Enlist, withdraw, expire, free: the moves of the ledger that no claim makes (those are in `claims`).

Every move names the states it may start from, and its count is what the database says it changed. The
tally of a mailing moves in the same transaction as its rows, so that the books balance at every commit.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Executable,
    FromClause,
    Select,
    Table,
    and_,
    case,
    cast,
    delete,
    false,
    func,
    literal,
    not_,
    null,
    or_,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.ext.asyncio import AsyncSession

from app.core.db import changed, is_postgresql, run, upsert
from app.delivery import books
from app.delivery.claims import Key
from app.delivery.models import Delivery, Letter, Mailing, MailingState, State, is_in_flight, is_waiting

delivery: Table = Delivery.__table__  # type: ignore[attr-defined]
letter: Table = Letter.__table__  # type: ignore[attr-defined]
mailing: Table = Mailing.__table__  # type: ignore[attr-defined]

CHUNK = 5_000


Readers = Select[*tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Audience:
    """Whom an issue is owed to. `chosen` selects every subscriber_id it may be, in the order of an index; `readers`
    selects who of them it is (subscriber_id, provider), above one id and up to another.

    A third column `slot` says whose own hour is to come.
    """

    chosen: Select[int]
    readers: Callable[[int, int], Readers]


async def enlist(
    session: AsyncSession, mailing_id: int, audience: Audience, now: datetime, chunk: int = CHUNK
) -> bool:
    """Owe the issue to the readers among the next `chunk` of those who have chosen it; True when nobody is left.

    Who has an hour of their own is due then, and lives from then on. Only a mailing in preparation owes anything. A
    row that exists is left alone, so a repeated or interrupted call owes nothing twice.
    """
    row = (await session.execute(select(mailing).where(mailing.c.id == mailing_id).with_for_update())).one()
    if row.state != MailingState.PREPARING:
        return False  # paused or cancelled a moment ago: nothing more is owed
    upto = await _end_of_chunk(session, audience.chosen, row.cursor, chunk)
    if upto is None:
        await session.execute(_mailing(mailing_id).values(enlisted_at=now))
        return True
    who = audience.readers(row.cursor, upto).subquery()
    # Due since the start: a clock that is set back meanwhile makes nobody wait.
    at_once, kind = literal(row.started_at, delivery.c.due_at.type), delivery.c.slot.type
    slot: ColumnElement[Any] = who.c.slot if "slot" in who.c else cast(null(), kind)
    owed = select(
        literal(row.issue_id), who.c.subscriber_id, literal(mailing_id), who.c.provider,
        literal(State.OWED.value), literal(0), func.coalesce(slot, at_once), slot,
    ).where(true())  # fmt: skip  # SQLite takes the ON of ON CONFLICT for a join's otherwise
    columns = ["issue_id", "subscriber_id", "mailing_id", "provider", "state", "attempts", "due_at", "slot"]
    statement = upsert(session, delivery).from_select(columns, owed).on_conflict_do_nothing()
    added = await changed(session, statement)
    await session.execute(_mailing(mailing_id).values(cursor=upto, audience=mailing.c.audience + added))
    if "slot" in who.c:
        await _wait(session, row, upto)
    await run(session, books.count, books.NOBODY, Counter({(mailing_id, None, State.OWED): added}))
    return False


async def _end_of_chunk(session: AsyncSession, chosen: Select[int], after: int, chunk: int) -> int | None:
    """Return the id that ends the next chunk, read from the index alone; None when there is none after `after`."""
    [number] = chosen.selected_columns
    following = chosen.where(number > after)
    its_last = following.order_by(number).limit(1).offset(chunk - 1)
    ends = func.coalesce(
        its_last.scalar_subquery(), following.with_only_columns(func.max(number)).scalar_subquery()
    )
    upto: int | None = (await session.execute(select(ends))).scalar()
    return upto


async def providers_due(session: AsyncSession, mailing_id: int, now: datetime) -> list[str]:
    """Return the providers for which a mailing has deliveries to be claimed now."""
    return list((await session.execute(with_due(mailing_id, now))).scalars())


def with_due(mailing_id: int, now: datetime) -> Select[str]:
    """Select those providers; each is one step in the index that claims go by, however many rows there are."""
    waits = and_(delivery.c.mailing_id == mailing_id, is_waiting(delivery))
    first = select(func.min(delivery.c.provider).label("provider")).where(waits).cte("found", recursive=True)
    beyond = and_(waits, delivery.c.provider > first.c.provider)
    following = select(func.min(delivery.c.provider)).where(beyond).scalar_subquery()
    found = first.union_all(select(following).where(first.c.provider.is_not(None)))
    due = select(func.min(delivery.c.due_at)).where(waits, delivery.c.provider == found.c.provider)
    return select(found.c.provider).where(found.c.provider.is_not(None), due.scalar_subquery() <= now)


async def _wait(session: AsyncSession, row: Any, upto: int) -> None:
    """Let a mailing live longer by as much as the last of the hours is away that the readers of a chunk chose."""
    who = delivery.c.subscriber_id
    theirs = and_(delivery.c.issue_id == row.issue_id, who > row.cursor, who <= upto)
    last = (await session.execute(select(func.max(delivery.c.slot)).where(theirs))).scalar()
    longer = ceil((last - row.started_at).total_seconds()) - row.wait if last else 0
    if longer > 0:
        values = {"wait": row.wait + longer, "expires_at": row.expires_at + timedelta(seconds=longer)}
        await session.execute(_mailing(row.id).values(values))


async def hasten(session: AsyncSession, mailings: Select[*tuple[Any, ...]], now: datetime) -> None:
    """Let nobody's hour be waited for any longer in these mailings: a newer issue is on its way."""
    which = and_(delivery.c.mailing_id.in_(mailings), is_waiting(delivery), delivery.c.slot > now)
    await session.execute(update(delivery).where(which).values(due_at=now, slot=now))


async def free(session: AsyncSession, dead: Iterable[int], now: datetime) -> int:
    """Give back what dead workers held: owed again, or uncertain where the mailing says hold; returns how many."""
    dead = list(dead)
    held = and_(is_in_flight(delivery), delivery.c.worker_id.in_(dead))
    holding = select(mailing.c.id).where(mailing.c.on_uncertain == "hold")
    freed = await move(
        session, and_(held, delivery.c.mailing_id.in_(holding)), State.UNCERTAIN, now,
        "the worker died with this mail in its hands",
    )  # fmt: skip
    freed += await move(session, held, State.OWED, now)
    letters = and_(is_in_flight(letter), letter.c.worker_id.in_(dead))
    await session.execute(update(letter).where(letters).values(state=State.OWED, due_at=now))
    return freed


async def free_unknown(session: AsyncSession, worker_id: int, held: Collection[Key], now: datetime) -> int:
    """Give back what a living worker has by the rows and not by its own knowledge; returns how many deliveries.

    `held` names what it knows of. A commit whose answer was lost leaves such rows.
    """
    issues: dict[int, list[int]] = {}
    for issue, *who in held:
        if who:
            issues.setdefault(issue, []).extend(who)
    known = [
        and_(delivery.c.issue_id == one, delivery.c.subscriber_id.in_(who)) for one, who in issues.items()
    ]
    mine = and_(is_in_flight(delivery), delivery.c.worker_id == worker_id)
    letters = [key[0] for key in held if len(key) == 1]
    lost = and_(is_in_flight(letter), letter.c.worker_id == worker_id, letter.c.id.not_in(letters))
    await session.execute(update(letter).where(lost).values(state=State.OWED, due_at=now))
    return await move(session, and_(mine, not_(or_(false(), *known))), State.OWED, now)


async def move(
    session: AsyncSession, which: ColumnElement[bool], to: State, now: datetime, reason: str | None = None
) -> int:
    """Move the deliveries that `which` finds to a state, count them per mailing, and return how many.

    `which` must name the states it may start from; rows that another transaction holds are waited for.
    """
    values: dict[str, Any] = {"state": to, "reason": reason}
    values |= {"due_at": _at_their_hour(now)} if to == State.OWED else {"done_at": now}
    found = (await session.execute(_moving(session, which, values))).all()
    if found and not is_postgresql(session):
        await session.execute(update(delivery).where(which).values(values))
    moves: books.Moves = Counter({(row[0], State(row[1]), to): row[2] for row in found})
    await run(session, books.count, books.NOBODY, moves)
    return moves.total()


def _at_their_hour(now: datetime) -> ColumnElement[Any]:
    at_once = literal(now, delivery.c.due_at.type)
    return case((delivery.c.slot > at_once, delivery.c.slot), else_=at_once)


def _moving(session: AsyncSession, which: ColumnElement[bool], values: dict[str, Any]) -> Executable:
    """Return what counts the rows to move by mailing and state; on PostgreSQL it moves them too.

    There, others write meanwhile: only one statement that locks, moves and counts sees one truth. SQLite has one
    writer, and cannot update in a common table expression.
    """
    if not is_postgresql(session):
        rows: FromClause = delivery
        counted = select(rows.c.mailing_id, rows.c.state, func.count()).where(which)
        return counted.group_by(rows.c.mailing_id, rows.c.state)
    key = (delivery.c.issue_id, delivery.c.subscriber_id)  # one order for all, so that nobody deadlocks
    held = select(*key, delivery.c.mailing_id, delivery.c.state).where(which).order_by(*key).with_for_update()
    was = held.cte("held")
    these = (key[0] == was.c.issue_id, key[1] == was.c.subscriber_id)
    moved = (
        update(delivery).where(*these).values(values).returning(was.c.mailing_id, was.c.state).cte("moved")
    )
    return select(moved.c.mailing_id, moved.c.state, func.count()).group_by(moved.c.mailing_id, moved.c.state)


async def withdraw(
    session: AsyncSession,
    subscriber_id: int,
    mailings: Select[*tuple[Any, ...]] | None,
    now: datetime,
    reason: str,
) -> int:
    """Take back what a reader is still owed, in some mailings or in all."""
    which = and_(delivery.c.subscriber_id == subscriber_id, is_waiting(delivery))
    if mailings is not None:
        which = and_(which, delivery.c.mailing_id.in_(mailings))
    return await move(session, which, State.WITHDRAWN, now, reason)


async def expire(session: AsyncSession, now: datetime) -> int:
    """Settle what has outlived its mailing's time to live, which counts from a reader's own hour where there is one."""
    under_way = select(mailing).where(
        mailing.c.state.in_(["sending", "preparing"]), mailing.c.expires_at.is_not(None)
    )
    expired = 0
    for row in await session.execute(under_way):
        since = now - (row.expires_at - timedelta(seconds=row.wait))
        if since >= timedelta():
            lived = or_(delivery.c.slot.is_(None), delivery.c.slot <= row.started_at + since)
            which = and_(delivery.c.mailing_id == row.id, is_waiting(delivery), lived)
            expired += await move(session, which, State.EXPIRED, now, "its time to live was over")
    return expired


async def expire_letters(session: AsyncSession, made_before: datetime, now: datetime) -> None:
    """Settle the letters that have waited too long to be of use."""
    late = and_(is_waiting(letter), letter.c.created_at <= made_before)
    await session.execute(update(letter).where(late).values(state=State.EXPIRED, done_at=now))


def _mailing(mailing_id: int) -> Any:
    return update(mailing).where(mailing.c.id == mailing_id)


async def prune(session: AsyncSession, before: datetime, limit: int) -> int:
    """Forget up to `limit` rows of mailings that ended before then; their tallies stay. Returns how many went."""
    ended = select(mailing.c.issue_id).where(mailing.c.finished_at < before)
    key = (delivery.c.issue_id, delivery.c.subscriber_id)
    old = select(*key).where(delivery.c.issue_id.in_(ended)).limit(limit)
    return await changed(session, delete(delivery).where(tuple_(*key).in_(old)))

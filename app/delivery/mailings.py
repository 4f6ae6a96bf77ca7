"""A mailing's own life: which state may follow which, each move one UPDATE that says where it may start."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Table, and_, case, exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col
from sqlmodel import select as select_model

from app.core.db import changed
from app.core.errors import Conflict, NotFound
from app.delivery import ledger
from app.delivery.models import (
    UNDER_WAY,
    Delivery,
    Mailing,
    MailingState,
    Rendition,
    State,
    is_in_flight,
    is_waiting,
)

mailing: Table = Mailing.__table__  # type: ignore[attr-defined]
delivery: Table = Delivery.__table__  # type: ignore[attr-defined]

CANCELLED = "the mailing was cancelled"
OWN_FAULT = "our own fault"  # the reason on what is owed again because of it
PROBLEM_LIMIT = 200  # characters
KEPT = timedelta(days=400)  # how long the rows of a mailing outlive its end
STOPPABLE = (MailingState.SCHEDULED, *UNDER_WAY)


async def get(session: AsyncSession, mailing_id: int) -> Mailing:
    """Return a mailing as the database has it now, or raise NotFound."""
    found = await session.get(Mailing, mailing_id, populate_existing=True)
    if found is None:
        raise NotFound(f"There is no mailing {mailing_id}; look at the list of mailings.")
    return found


async def of_issue(session: AsyncSession, issue_id: int) -> Mailing | None:
    """Return the one mailing of an issue, if it has one yet."""
    return (await session.scalars(select_model(Mailing).where(Mailing.issue_id == issue_id))).first()


async def start(session: AsyncSession, mailing_id: int, cutoff: datetime, now: datetime) -> bool:
    """Freeze the audience at `cutoff` and begin; False when it is not scheduled any more."""
    values: dict[str, Any] = {"state": MailingState.PREPARING, "cutoff": cutoff, "started_at": now}
    done = await _move(session, mailing_id, (MailingState.SCHEDULED,), values)
    if done:
        one = await get(session, mailing_id)
        one.expires_at = now + timedelta(seconds=one.time_to_live)
        await session.flush()
    return done


async def pause(session: AsyncSession, mailing_id: int, problem: str) -> Mailing:
    """Stop handing over; what is in flight is finished. Pausing twice is harmless; a finished one is a Conflict."""
    await _move(
        session, mailing_id, STOPPABLE, {"state": MailingState.PAUSED, "problem": problem[:PROBLEM_LIMIT]}
    )
    return await _expect(session, mailing_id, (MailingState.PAUSED,), "paused")


async def resume(session: AsyncSession, mailing_id: int, now: datetime) -> Mailing:
    """Go on where it stopped, with a new time to live, since somebody has just said that it shall be sent."""
    one = await get(session, mailing_id)
    values: dict[str, Any] = {
        "state": case(
            (mailing.c.cutoff.is_(None), MailingState.SCHEDULED),
            (mailing.c.enlisted_at.is_(None), MailingState.PREPARING),
            else_=MailingState.SENDING,
        ),
        "problem": None,
    }
    if one.cutoff is None:
        values["scheduled_at"] = max(one.scheduled_at, now)
    else:
        values["expires_at"] = _end(one, now)
    if await _move(session, mailing_id, (MailingState.PAUSED,), values):
        ours = and_(delivery.c.mailing_id == mailing_id, delivery.c.reason == OWN_FAULT)
        await session.execute(update(delivery).where(ours, is_waiting(delivery)).values(due_at=now))
    return await _expect(session, mailing_id, STOPPABLE, "resumed")


async def cancel(session: AsyncSession, mailing_id: int, now: datetime) -> Mailing:
    """Take back everything not yet handed over; `reopen` can undo it."""
    done = await _move(
        session, mailing_id, (*STOPPABLE, MailingState.PAUSED),
        {"state": MailingState.CANCELLED, "problem": None, "finished_at": now},
    )  # fmt: skip
    if done:
        await withdraw_cancelled(session, now)
    return await _expect(session, mailing_id, (MailingState.CANCELLED,), "cancelled")


async def withdraw_cancelled(session: AsyncSession, now: datetime) -> None:
    """Take back what cancelled mailings still owe: also what was in the air then and came back unsent."""
    cancelled = select(mailing.c.id).where(mailing.c.state == MailingState.CANCELLED)
    waiting = and_(delivery.c.mailing_id.in_(cancelled), is_waiting(delivery))
    await ledger.move(session, waiting, State.WITHDRAWN, now, CANCELLED)


async def reopen(session: AsyncSession, mailing_id: int, at: datetime, now: datetime) -> Mailing:
    """Undo a cancel: one that had started keeps its cutoff and owes again what was withdrawn."""
    one = await get(session, mailing_id)
    if one.state != MailingState.CANCELLED:
        return one
    if one.cutoff is None:
        values: dict[str, Any] = {"state": MailingState.SCHEDULED, "scheduled_at": at}
    else:
        state = MailingState.SENDING if one.enlisted_at else MailingState.PREPARING
        values = {"state": state, "expires_at": _end(one, now)}
    if await _move(session, mailing_id, (MailingState.CANCELLED,), values | {"finished_at": None}):
        taken_back = and_(
            delivery.c.mailing_id == mailing_id,
            delivery.c.state == State.WITHDRAWN,
            delivery.c.reason == CANCELLED,
        )
        await ledger.move(session, taken_back, State.OWED, now)
    return await get(session, mailing_id)


async def reschedule(session: AsyncSession, mailing_id: int, at: datetime) -> Mailing:
    """Give a mailing that has not started another time; one that was overdue waits for it."""
    waiting = and_(mailing.c.id == mailing_id, mailing.c.cutoff.is_(None))
    allowed = mailing.c.state.in_((MailingState.SCHEDULED, MailingState.PAUSED))
    values = {"scheduled_at": at, "state": MailingState.SCHEDULED, "problem": None}
    if await changed(session, update(mailing).where(waiting, allowed).values(values)) == 0:
        one = await get(session, mailing_id)
        raise Conflict(f"Mailing {mailing_id} has started and is {one.state}, so its time cannot change.")
    return await get(session, mailing_id)


async def retry(session: AsyncSession, mailing_id: int, now: datetime) -> Mailing:
    """Owe again what failed, expired or is uncertain, never what was refused; a finished mailing goes on."""
    one = await get(session, mailing_id)
    if one.state == MailingState.CANCELLED or one.cutoff is None:
        raise Conflict(f"Mailing {mailing_id} is {one.state}, so there is nothing to retry.")
    again = and_(
        delivery.c.mailing_id == mailing_id,
        delivery.c.state.in_((State.FAILED, State.EXPIRED, State.UNCERTAIN)),
    )
    await session.execute(update(delivery).where(again).values(attempts=0))  # a new chance is a whole one
    if await ledger.move(session, again, State.OWED, now):
        values: dict[str, Any] = {"expires_at": _end(one, now)}
        await session.execute(update(mailing).where(mailing.c.id == mailing_id).values(values))
        reopened = {"state": MailingState.SENDING, "finished_at": None}
        await _move(session, mailing_id, (MailingState.FINISHED,), reopened)
    return await get(session, mailing_id)


async def complete(session: AsyncSession, mailing_id: int) -> None:
    """The audience is whole: from preparing to sending."""
    await _move(session, mailing_id, (MailingState.PREPARING,), {"state": MailingState.SENDING})


async def finish(session: AsyncSession, now: datetime) -> list[int]:
    """Finish every mailing under way of which no row is open, and return their ids."""
    theirs = delivery.c.mailing_id == mailing.c.id
    still_open = or_(
        exists().where(theirs, is_waiting(delivery)), exists().where(theirs, is_in_flight(delivery))
    )
    # Held first, in a statement of its own: the next one then sees what a retry has just owed again.
    held = select(mailing.c.id).where(mailing.c.state == MailingState.SENDING).order_by(mailing.c.id)
    await session.execute(held.with_for_update())
    done = (
        update(mailing)
        .where(mailing.c.state == MailingState.SENDING, mailing.c.enlisted_at.is_not(None), ~still_open)
        .values(state=MailingState.FINISHED, finished_at=now, problem=None)
        .returning(mailing.c.id)
    )
    return list((await session.execute(done)).scalars())


async def due(session: AsyncSession, now: datetime) -> list[Mailing]:
    """Return the scheduled mailings whose time has come."""
    found = select_model(Mailing).where(Mailing.state == MailingState.SCHEDULED, Mailing.scheduled_at <= now)
    return list((await session.scalars(found)).all())


async def under_way(session: AsyncSession) -> list[Mailing]:
    """Return the mailings that may be claimed from, the oldest first."""
    found = select_model(Mailing).where(col(Mailing.state).in_(UNDER_WAY)).order_by(col(Mailing.id))
    return list((await session.scalars(found)).all())


async def without_rendition(session: AsyncSession) -> list[Mailing]:
    """Return the mailings under way whose issue has not been rendered yet."""
    rendered = exists().where(col(Rendition.mailing_id) == mailing.c.id)
    found = select_model(Mailing).where(col(Mailing.state).in_(UNDER_WAY), ~rendered)
    return list((await session.scalars(found)).all())


async def renditions(session: AsyncSession, mailing_id: int) -> dict[str, Rendition]:
    """Return a mailing's renditions by language."""
    found = await session.scalars(select_model(Rendition).where(Rendition.mailing_id == mailing_id))
    return {one.language: one for one in found}


async def report_problem(session: AsyncSession, problem: str | None) -> None:
    """Say on every mailing under way what keeps it from moving, or that nothing does any more."""
    problem = problem and problem[:PROBLEM_LIMIT]
    which = and_(mailing.c.state.in_(UNDER_WAY), mailing.c.problem.is_distinct_from(problem))
    await session.execute(update(mailing).where(which).values(problem=problem))


def of_issues(issues: Any) -> Any:
    """Select the ids of the mailings of some issues."""
    return select(mailing.c.id).where(mailing.c.issue_id.in_(issues))


def _end(one: Mailing, now: datetime) -> datetime:
    """Return when a mailing that begins anew has outlived its time, its readers' hours included."""
    return now + timedelta(seconds=one.time_to_live + one.wait)


async def _move(
    session: AsyncSession, mailing_id: int, allowed: tuple[MailingState, ...], values: dict[str, Any]
) -> bool:
    which = and_(mailing.c.id == mailing_id, mailing.c.state.in_(allowed))
    return await changed(session, update(mailing).where(which).values(values)) == 1


async def _expect(
    session: AsyncSession, mailing_id: int, wanted: tuple[MailingState, ...], done: str
) -> Mailing:
    one = await get(session, mailing_id)
    if one.state not in wanted:
        raise Conflict(f"Mailing {mailing_id} is {one.state}, so it cannot be {done}.")
    return one

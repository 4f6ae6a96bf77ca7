"""A reader thinks again: undoes leaving within a day, says why they left, takes a pause, ends it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from app.core.db import Database
from app.core.errors import Conflict, Fault, Invalid
from app.flows import subscribe, writing
from app.flows.compose import Composer
from app.issues import store as issues
from app.issues.models import Edition, Issue
from app.subscribers import consent, store
from app.subscribers.consent import Reason, State
from app.subscribers.models import Subscriber
from app.subscribers.store import Origin

UNDO = timedelta(hours=24)
REASONS = ("often", "content", "asked", "other")  # too much, not for me, I never asked, something else
LONGEST_PAUSE = timedelta(days=366)
MISSED = 20  # issues that the letter to a returning reader names at most
BATCH = 100


async def undoable(session: AsyncSession, who: Subscriber, now: datetime) -> list[Edition]:
    """Return the editions that an undo would bring back: those of the last leaving, within 24 hours of it."""
    left = await store.last_left(session, who.id or 0, now - UNDO)
    if left is None or not _may_undo(who):
        return []
    chosen = await store.choices(session, who.id or 0)
    return [
        one
        for one in await issues.editions(session)
        if one.slug in left.editions.split() and one.id not in chosen
    ]


async def undo(session: AsyncSession, who: Subscriber, origin: Origin, now: datetime) -> list[Edition]:
    """Take the last leaving back, from the next issue on; return what the reader has again.

    Raises Conflict when there is nothing to undo, or not any more.
    """
    await store.hold(session, who)
    again = await undoable(session, who, now)
    if not again:
        raise Conflict("There is nothing to undo (any more). Subscribe again on the front page.")
    chosen = await store.choices(session, who.id or 0)
    await store.choose(session, who.id or 0, chosen | {one.id or 0 for one in again}, now)
    if who.state == State.ENDED:
        who.state, who.reason = State.ACTIVE, None
    store.note(session, who, "undone", origin, now, " ".join(one.slug for one in again))
    return again


async def say_why(session: AsyncSession, who: Subscriber, reason: str, now: datetime) -> None:
    """Keep why a reader left, in one of the words that were offered, with the proof that they did; the last counts."""
    left = await store.last_left(session, who.id or 0, now - UNDO)
    if reason not in REASONS or left is None:
        raise Invalid("Choose one of the reasons on the page, within a day of leaving.")
    left.detail = reason


async def pause(
    session: AsyncSession, who: Subscriber, until: datetime, origin: Origin, now: datetime
) -> None:
    """Send nothing until a time; a pause that is on already gets the new end.

    Raises Invalid for an end that is past or more than a year away, Conflict for somebody who is no reader.
    """
    await store.hold(session, who)
    if who.state not in (State.ACTIVE, State.PAUSED):
        raise Conflict("Only a reader takes a pause, and this one is none (any more).")
    check_pause(until, now)
    if who.state == State.ACTIVE:
        who.paused_at = now
    who.state, who.paused_until = State.PAUSED, until
    store.note(session, who, "paused", origin, now)
    await subscribe.withdraw_all(session, who, "the reader takes a pause", now)


def check_pause(until: datetime, now: datetime) -> None:
    """Raise Invalid unless a pause may end then."""
    if not now < until <= now + LONGEST_PAUSE:
        sentence = "A pause ends on a day to come, within a year."
        raise Invalid(sentence, [Fault(sentence, field="paused_until")])


async def resume(session: AsyncSession, who: Subscriber, origin: Origin, now: datetime) -> None:
    """End a pause; who takes none is left as they are."""
    await store.hold(session, who)
    if who.state == State.PAUSED and consent.may_move(who.state, State.ACTIVE):
        who.state, who.paused_at, who.paused_until = State.ACTIVE, None, None
        store.note(session, who, "resumed", origin, now)


async def welcome_back(db: Database, composer: Composer, now: datetime) -> bool:
    """End the pauses whose time has come, and tell each reader once what they have missed; returns whether any had."""
    if not await db.told(lambda session: store.pauses_over(session, now, 1)):
        return False
    async with db.transaction() as session:
        for number in await store.pauses_over(session, now, BATCH):
            who = await store.get(session, number)
            await store.hold(session, who)
            if who.state == State.PAUSED and who.paused_until is not None and who.paused_until <= now:
                await _return(session, composer, who, now)
    return True


async def _return(session: AsyncSession, composer: Composer, who: Subscriber, now: datetime) -> None:
    missed = await _missed(session, who, now)
    if missed:
        editions = list({edition.id: edition for _, edition, _ in missed}.values())
        said = [
            [f"{issue.date} {edition.label}", subject, composer.url(f"/archive/{edition.slug}/{issue.date}")]
            for issue, edition, subject in missed
        ]
        await writing.owe(session, who, "back", editions, now, {"missed": said})
    who.state, who.paused_at, who.paused_until = State.ACTIVE, None, None
    store.note(session, who, "resumed", Origin("pause"), now)


async def _missed(
    session: AsyncSession, who: Subscriber, now: datetime
) -> Sequence[tuple[Issue, Edition, str]]:
    """Return what was published of a reader's editions while they paused, the newest first."""
    if who.paused_at is None:  # paused elsewhere, and brought here by a file
        return []
    chosen = await store.choices(session, who.id or 0)
    published: Any = select(col(Issue.id)).where(
        col(Issue.edition_id).in_(chosen),
        col(Issue.published_at) > who.paused_at,
        col(Issue.published_at) <= now,
    )
    wanted = set((await session.execute(published.limit(1_000))).scalars())
    found = [row for row in await issues.published(session, limit=1_000) if row[0].id in wanted]
    return found[:MISSED]


def _may_undo(who: Subscriber) -> bool:
    if who.state == State.ENDED:
        return who.reason == Reason.LEFT
    return who.state in (State.ACTIVE, State.PAUSED)

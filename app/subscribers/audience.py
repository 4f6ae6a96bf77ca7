"""Who is due an edition: SELECTs that the ledger puts into its own statements, never a Python list."""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache, partial
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    and_,
    case,
    exists,
    func,
    literal,
    null,
    or_,
    select,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from app.core.db import UTCDateTime
from app.core.hot import Hot, among, given
from app.subscribers import domains
from app.subscribers.consent import State
from app.subscribers.hours import Hours
from app.subscribers.models import MailDomain, Subscriber, Subscription, Suppression

DUE, LEFT, SUPPRESSED = "due", "left", "suppressed"


_id: ColumnElement[int] = Subscriber.__table__.c.id  # type: ignore[attr-defined]
_chooser: ColumnElement[int] = Subscription.__table__.c.subscriber_id  # type: ignore[attr-defined]


def choosers_of(edition_id: int, cutoff: datetime) -> Select[int]:
    """Select the id of everybody who had chosen the edition at the cutoff, whether they are its readers or not."""
    return select(_chooser).where(_chosen(edition_id, cutoff))


def readers_of(edition_id: int, cutoff: datetime) -> Select[int, str]:
    """Select (subscriber_id, provider) of everybody who had chosen the edition at the cutoff and still wants it."""
    return (
        select(_id.label("subscriber_id"), domains.their_provider().label("provider"))
        .join(Subscription, and_(_chooser == Subscriber.id, _chosen(edition_id, cutoff)))
        .outerjoin(MailDomain, domains.theirs())
        .where(_reachable(cutoff), ~_suppressed())
    )


def between(readers: Select[*tuple[Any, ...]], after: int, upto: int) -> Select[*tuple[Any, ...]]:
    """Leave those whose id is above `after` and at most `upto`; said of both tables, so that each is read by it."""
    both = (_id, _chooser)
    return readers.where(*(one > after for one in both), *(one <= upto for one in both))


def sparing_weekends(readers: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
    """Leave out those who want nothing on Saturdays and Sundays."""
    return readers.where(col(Subscriber.weekdays_only).is_(False))


async def hours(session: AsyncSession, home: str) -> Hours:
    """Return every zone and hour that a reader has chosen; who has named no zone lives in `home`."""
    theirs = func.coalesce(col(Subscriber.timezone), home)
    found = select(theirs, col(Subscriber.hour)).where(col(Subscriber.hour).is_not(None)).distinct()
    return [(zone, hour) for zone, hour in await session.execute(found) if hour is not None]


def at_their_hour(
    readers: Select[*tuple[Any, ...]], slots: Mapping[datetime, Hours], home: str
) -> Select[*tuple[Any, ...]]:
    """Add a column `slot`: when the hour of a reader is to come, or NULL for one who need not wait."""
    zone, hour, kind = func.coalesce(col(Subscriber.timezone), home), col(Subscriber.hour), UTCDateTime()
    whens = [
        (or_(*(and_(hour == each, zone.in_(zones)) for each, zones in _by_hour(wanted).items())), moment)
        for moment, wanted in sorted(slots.items())
    ]
    if not whens:
        return readers
    theirs = case(*((which, literal(moment, kind)) for which, moment in whens), else_=null())
    return readers.add_columns(theirs.label("slot"))


def _by_hour(wanted: Hours) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for zone, hour in wanted:
        found.setdefault(hour, []).append(zone)
    return found


@lru_cache(maxsize=256)
def addressees(edition_id: int) -> Hot:
    """Select (subscriber_id, address, language, standing): is what a reader was owed still due to them?

    Made once for each edition; its parameters are `who`, a list of the ids to look at, and `now`.
    """
    return Hot(partial(_addressees, edition_id))


def _addressees(edition_id: int, is_postgresql: bool) -> Select[int, str, str, str]:
    now = given("now", UTCDateTime())
    standing = case(
        (_suppressed(), SUPPRESSED),
        (and_(_reachable(now), col(Subscription.subscriber_id).is_not(None)), DUE),
        else_=LEFT,
    )
    chosen = and_(
        col(Subscription.subscriber_id) == Subscriber.id, col(Subscription.edition_id) == edition_id
    )
    return (
        select(
            _id.label("subscriber_id"),
            col(Subscriber.address),
            col(Subscriber.language),
            standing.label("standing"),
        )
        .outerjoin(Subscription, chosen)
        .where(among(_id, "who", is_postgresql))
    )


def _chosen(edition_id: int, cutoff: datetime) -> ColumnElement[bool]:
    return and_(col(Subscription.edition_id) == edition_id, col(Subscription.since) <= cutoff)


def _reachable(now: datetime | BindParameter[datetime]) -> ColumnElement[bool]:
    over = and_(col(Subscriber.state) == State.PAUSED, col(Subscriber.paused_until) <= now)
    return or_(col(Subscriber.state) == State.ACTIVE, over)


def _suppressed() -> ColumnElement[bool]:
    return exists().where(col(Suppression.address_hash) == Subscriber.address_hash)

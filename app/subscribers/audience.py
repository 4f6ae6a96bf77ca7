"""Who is due an edition: SELECTs that the ledger puts into its own statements, never a Python list."""

from datetime import datetime
from functools import lru_cache

from sqlalchemy import BindParameter, ColumnElement, Select, and_, bindparam, case, exists, or_, select
from sqlmodel import col

from app.core.db import UTCDateTime
from app.subscribers.consent import State
from app.subscribers.models import Subscriber, Subscription, Suppression

DUE, LEFT, SUPPRESSED = "due", "left", "suppressed"


_id: ColumnElement[int] = Subscriber.__table__.c.id  # type: ignore[attr-defined]


def readers_of(edition_id: int, cutoff: datetime) -> Select[int, str]:
    """Select (subscriber_id, provider) of everybody who had chosen the edition at the cutoff and still wants it."""
    chosen = and_(
        col(Subscription.subscriber_id) == Subscriber.id,
        col(Subscription.edition_id) == edition_id,
        col(Subscription.since) <= cutoff,
    )
    return (
        select(_id.label("subscriber_id"), col(Subscriber.provider))
        .join(Subscription, chosen)
        .where(_reachable(cutoff), ~_suppressed())
    )


@lru_cache(maxsize=256)
def addressees(edition_id: int) -> Select[int, str, str, str]:
    """Select (subscriber_id, address, language, standing): is what a reader was owed still due to them?

    Made once for each edition; its parameters are `who`, the ids to look at, and `now`.
    """
    now = bindparam("now", type_=UTCDateTime)
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
        .where(_id.in_(bindparam("who", expanding=True)))
    )


def _reachable(now: datetime | BindParameter[datetime]) -> ColumnElement[bool]:
    over = and_(col(Subscriber.state) == State.PAUSED, col(Subscriber.paused_until) <= now)
    return or_(col(Subscriber.state) == State.ACTIVE, over)


def _suppressed() -> ColumnElement[bool]:
    return exists().where(col(Suppression.address_hash) == Subscriber.address_hash)

"""A letter to a reader: made in the colours of an edition, and at most one of a kind in its time."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.delivery import letters
from app.delivery.models import Letter
from app.issues.models import Edition
from app.subscribers import suppression
from app.subscribers.models import Subscriber


async def owe(
    session: AsyncSession,
    who: Subscriber,
    kind: str,
    editions: Sequence[Edition],
    now: datetime,
    more: Mapping[str, Any] | None = None,
) -> bool:
    """Owe a reader a letter, at most one of a kind in 24 hours; False when they have had theirs.

    Where mail came back for good, a confirmation goes out once in 30 days. `more` is what the letter says or leads
    to beside what all of its kind do.
    """
    since = now - letters.GAP
    if kind == "confirm" and (bad := await suppression.bounced_at(session, who.address_hash)):
        since = min(since, max(bad, now - letters.GAP_AFTER_BOUNCE))
    if await letters.made_since(session, kind, since, who.id):
        return False
    session.add(letter(who, kind, editions, now, more))
    return True


def letter(
    who: Subscriber, kind: str, editions: Sequence[Edition], now: datetime, more: Mapping[str, Any] | None
) -> Letter:
    """Return a letter to a reader, in the colours of the first of `editions`."""
    first = editions[0]
    data = {
        "editions": [one.name for one in editions],
        "accent": first.accent,
        "accent_dark": first.accent_dark,
        "action": "confirm" if kind == "confirm" else "preferences",
    }
    return Letter(
        kind=kind, address=who.address, subscriber_id=who.id, language=who.language, data=data | dict(more or {}),
        created_at=now, due_at=now,
    )  # fmt: skip

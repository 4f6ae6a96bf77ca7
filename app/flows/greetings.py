"""Welcome and goodbye: letters that an edition may send to a reader who has confirmed, and to one who has left."""

from collections.abc import Collection, Sequence
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy.ext.asyncio import AsyncSession

from app.core import i18n
from app.flows import writing
from app.issues import cadence, store
from app.issues.models import Edition
from app.subscribers import store as readers
from app.subscribers.models import Subscriber


async def welcome(session: AsyncSession, who: Subscriber, now: datetime) -> None:
    """Owe a new reader the welcome of the editions that they chose and that send one."""
    chosen = await readers.choices(session, who.id or 0)
    those = await _sending("welcome", session, chosen)
    if not those:
        return
    coming, recent = [], []
    for one in those:
        coming.append((one.label, str(_next(one, now))))
        if newest := await store.published(session, one.id, limit=1):
            issue, _, subject = newest[0]
            recent.append((one.label, str(issue.date), subject, f"/archive/{one.slug}/{issue.date}"))
    await _owe(session, who, "welcome", those, {"coming": coming, "recent": recent}, now)


async def goodbye(session: AsyncSession, who: Subscriber, dropped: Collection[int], now: datetime) -> None:
    """Owe a reader the goodbye of the editions that they have just left and that send one."""
    those = await _sending("goodbye", session, dropped)
    if those:
        chosen = await readers.choices(session, who.id or 0)
        left = [one.name for one in await store.editions(session) if one.id in chosen]
        await _owe(session, who, "goodbye", those, {"remaining": left}, now)


def wording(said: dict[str, Any], language: str, base_url: str) -> dict[str, Any]:
    """Return what a template is given of what a letter was kept with: rows of a name, words and a URL."""
    rows: dict[str, Any] = {"remaining": said.get("remaining", [])}
    rows["coming"] = [
        (label, f"{day} {i18n.weekday(date.fromisoformat(day), language)}", "")
        for label, day in said.get("coming", ())
    ]
    rows["recent"] = [
        (f"{label} {day}", subject, base_url + path) for label, day, subject, path in said.get("recent", ())
    ]
    return rows


async def _sending(kind: str, session: AsyncSession, which: Collection[int]) -> list[Edition]:
    return [one for one in await store.editions(session) if one.id in which and kind in one.letters]


def _next(one: Edition, now: datetime) -> date:
    return cadence.next_date(one.cadence, now.astimezone(ZoneInfo(one.timezone)).date())


async def _owe(
    session: AsyncSession,
    who: Subscriber,
    kind: str,
    editions: Sequence[Edition],
    said: dict[str, Any],
    now: datetime,
) -> None:
    """Owe a letter from the first of the editions, at most one of a kind in 24 hours."""
    first = editions[0]
    sender = {"slug": first.slug, "sender": first.sender, "sender_name": first.sender_name or first.name}
    await writing.owe(session, who, kind, editions, now, sender | {"said": said})

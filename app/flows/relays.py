"""Which relays take mail and which hold a provider's back, for everybody who asks."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.core.db import Database
from app.core.relay_url import RelayUrl
from app.delivery import pace, tempo, warmup
from app.delivery.pace import Lanes

SAID = {
    "paused": "The relay {relay} leaves {provider} alone until {until}: it was told “{problem}”.",
    "trying": "The relay {relay} tries {provider} again with one mail: it was told “{problem}”.",
    "slowed": "The relay {relay} goes slowly with {provider}, {rate} mails a second: it was told “{problem}”.",
    "full": "The relay {relay} holds {provider} back until 00:00 UTC. {problem}",
}
GOOD_FOR = timedelta(seconds=90)  # after which a word of a worker is too old to go by


async def states(db: Database, relays: Iterable[RelayUrl], now: datetime) -> list[dict[str, Any]]:
    """Return name, state and problem of each relay: ready, failing, or unknown where no worker has told lately.

    `providers` are those whose mails it holds back: which, how, how fast or until when, and why.
    """
    async with db.reading() as session:
        told, lanes = await pace.health(session, now - GOOD_FOR), await pace.lanes(session)
    return [
        {
            "name": url.name,
            "state": "unknown" if url.name not in told else "failing" if told[url.name] else "ready",
            "problem": told.get(url.name),
            "providers": [found for key in sorted(lanes) if (found := _held_back(url, lanes, key, now))],
        }
        for url in relays
    ]


async def of_provider(
    session: AsyncSession, relays: Iterable[RelayUrl], provider: str, now: datetime
) -> list[str]:
    """Return a sentence for each relay that holds a provider's mails back."""
    lanes = await pace.lanes(session)
    found = [(url.name, _held_back(url, lanes, (url.name, provider), now)) for url in relays]
    return [SAID[row["state"]].format(relay=name, **row) for name, row in found if row]


def _held_back(url: RelayUrl, lanes: Lanes, key: pace.Key, now: datetime) -> dict[str, Any] | None:
    """Return how a relay's lane for a provider is; None where it is open, or another relay's.

    paused, then trying (with one mail), then slowed; or full: the relay warms up and has had this provider's day.
    """
    row = lanes.get(key)
    if row is None or key[0] != url.name or not key[1]:
        return None
    known, today = pace.tempo_of(row), now.date()
    until, rate, cap = known.paused_until, tempo.rate_at(known, now), warmup.cap_of(url, lanes, today)
    told = {"provider": row.provider, "rate": None, "until": None, "problem": row.problem}
    if until is not None:
        state = "paused" if until > now else "trying"
        return told | {"state": state, "until": until.isoformat(timespec="seconds")}
    if cap is not None and row.day == today and row.taken >= cap:
        return told | {
            "state": "full",
            "problem": f"It has had its {cap} mails of today: this relay warms up.",
        }
    return told | {"state": "slowed", "rate": round(rate, 2)} if rate is not None else None

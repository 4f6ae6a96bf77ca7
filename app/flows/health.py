"""Tells everybody who asks which relays take mail, as this worker sees them."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from app.core.db import Database
from app.core.relay_url import RelayUrl
from app.delivery import pace
from app.flows.lane import Lane

EVERY = timedelta(seconds=30)
GOOD_FOR = timedelta(seconds=90)  # after which a word of a worker is too old to go by


class Health:
    """What a worker has last told of its relays: news at once, the same again every half minute."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._told: dict[str, str | None] = {}
        self._told_at: datetime | None = None

    async def tell(self, lanes: Iterable[Lane], now: datetime) -> None:
        """Enter what is wrong with each relay, or that nothing is."""
        found = {name: problem for lane in lanes for name, problem in lane.health.items()}
        if found == self._told and self._told_at and abs(now - self._told_at) < EVERY:
            return
        async with self._db.transaction() as session:
            await pace.note_health(session, found, now)
        self._told, self._told_at = found, now


async def of_relays(db: Database, relays: Iterable[RelayUrl], now: datetime) -> list[dict[str, Any]]:
    """Return name, state and problem of each relay: ready, failing, or unknown where no worker has told lately."""
    async with db.reading() as session:
        told = await pace.health(session, now - GOOD_FOR)
    return [
        {
            "name": url.name,
            "state": "unknown" if url.name not in told else "failing" if told[url.name] else "ready",
            "problem": told.get(url.name),
        }
        for url in relays
    ]

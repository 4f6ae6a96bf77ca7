"""Tells what a worker finds of its relays: which take mail, and what is wrong with those that do not."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from app.core.db import Database
from app.delivery import pace
from app.sending.lane import Lane

EVERY = timedelta(seconds=30)


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

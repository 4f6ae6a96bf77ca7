"""Waits for a mail's turn: the next slot of its relay's pace, and a place in the relay's day, where it has them."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, datetime

from app.core.clock import Clock
from app.core.db import Database
from app.core.errors import Unavailable
from app.core.relay_url import RelayUrl
from app.delivery import pace
from app.delivery.pace import Pacer
from app.mail.relay import Relay
from app.sending.gate import Gate, Patience
from app.sending.paces import Paces
from app.sending.post import Post


class Turns:
    """The paces and the quotas of a worker's relays."""

    def __init__(
        self, db: Database, relays: Sequence[Relay], paces: Paces, patience: Patience, now: Clock
    ) -> None:
        urls = [relay.url for relay in relays]
        self._pacers = {url.name: Pacer(db, url.name, url.rate) for url in urls if url.rate}
        self._quotas = {url.name: Quota(db, url, url.quota) for url in urls if url.quota}
        self._paces, self._patience, self._now = paces, patience, now

    async def come(self, post: Post) -> bool:
        """Wait for the relay's next slot; False when there is none to be had, or its day's mails are used up."""
        name = post.name
        if name not in self._pacers and name not in self._quotas:
            return True
        with suppress(TimeoutError, Unavailable):
            if (pacer := self._pacers.get(name)) is not None:
                await self._patience.lasting(pacer.wait())
            quota = self._quotas.get(name)
            return quota is None or await self._patience.lasting(quota.take(post.gate, self._now()))
        return False

    async def look(self) -> None:
        """Let relays go on whose new day has begun, and know what all workers have heard of providers."""
        await self._paces.look()
        for quota in self._quotas.values():
            quota.look(self._now())


class Quota:
    """How many mails a relay takes in a day of UTC, counted in its lane over all workers."""

    def __init__(self, db: Database, url: RelayUrl, quota: int) -> None:
        self._db, self._url, self._quota = db, url, quota
        self._day, self._left = date.min, 0  # what this worker has taken of today's and not used
        self._spent: Gate | None = None
        self._refill = asyncio.Lock()

    async def take(self, gate: Gate, now: datetime) -> bool:
        """Take one; False when none is left today, and the gate says so. Raises Unavailable."""
        async with self._refill:
            if self._day != now.date() or self._left <= 0:
                many = min(self._url.connections, self._quota)
                left = await pace.count_day(self._db, self._url.name, many, self._quota, now)
                self._day, self._left = now.date(), left
            if self._left > 0:
                self._left -= 1
                return True
            had = f"has had its {self._quota} mails of today"
            gate.spent = f"The relay {self._url.name} {had}; it goes on at 00:00 UTC."
            self._spent = gate
            return False

    def look(self, now: datetime) -> None:
        """Open the gate again when the day is over."""
        if self._spent is not None and now.date() != self._day:
            self._spent.spent, self._spent = None, None

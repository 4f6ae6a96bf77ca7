"""Waits for a mail's turn: the next slot of its relay's pace, where it has one."""

from collections.abc import Sequence
from contextlib import suppress

from app.core.db import Database
from app.core.errors import Unavailable
from app.delivery.pace import Pacer
from app.flows.gate import Patience
from app.mail.relay import Relay


class Turns:
    """The paces of a worker's relays."""

    def __init__(self, db: Database, relays: Sequence[Relay], patience: Patience) -> None:
        rated = [relay.url for relay in relays if relay.url.rate]
        self._pacers = {url.name: Pacer(db, url.name, url.rate or 0) for url in rated}
        self._patience = patience

    async def come(self, relay: Relay) -> bool:
        """Wait for the relay's next slot; False when there is none to be had."""
        if (pacer := self._pacers.get(relay.url.name)) is None:
            return True
        with suppress(TimeoutError, Unavailable):
            await self._patience.lasting(pacer.wait())
            return True
        return False

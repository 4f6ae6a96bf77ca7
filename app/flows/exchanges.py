"""Finds out, beside the work, whose mailboxes readers have whose domain does not tell by its name."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from app.core.db import Database
from app.mail import verdict
from app.mail.exchangers import exchangers
from app.subscribers import domains

log = logging.getLogger(__name__)

Look = Callable[[str], Awaitable[Sequence[str]]]

EVERY = timedelta(minutes=10)  # between two searches for domains that are new, or that nobody has any more
AT_ONCE = 20  # look-ups


class Exchanges:
    """One worker's look-ups; several may look at once, and that there is no DNS disturbs nobody."""

    def __init__(self, db: Database, look: Look = exchangers) -> None:
        self._db, self._look = db, look
        self._searched_at: datetime | None = None

    async def work(self, now: datetime) -> bool:
        """Look up what is due, a few at once; returns whether there was anything."""
        if self._searched_at is None or abs(now - self._searched_at) >= EVERY:
            await self._search(now)
            self._searched_at = now
        due = await self._db.told(lambda session: domains.due(session, now, AT_ONCE))
        if not due:
            return False
        found = dict(zip(due, await asyncio.gather(*map(self._provider, due)), strict=True))
        async with self._db.transaction() as session:
            await domains.note(session, found, now)
        return True

    async def _search(self, now: datetime) -> None:
        async with self._db.reading() as session:
            new, gone = await domains.strange(session), await domains.abandoned(session)
        if new or gone:
            async with self._db.transaction() as session:
                if new:
                    await domains.put_down(session, new, now)
                await domains.forget(session, gone)

    async def _provider(self, domain: str) -> str | None:
        """Return whose mailboxes a domain's preferred exchanger takes mail for, "" for nobody known, None untold."""
        try:
            hosts = await self._look(domain)
        except Exception as error:  # whatever it is, mail goes out without this knowledge
            log.info("the mail exchangers of a domain are not known: %s", error)
            return None
        return verdict.provider_of(hosts[0], "") if hosts else ""

"""What any one worker does for all, beside sending: it brings mailings forward, and does what waits in the flows."""

import logging
from collections.abc import Callable
from datetime import datetime

from app.core import jobs
from app.core.db import Database
from app.core.errors import BroadsheetError
from app.core.jobs import Job, Wake
from app.delivery import mailings
from app.flows import bounce, imports, numbers, publish
from app.flows.compose import Composer
from app.flows.exchanges import Exchanges
from app.flows.rounds import Rounds
from app.sending import deliver

log = logging.getLogger(__name__)


class Chores:
    """The chores of one worker; `stopping` says when to leave what is left to another."""

    def __init__(
        self,
        db: Database,
        composer: Composer,
        wake: Wake,
        now: Callable[[], datetime],
        stopping: Callable[[], bool],
    ) -> None:
        self._db, self._composer, self._wake, self._now, self._stopping = db, composer, wake, now, stopping
        self._rounds = Rounds(db, composer)
        self._exchanges = Exchanges(db)

    def jobs(self) -> dict[str, Job]:
        """Return them by the names under which they are asked for."""
        those = (self.advance, self.hear, self.round, self.take_in, self.look_up)
        return {name: safely(job) for name, job in zip(jobs.NAMES, those, strict=True)}

    async def advance(self) -> None:
        """Start what is due, render it, owe it to its readers, and finish what is done."""
        await self._db.perform(lambda session: publish.begin_due(session, self._now()))
        await publish.set_type(self._db, self._composer)
        await self._enlist()
        for mailing_id in await self._db.perform(lambda session: deliver.look_after(session, self._now())):
            log.info("mailing %d is finished", mailing_id)

    async def hear(self) -> None:
        """Act on what came back, and count what went where."""
        while not self._stopping() and await bounce.work(self._db, self._composer, self._now()):
            pass
        await numbers.count_reach(self._db)

    async def round(self) -> None:
        """Do for readers what is not mail: answer the form, end pauses, forget what has had its time."""
        if not self._stopping() and await self._rounds.work(self._now()):
            self._wake.call()

    async def take_in(self) -> None:
        """Take files of readers in, a batch at a time."""
        while not self._stopping() and await imports.work(self._db, self._composer.settings, self._now()):
            pass

    async def look_up(self) -> None:
        """Find out whose mailboxes the readers have."""
        while not self._stopping() and await self._exchanges.work(self._now()):
            pass

    async def _enlist(self) -> None:
        """Owe every mailing in preparation to its audience, a chunk a transaction, sending meanwhile."""
        for mailing in [one for one in await self._db.told(mailings.under_way) if one.enlisted_at is None]:
            async with self._db.reading() as session:
                whose = await publish.audience_of(session, mailing)
            while mailing.enlisted_at is None and mailing.state == "preparing":
                had = mailing.audience
                mailing = await self._db.perform(
                    lambda session: publish.enlist_next(session, mailing.id or 0, whose, self._now())  # noqa: B023
                )
                if not had:  # whoever hands over looks by himself from then on
                    self._wake.call()


def safely(job: Job) -> Job:
    """Let nothing out of a job: what went wrong is logged, and it is asked for again soon."""

    async def safe() -> None:
        try:
            await job()
        except BroadsheetError as error:
            log.error("%s", error.detail)
        except Exception:
            log.exception("a job of the worker failed; it is tried again")

    return safe

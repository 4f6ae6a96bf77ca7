"""What a worker does for readers between the mails: it answers the form, ends pauses, and forgets in time."""

from datetime import datetime, timedelta

from app.core.db import Database
from app.flows import asking, forgetting, second_thoughts
from app.flows.compose import Composer

FORGETS_EVERY = timedelta(hours=1)


class Rounds:
    """The rounds of one worker; they may be made by several at once."""

    def __init__(self, db: Database, composer: Composer) -> None:
        self.db, self.composer = db, composer
        self._forgot_at: datetime | None = None

    async def work(self, now: datetime) -> bool:
        """Do everything that waits; returns whether a letter may be owed now."""
        busy = False
        while await asking.answer(self.db, self.composer.settings, now):
            busy = True
        while await second_thoughts.welcome_back(self.db, self.composer, now):
            busy = True
        if self._forgot_at is None or now - self._forgot_at >= FORGETS_EVERY:
            await forgetting.forget(self.db, now)
            self._forgot_at = now
        return busy

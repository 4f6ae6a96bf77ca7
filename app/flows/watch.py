"""Watches the mailbox of returned mail: each mail is kept with what it says, and only then moved to a folder."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from app.core import inbox_url
from app.core.config import Settings
from app.core.db import Database
from app.core.jobs import Wake
from app.feedback import inbox
from app.feedback.inbox import Inbox
from app.feedback.report import Kind
from app.flows import returns

log = logging.getLogger(__name__)

AT_ONCE = 50  # mails
LISTEN = 1.0  # seconds, so that a worker that is stopped need not wait longer
FIRST_PAUSE, LONGEST_PAUSE = 15.0, 600.0  # seconds between two tries to open a mailbox that cannot be


class Watch:
    """One worker's look at the mailbox; where two look at one mailbox each mail is still kept once."""

    def __init__(self, db: Database, settings: Settings, wake: Wake, now: Callable[[], datetime]) -> None:
        self.db, self.wake, self.now = db, wake, now
        self._inbox = Inbox(inbox_url.parse(settings.inbox)) if settings.inbox else None
        self._pause, self._not_before = FIRST_PAUSE, 0.0
        self._is_more = False

    async def step(self) -> None:
        """Listen for a moment, and take in what lies there. A mailbox that cannot be read is tried again later."""
        box = self._inbox
        if box is None or asyncio.get_running_loop().time() < self._not_before:
            return
        try:
            if self._is_more or await asyncio.to_thread(box.is_news, LISTEN):
                await self._take_in(box)
            self._pause = FIRST_PAUSE
        except inbox.FAULTS as error:
            await asyncio.to_thread(box.close)
            self._not_before = asyncio.get_running_loop().time() + self._pause
            log.error(
                "the mailbox of returned mail cannot be read, next try in %.0f s: %s", self._pause, error
            )
            self._pause, self._is_more = min(self._pause * 2, LONGEST_PAUSE), False

    async def close(self) -> None:
        """Hang up."""
        if self._inbox is not None:
            await asyncio.to_thread(self._inbox.close)

    async def _take_in(self, box: Inbox) -> None:
        mails = await asyncio.to_thread(box.fetch, AT_ONCE)
        for mail in mails:
            reports = await returns.take_mail(self.db, mail.raw, None, self.now())
            is_report = any(one.kind != Kind.OTHER for one in reports)
            await asyncio.to_thread(box.file, mail, inbox.REPORTS if is_report else inbox.OTHER)
        self._is_more = len(mails) == AT_ONCE
        if mails:
            self.wake.call()

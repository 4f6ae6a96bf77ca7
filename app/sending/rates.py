"""How fast a worker sends of each mailing: mails a second, smoothed."""

import asyncio
from collections import Counter

TICK = 1.0  # seconds between two looks
SMOOTHING = 0.3  # how much the last look counts
STILL = 0.01  # mails a second, below which a mailing is not told of


class Rates:
    """The rates of one worker; `by_mailing` is what the last look found."""

    def __init__(self) -> None:
        self.by_mailing: dict[int, float] = {}
        self._looked_at = float("-inf")  # loop time

    def note(self, sent: Counter[int]) -> None:
        """Take what was sent of each mailing out of a counter, unless the last look was just now."""
        at = asyncio.get_running_loop().time()
        if (passed := at - self._looked_at) < TICK:
            return
        self._looked_at = at
        recent = sent.copy()
        sent.clear()
        for mailing_id in {*self.by_mailing, *recent}:
            before = self.by_mailing.get(mailing_id, float(recent[mailing_id]))
            self.by_mailing[mailing_id] = before + SMOOTHING * (recent[mailing_id] / passed - before)
        self.by_mailing = {mailing_id: rate for mailing_id, rate in self.by_mailing.items() if rate > STILL}

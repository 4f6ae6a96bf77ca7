"""Faults of our own, mailing by mailing: replies that would meet every reader stop the mailing and lose nobody."""

from collections import deque

from app.core.db import Database
from app.core.errors import Conflict
from app.delivery import mailings
from app.delivery.claims import Claim
from app.mail.outcome import Outcome, Refused
from app.sending import deliver

ENOUGH = 3  # different readers
AMONG = 30  # the last mails of a mailing

_Seen = deque[tuple[int, bool]]  # the reader of each of the last mails, and whether a fault of ours came back


class Faults:
    """Counts them over the last mails: one reader with an odd server stops no mailing, three of thirty do."""

    def __init__(self) -> None:
        self.halts: dict[int, str] = {}  # mailings that are to pause, and why
        self._last: dict[int, _Seen] = {}

    def note(self, claim: Claim, outcome: Outcome) -> bool:
        """Note what came back for a delivery; True where its mailing is to pause now."""
        is_of_relay = isinstance(outcome, Refused) and deliver.is_about_us(outcome)
        fault = None if is_of_relay else deliver.fault_in(claim, outcome)
        if claim.mailing_id is None or (fault is None and claim.mailing_id not in self._last):
            return False
        seen = self._last.setdefault(claim.mailing_id, deque(maxlen=AMONG))
        seen.append((claim.subscriber_id or 0, fault is not None))
        if fault is None or len({reader for reader, is_fault in seen if is_fault}) < ENOUGH:
            return False
        self.halts.setdefault(claim.mailing_id, fault)
        return True

    def forget(self, mailing_id: int) -> None:
        """Begin to count anew: somebody has started or resumed the mailing."""
        self._last.pop(mailing_id, None)

    async def hold(self, db: Database) -> None:
        """Pause the mailings that are to pause; in one that is over there is nothing to stop."""
        for mailing_id, fault in list(self.halts.items()):
            await hold(db, [mailing_id], fault)
            self.forget(mailing_id)
            del self.halts[mailing_id]


async def hold(db: Database, mailing_ids: list[int], fault: str) -> None:
    """Pause mailings for a fault of our own, with the reason in `problem`."""
    for mailing_id in mailing_ids:
        try:
            async with db.transaction() as session:
                await mailings.pause(session, mailing_id, fault)
        except Conflict:
            pass  # it has finished or was cancelled meanwhile

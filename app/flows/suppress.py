"""An address is never to be mailed again: the reader ends, and what they are owed is taken back."""

from datetime import datetime

from sqlalchemy import and_
from sqlalchemy.ext.asyncio import AsyncSession

from app.core.config import Settings
from app.delivery import ledger, letters
from app.delivery.models import State, is_waiting
from app.flows.proof import accepted
from app.subscribers import store, suppression
from app.subscribers.consent import Reason
from app.subscribers.consent import State as Consent
from app.subscribers.models import Suppression

SAID = "an editor suppressed the address"


async def by_editor(
    session: AsyncSession, settings: Settings, address: str, note: str, now: datetime
) -> Suppression:
    """Suppress an address on an editor's word; no confirmation lifts it. Raises Invalid for what is no address."""
    known = accepted(address)
    row = await suppression.add(session, known.hashed(settings.suppression_key), Reason.EDITOR, now)
    row.reason, row.address, row.note = Reason.EDITOR, known.typed, note
    who = await store.by_key(session, known.key)
    if who is not None:
        who.state, who.reason = Consent.ENDED, Reason.EDITOR
        owed = and_(ledger.delivery.c.subscriber_id == who.id, is_waiting(ledger.delivery))
        await ledger.move(session, owed, State.SUPPRESSED, now, SAID)
        await letters.settle_waiting(session, who.id or 0, State.SUPPRESSED, SAID, now)
    await session.flush()
    return row

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
from app.subscribers.models import Subscriber, Suppression
from app.subscribers.store import Origin

SAID = "an editor suppressed the address"
CAME_BACK = {
    Reason.BOUNCED: "an earlier mail came back: the address is bad",
    Reason.COMPLAINED: "the reader called an earlier mail spam",
}


async def by_editor(
    session: AsyncSession, settings: Settings, address: str, note: str, now: datetime
) -> Suppression:
    """Suppress an address on an editor's word; no confirmation lifts it. Raises Invalid for what is no address."""
    known = accepted(address)
    who = await store.by_key(session, known.key)
    if who is not None:  # held first, as by all who end a reader, so that nobody deadlocks
        who = await store.held(session, who.id or 0)
    row = await suppression.add(session, known.hashed(settings.suppression_key), Reason.EDITOR, now)
    row.reason, row.address, row.note = Reason.EDITOR, known.typed, note
    if who is not None:
        who.state, who.reason = Consent.ENDED, Reason.EDITOR
        await _take_back(session, who, SAID, now)
    await session.flush()
    return row


async def by_report(
    session: AsyncSession, who: Subscriber, reason: Reason, origin: Origin, now: datetime
) -> None:
    """Suppress a reader's address since a mail came back or was called spam; a new confirmation lifts it.

    `who` is held by the caller. One that is suppressed already keeps its first reason; twice is harmless.
    """
    row = await suppression.add(session, who.address_hash, reason, now)
    row.address = row.address or who.address
    if who.state != Consent.ENDED:
        who.state, who.reason = Consent.ENDED, reason
        store.note(session, who, reason, origin, now)
    await _take_back(session, who, CAME_BACK[reason], now)


async def _take_back(session: AsyncSession, who: Subscriber, said: str, now: datetime) -> None:
    owed = and_(ledger.delivery.c.subscriber_id == who.id, is_waiting(ledger.delivery))
    await ledger.move(session, owed, State.SUPPRESSED, now, said)
    await letters.settle_waiting(session, who.id or 0, State.SUPPRESSED, said, now)

"""A reader is erased: row, choices, proofs and letters go; a keyed hash stays, so that no file brings them back."""

from datetime import datetime

from sqlalchemy import Table, func, or_, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.core.config import Settings
from app.core.errors import NotFound
from app.delivery import ledger
from app.delivery.models import Letter, State, is_waiting
from app.subscribers import addresses, store, suppression
from app.subscribers.models import Subscriber

letter: Table = Letter.__table__  # type: ignore[attr-defined]

SAID = "the reader was erased"


async def erase(session: AsyncSession, subscriber_id: int, now: datetime) -> None:
    """Erase a reader (GDPR article 17); raises NotFound.

    What they were owed is withdrawn, and the books keep its count under a number that means nobody. Mail that is
    in the air is not called back. A new sign-up that they confirm makes them a new reader.
    """
    who = await store.get(session, subscriber_id)
    await store.hold(session, who)  # first, as by all who end a reader, so that nobody deadlocks
    await ledger.withdraw(session, subscriber_id, None, now, SAID)
    await _blank_letters(session, who, now)
    await suppression.erase(session, who.address_hash, now)
    session.expunge(who)
    await store.remove(session, subscriber_id)


async def by_address(session: AsyncSession, settings: Settings, written: str, now: datetime) -> int | None:
    """Erase whoever has this address and return their id, or None when there was a suppression only.

    Raises Invalid for what is no address, NotFound when nothing is known of it.
    """
    address = addresses.accept(written)
    who = await store.by_key(session, address.key)
    if who is not None:
        await erase(session, who.id or 0, now)
        return who.id
    hashed = address.hashed(settings.suppression_key)
    if await suppression.find(session, hashed) is None:
        raise NotFound("There is no reader with this address.")
    await suppression.erase(session, hashed, now)
    return None


async def _blank_letters(session: AsyncSession, who: Subscriber, now: datetime) -> None:
    """Withdraw what waits, and leave nothing personal in what was sent, tests to the same address included."""
    theirs = or_(letter.c.subscriber_id == who.id, func.lower(letter.c.address) == who.address.lower())
    waiting = update(letter).where(theirs, is_waiting(letter))
    await session.execute(waiting.values(state=State.WITHDRAWN, reason=SAID, done_at=now))
    await session.execute(update(letter).where(theirs).values(address="", data={}, reply=None))

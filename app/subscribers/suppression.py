"""Addresses we must not mail, and why; a suppression outranks every subscription."""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col, select

from app.core.db import upsert
from app.core.errors import Misconfigured, NotFound
from app.subscribers.consent import Reason
from app.subscribers.models import Suppression, SuppressionKey

LIFTED_BY_CONFIRMATION = (Reason.LEFT, Reason.ERASED, Reason.COMPLAINED, Reason.BOUNCED)
REFUSAL = timedelta(days=90)  # how long “it was not me” keeps an address from being asked again


async def check_key(session: AsyncSession, key: str) -> None:
    """Keep the key's fingerprint at the first start; raise Misconfigured when a later start brings another key."""
    if not await recognise_key(session, key):
        first = upsert(session, SuppressionKey.__table__).values(id=1, fingerprint=_fingerprint(key))  # type: ignore[attr-defined]
        await session.execute(first.on_conflict_do_nothing())  # of programs that start at once one is first
        await recognise_key(session, key)


async def recognise_key(session: AsyncSession, key: str) -> bool:
    """Raise Misconfigured for another key than the database's; return False where it has none yet."""
    kept = await session.get(SuppressionKey, 1)
    if kept is not None and kept.fingerprint != _fingerprint(key):
        raise Misconfigured(
            "SUPPRESSION_KEY is not the one this database was made with, so nobody who left would be recognised. "
            "Put the old key back; it never changes."
        )
    return kept is not None


async def find(session: AsyncSession, address_hash: bytes) -> Suppression | None:
    """Return why this address must not be mailed, or None."""
    return (
        await session.scalars(select(Suppression).where(Suppression.address_hash == address_hash))
    ).first()


async def bounced_at(session: AsyncSession, address_hash: bytes) -> datetime | None:
    """Return since when mail to an address comes back for good; None where it does not, as far as is known."""
    stands = await find(session, address_hash)
    return stands.since if stands is not None and stands.reason == Reason.BOUNCED else None


async def may_ask(session: AsyncSession, address_hash: bytes, now: datetime) -> bool:
    """Tell whether an address may be asked by mail if it wants to be a reader."""
    stands = await find(session, address_hash)
    if stands is None or stands.reason in LIFTED_BY_CONFIRMATION:
        return True
    return stands.reason == Reason.REFUSED and now - stands.since >= REFUSAL


async def refuse(session: AsyncSession, address_hash: bytes, now: datetime) -> None:
    """Keep an address from being asked again for 90 days from now; a graver reason stands."""
    found = await add(session, address_hash, Reason.REFUSED, now)
    if found.reason == Reason.REFUSED:
        found.since = now


async def forget_refusals(session: AsyncSession, now: datetime) -> None:
    """Forget the refusals whose time is over."""
    over = (col(Suppression.reason) == Reason.REFUSED, col(Suppression.since) <= now - REFUSAL)
    await session.execute(delete(Suppression).where(*over))


async def add(session: AsyncSession, address_hash: bytes, reason: Reason, since: datetime) -> Suppression:
    """Suppress an address and return the row; one that is suppressed already keeps its first reason."""
    found = await find(session, address_hash)
    if found is None:
        found = Suppression(address_hash=address_hash, reason=reason, since=since)
        session.add(found)
        await session.flush()
    return found


async def lift(session: AsyncSession, address_hash: bytes) -> bool:
    """Lift what a new confirmation may lift; return False when another suppression stands."""
    found = await find(session, address_hash)
    if found is None:
        return True
    if found.reason not in (*LIFTED_BY_CONFIRMATION, Reason.REFUSED):
        return False
    await session.delete(found)
    await session.flush()
    return True


async def page(session: AsyncSession, after: int, limit: int) -> Sequence[Suppression]:
    """Return suppressions with an id above `after`, in order."""
    which = select(Suppression).where(col(Suppression.id) > after).order_by(col(Suppression.id)).limit(limit)
    return (await session.scalars(which)).all()


async def remove(session: AsyncSession, suppression_id: int) -> None:
    """Lift a suppression on an admin's word; raises NotFound."""
    found = await session.get(Suppression, suppression_id)
    if found is None:
        raise NotFound(f"There is no suppression {suppression_id}; `suppressions list` shows them.")
    await session.delete(found)


async def erase(session: AsyncSession, address_hash: bytes, now: datetime) -> bool:
    """Keep the hash of an erased address and nothing else of it; returns whether it was suppressed before.

    What an editor suppressed stays so: no confirmation may lift it.
    """
    found = await find(session, address_hash)
    if found is None:
        session.add(Suppression(address_hash=address_hash, reason=Reason.ERASED, since=now))
    else:
        found.address, found.note = None, ""
        if found.reason != Reason.EDITOR:
            found.reason = Reason.ERASED
    await session.flush()
    return found is not None


def _fingerprint(key: str) -> str:
    return hashlib.sha256(b"fingerprint:" + key.encode()).hexdigest()

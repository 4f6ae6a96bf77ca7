"""What only the owner of the mailbox may do, each by a link mailed for it: another address, one's data, erasure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from app.core.config import Settings
from app.core.errors import Conflict, Fault, Invalid
from app.delivery import letters
from app.delivery.models import Delivery, Letter
from app.flows import readers, writing
from app.issues import store as issues
from app.issues.models import Edition, Issue
from app.subscribers import addresses, asks, errands, store, suppression
from app.subscribers.addresses import Address
from app.subscribers.consent import State
from app.subscribers.errands import Kind
from app.subscribers.models import Errand, Subscriber
from app.subscribers.store import Origin

READERS = (State.ACTIVE, State.PAUSED)


async def mail(session: AsyncSession, who: Subscriber, kind: Kind, now: datetime) -> None:
    """Mail a reader the link for an errand, to the address they have; one of a kind a day."""
    if await letters.made_since(session, kind, now - errands.LIFE, who.id):
        return
    number = await errands.add(session, who.id or 0, kind, now)
    more = {"action": "errand", "errand": number}
    session.add(writing.letter(who, kind, await _editions(session, who), now, more))


async def name_address(
    session: AsyncSession, settings: Settings, who: Subscriber, written: str, now: datetime
) -> None:
    """Ask a new address whether it is the reader's; the answer is the same whoever has it.

    Raises Invalid for what is no address, and for the one they have.
    """
    new = addresses.accept(written)
    if new.key == who.address_key:
        sentence = "This is the address that you have."
        raise Invalid(sentence, [Fault(sentence, field="email")])
    digest = new.digest(settings.suppression_key)
    free = await suppression.may_ask(session, new.hashed(settings.suppression_key), now)
    if not free or not await asks.may_write(session, settings, digest, now):
        return
    asks.note_written(session, digest, now)
    editions = await _editions(session, who)
    other = await store.by_key(session, new.key)
    if other is not None and other.state in READERS:
        await writing.owe(session, other, "manage", editions, now)
        return
    number = await errands.add(session, who.id or 0, Kind.MOVE, now, new.typed)
    letter = writing.letter(who, Kind.MOVE, editions, now, {"action": "errand", "errand": number})
    letter.address = new.typed
    session.add(letter)


async def move(
    session: AsyncSession, settings: Settings, errand: Errand, who: Subscriber, origin: Origin, now: datetime
) -> None:
    """Make the new address the reader's and tell the old one, to which no errand's link is good any more.

    Raises Conflict when somebody else is a reader by that address, or it must not be mailed.
    """
    await store.hold(session, who)
    new, old = addresses.accept(errand.address), who.address
    other = await store.by_key(session, new.key)
    if other is not None and other.id != who.id:
        if other.state in READERS:
            raise Conflict("Another subscription has this address already.")
        await store.remove(session, other.id or 0)
    if not await suppression.lift(session, new.hashed(settings.suppression_key)):
        raise Conflict("This address must not be mailed.")
    _readdress(who, new, settings)
    await errands.drop(session, who.id or 0)
    store.note(session, who, "moved", origin, now)
    told = {"action": "home", "words": {"address": addresses.masked(new.typed)}}
    letter = writing.letter(who, "moved", await _editions(session, who), now, told)
    letter.address = old
    session.add(letter)


async def everything(session: AsyncSession, who: Subscriber) -> dict[str, Any]:
    """Return all that is kept about a reader (GDPR article 15), with the names that the JSON has."""
    return await readers.record(session, who) | {
        "paused_at": who.paused_at,
        "issues": await _issues(session, who),
        "letters": await _letters(session, who),
    }


async def _issues(session: AsyncSession, who: Subscriber) -> list[dict[str, Any]]:
    found = (
        select(Delivery, Issue, Edition)
        .join(Issue, col(Issue.id) == Delivery.issue_id)
        .join(Edition, col(Edition.id) == Issue.edition_id)
        .where(col(Delivery.subscriber_id) == who.id)
        .order_by(col(Issue.date))
    )
    return [
        {
            "edition": edition.slug,
            "date": issue.date,
            "state": one.state,
            "at": one.done_at,
            "reply": one.reply,
        }
        for one, issue, edition in await session.execute(found)
    ]


async def _letters(session: AsyncSession, who: Subscriber) -> list[dict[str, Any]]:
    found = select(Letter).where(col(Letter.subscriber_id) == who.id).order_by(col(Letter.id))
    return [
        {
            "kind": one.kind,
            "address": one.address,
            "state": one.state,
            "made_at": one.created_at,
            "at": one.done_at,
        }
        for one in await session.scalars(found)
    ]


async def _editions(session: AsyncSession, who: Subscriber) -> Sequence[Edition]:
    """Return a reader's editions, or all where they have none: a letter has the colours of the first."""
    every, chosen = await issues.editions(session), await store.choices(session, who.id or 0)
    return [one for one in every if one.id in chosen] or every


def _readdress(who: Subscriber, new: Address, settings: Settings) -> None:
    who.address, who.address_key = new.typed, new.key
    who.address_hash, who.provider = new.hashed(settings.suppression_key), new.provider

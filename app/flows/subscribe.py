"""A reader asks, confirms or says it was not them, changes what they get, and leaves."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from app.core.config import Settings
from app.core.errors import Conflict, Invalid
from app.delivery import ledger, letters, mailings
from app.delivery.models import State as Waiting
from app.flows import greetings, writing
from app.issues import store as issues
from app.issues.models import Edition, Issue
from app.subscribers import addresses, asks, consent, store, suppression
from app.subscribers.consent import Reason
from app.subscribers.consent import State as Consent
from app.subscribers.models import Subscriber
from app.subscribers.store import Origin


@dataclass(frozen=True, slots=True)
class Taste:
    """How a reader wants what they chose: not on weekends, and at an hour of the day (None: as soon as it is out)."""

    weekdays_only: bool
    hour: int | None
    timezone: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """What a reader asks for on the form."""

    address: str
    editions: Sequence[str]
    language: str
    origin: Origin


async def ask(
    session: AsyncSession,
    settings: Settings,
    request: Request,
    known: Sequence[Edition],
    now: datetime,
    may_write: bool = True,
) -> bool:
    """Do what a request from the form calls for, and tell whether it is a letter.

    Someone new gets the confirmation, a reader their manage link; an address that said “not me” or that an editor
    suppressed gets nothing. `known` are all editions. Where no letter `may_write`, a choice is kept all the same.
    Raises Invalid for an address nobody could mail.
    """
    address = addresses.accept(request.address)
    wanted = issues.among(known, request.editions)
    if not wanted:
        raise Invalid("Choose at least one edition.")
    address_hash = address.hashed(settings.suppression_key)
    if not await suppression.may_ask(session, address_hash, now):
        return False
    language, source = request.language, request.origin.source
    if (who := await store.by_key(session, address.key)) is None:
        who = await store.add(session, address, address_hash, language, source, now)
    else:
        await store.hold(session, who)
    if who.state in (Consent.ACTIVE, Consent.PAUSED):
        return may_write and await writing.owe(session, who, "manage", wanted, now)
    # The reason stays until they confirm: whoever typed the address need not be its owner.
    who.state, who.language = Consent.PENDING, request.language
    ids = [one.id or 0 for one in wanted]
    await store.choose(session, who.id or 0, ids, now)
    store.note(session, who, "asked", request.origin, now, " ".join(one.slug for one in wanted))
    return may_write and await writing.owe(session, who, "confirm", wanted, now)


async def confirm(session: AsyncSession, subscriber_id: int, origin: Origin, now: datetime) -> Subscriber:
    """Make a pending reader active, from the next issue on; confirming twice is harmless.

    Raises Conflict when the reader has left since, or an editor's suppression stands.
    """
    who = await store.get(session, subscriber_id)
    await store.hold(session, who)
    if who.state in (Consent.ACTIVE, Consent.PAUSED):
        return who
    if who.state != Consent.PENDING or not await suppression.lift(session, who.address_hash):
        raise Conflict("This link is not good any more. Subscribe again, and a new one is on its way.")
    await admit(session, who, origin, now)
    chosen = await store.choices(session, subscriber_id)
    names = [one.slug for one in await issues.editions(session) if one.id in chosen]
    store.note(session, who, "confirmed", origin, now, " ".join(names))
    await greetings.welcome(session, who, now)
    return who


async def refuse(session: AsyncSession, who: Subscriber, origin: Origin, now: datetime) -> None:
    """Believe an address that it did not ask: nothing of the request stays, and for 90 days it is not asked again.

    Raises Conflict for somebody who is no longer being asked.
    """
    await store.hold(session, who)
    if who.state != Consent.PENDING:
        raise Conflict("This link is not good any more; there is nothing that waits for an answer.")
    await suppression.refuse(session, who.address_hash, now)
    await letters.settle_waiting(
        session, who.id or 0, Waiting.WITHDRAWN, "it was not the reader who asked", now
    )
    if who.reason is None:
        session.expunge(who)
        await store.remove(session, who.id or 0)
        return
    who.state = Consent.ENDED  # as they were before somebody typed their address
    await store.choose(session, who.id or 0, (), now)
    store.note(session, who, "refused", origin, now)


async def ask_again(session: AsyncSession, settings: Settings, who: Subscriber, now: datetime) -> None:
    """Owe the confirmation once more to somebody whose link has aged, within the limits of the form."""
    address = addresses.accept(who.address)
    digest = address.digest(settings.suppression_key)
    chosen = await store.choices(session, who.id or 0)
    wanted = [one for one in await issues.editions(session) if one.id in chosen]
    if who.state != Consent.PENDING or not wanted or not await asks.may_write(session, settings, digest, now):
        return
    if await writing.owe(session, who, "confirm", wanted, now):
        asks.note_written(session, digest, now)


async def admit(session: AsyncSession, who: Subscriber, origin: Origin, now: datetime) -> None:
    """Make a subscriber active; what they chose counts from `now`."""
    if not consent.may_move(who.state, Consent.ACTIVE):
        raise Conflict(f"A subscriber who is {who.state} cannot become active.")
    who.state, who.reason, who.confirmed_at, who.source = Consent.ACTIVE, None, now, origin.source
    await store.count_from(session, who.id or 0, now)


async def change(
    session: AsyncSession, who: Subscriber, slugs: Sequence[str], language: str, origin: Origin, now: datetime
) -> None:
    """Give a reader the editions they tick: a new one from its next issue, none of a dropped one from now on.

    Ticking none is leaving. Raises Conflict for somebody who is no reader (any more).
    """
    await store.hold(session, who)
    if who.state not in (Consent.ACTIVE, Consent.PAUSED):
        raise Conflict("You have left. Subscribe again on the front page to come back.")
    wanted = await issues.chosen(session, slugs)
    who.language = language
    if not wanted:
        await leave(session, who, None, origin, now)
        return
    _, dropped = await store.choose(session, who.id or 0, [one.id or 0 for one in wanted], now)
    await _withdraw(session, who, dropped, now)
    store.note(session, who, "changed", origin, now, " ".join(one.slug for one in wanted))


async def suit(session: AsyncSession, who: Subscriber, taste: Taste) -> None:
    """Keep how a reader wants it, from the next issue on."""
    who.weekdays_only, who.hour = taste.weekdays_only, taste.hour
    who.timezone = taste.timezone or who.timezone
    await session.flush()


async def leave(
    session: AsyncSession, who: Subscriber, edition_id: int | None, origin: Origin, now: datetime
) -> None:
    """Stop one edition (or all, for None) at once; what is still owed of it is withdrawn. Twice is harmless."""
    await store.hold(session, who)
    had = await store.choices(session, who.id or 0)
    dropped = had if edition_id is None else had & {edition_id}
    if dropped:
        await store.choose(session, who.id or 0, had - dropped, now)
        names = [one.slug for one in await issues.editions(session) if one.id in dropped]
        store.note(session, who, "left", origin, now, " ".join(names))
        await greetings.goodbye(session, who, dropped, now)
    await _withdraw(session, who, dropped, now)
    if had == dropped and who.state != Consent.ENDED:
        await _end(session, who, now)


async def switch(
    session: AsyncSession, who: Subscriber, old: int, new: int, origin: Origin, now: datetime
) -> None:
    """Take one edition in place of another."""
    await store.hold(session, who)
    if who.state not in (Consent.ACTIVE, Consent.PAUSED):
        raise Conflict("You have left. Subscribe again on the front page to come back.")
    had = await store.choices(session, who.id or 0)
    _, dropped = await store.choose(session, who.id or 0, (had - {old}) | {new}, now)
    await _withdraw(session, who, dropped, now)
    names = [one.slug for one in await issues.editions(session) if one.id == new]
    store.note(session, who, "changed", origin, now, " ".join(names))


async def withdraw_all(session: AsyncSession, who: Subscriber, reason: str, now: datetime) -> None:
    """Take back every issue that a reader is still owed."""
    await ledger.withdraw(session, who.id or 0, None, now, reason)


async def _end(session: AsyncSession, who: Subscriber, now: datetime) -> None:
    who.state, who.reason, who.paused_until = Consent.ENDED, Reason.LEFT, None
    await withdraw_all(session, who, "the reader left", now)


async def _withdraw(session: AsyncSession, who: Subscriber, editions: set[int], now: datetime) -> None:
    if editions:
        theirs = mailings.of_issues(_issues_of(editions))
        await ledger.withdraw(session, who.id or 0, theirs, now, "the reader stopped this edition")


def _issues_of(editions: set[int]) -> Select[Any]:
    return select(col(Issue.id)).where(col(Issue.edition_id).in_(editions))

"""A reader asks, confirms, changes what they get, and leaves."""

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
from app.delivery.models import Letter
from app.flows import greetings
from app.issues import store as issues
from app.issues.models import Edition, Issue
from app.subscribers import addresses, consent, store, suppression
from app.subscribers.consent import Reason
from app.subscribers.consent import State as Consent
from app.subscribers.models import Subscriber
from app.subscribers.store import Origin


@dataclass(frozen=True, slots=True)
class Request:
    """What a reader asks for on the form."""

    address: str
    editions: Sequence[str]
    language: str
    origin: Origin


async def ask(session: AsyncSession, settings: Settings, request: Request, now: datetime) -> None:
    """Take a request from the form and owe the letter that it calls for.

    Someone new gets the confirmation, a reader their manage link; a suppressed address that only an editor
    may free gets nothing. The answer is the same for all. Raises Invalid for an address nobody could mail.
    """
    address = addresses.accept(request.address)
    wanted = await issues.chosen(session, request.editions)
    if not wanted:
        raise Invalid("Choose at least one edition.")
    address_hash = address.hashed(settings.suppression_key)
    stands = await suppression.find(session, address_hash)
    if stands is not None and stands.reason not in suppression.LIFTED_BY_CONFIRMATION:
        return
    who = await store.by_key(session, address.key)
    if who is None:
        who = await store.add(session, address, address_hash, request.language, request.origin.source, now)
    await store.hold(session, who)
    if who.state in (Consent.ACTIVE, Consent.PAUSED):
        await owe_letter(session, who, "manage", wanted, now)
        return
    # The reason stays until they confirm: whoever typed the address need not be its owner.
    who.state, who.language = Consent.PENDING, request.language
    ids = [one.id or 0 for one in wanted]
    await store.choose(session, who.id or 0, ids, now)
    store.note(session, who, "asked", request.origin, now, " ".join(one.slug for one in wanted))
    await owe_letter(session, who, "confirm", wanted, now)


async def owe_letter(
    session: AsyncSession, who: Subscriber, kind: str, editions: Sequence[Edition], now: datetime
) -> bool:
    """Owe a reader a letter, at most one of a kind in 24 hours; False when they have had theirs."""
    if await letters.made_since(session, kind, now - letters.GAP, who.id):
        return False
    first = editions[0]
    data = {
        "editions": [one.name for one in editions],
        "accent": first.accent,
        "accent_dark": first.accent_dark,
        "action": "confirm" if kind == "confirm" else "preferences",
    }
    session.add(
        Letter(kind=kind, address=who.address, subscriber_id=who.id, language=who.language, data=data,
               created_at=now, due_at=now)
    )  # fmt: skip
    return True


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


async def _end(session: AsyncSession, who: Subscriber, now: datetime) -> None:
    who.state, who.reason = Consent.ENDED, Reason.LEFT
    await ledger.withdraw(session, who.id or 0, None, now, "the reader left")


async def _withdraw(session: AsyncSession, who: Subscriber, editions: set[int], now: datetime) -> None:
    if editions:
        theirs = mailings.of_issues(_issues_of(editions))
        await ledger.withdraw(session, who.id or 0, theirs, now, "the reader stopped this edition")


def _issues_of(editions: set[int]) -> Select[Any]:
    return select(col(Issue.id)).where(col(Issue.edition_id).in_(editions))

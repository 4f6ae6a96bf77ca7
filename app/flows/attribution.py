"""Whose a report is: by our own signed token in a mail, by what a verified webhook names, or nobody's.

Anybody can write a mail that looks like a bounce, with any address in it. So a mail is believed about one delivery
only, the one whose signed return path it came to (SECURITY: a holder of it can stop that reader's mail, no more).
A verified webhook is the provider's word: it may go by our Message-ID, by the relay's id for the mail, and at last
by the address and the latest that this provider's relay was handed for it.
"""

import re
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from app.core.config import Settings
from app.core.errors import Invalid
from app.core.tokens import LENGTH, Purpose, Signer
from app.delivery.models import Delivery, Letter, State
from app.feedback.models import KeptReport
from app.issues import store as issues
from app.mail import verp
from app.subscribers import addresses, store

SMTP = "smtp"  # the origin of what a relay said at once
MAIL = "mail"

_OURS = re.compile(
    rf"(?P<what>[a-z0-9-]{{1,80}})-(?P<number>[0-9]{{1,18}})\.(?P<token>[\w-]{{{LENGTH}}})@\S+"
)
_RELAY_ID = 100  # characters of a relay's id that the ledger keeps
_ACCEPTED = (State.SENT, State.UNCERTAIN)


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a report is, and what it is about. `edition_id` is the one to leave, None for all.

    `is_sure`: the very mail is known, not only the reader. `handed_at`: when the relay was given it, if known.
    """

    subscriber_id: int | None
    issue_id: int | None = None
    letter_id: int | None = None
    edition_id: int | None = None
    handed_at: datetime | None = None
    is_sure: bool = True


async def find(session: AsyncSession, settings: Settings, signer: Signer, one: KeptReport) -> Owner | None:
    """Whose a report is; None where nobody can say."""
    if one.origin == SMTP:
        return await _known(session, one)
    if one.origin == MAIL:
        return await _by_token(session, signer, one.token or "")
    relays = [url.name for url in settings.relay_urls if url.hook == one.origin]
    return (
        await _by_message_id(session, signer, one.message_id or "")
        or await _by_relay_id(session, relays, one.relay_id or "")
        or await _by_address(session, relays, one.address or "")
    )


async def _known(session: AsyncSession, one: KeptReport) -> Owner | None:
    if one.letter_id is not None:
        return await _letter(session, one.letter_id)
    return await _delivery(session, one.issue_id or 0, one.subscriber_id or 0)


async def _by_token(session: AsyncSession, signer: Signer, token: str) -> Owner | None:
    if len(token) == LENGTH:
        leaving = signer.read(token, Purpose.UNSUBSCRIBE)
        return Owner(leaving.subscriber_id, edition_id=leaving.scope) if leaving else None
    named = verp.read(signer.keys, token)
    if named is None:
        return None
    if named.kind == verp.Kind.LETTER:
        return await _letter(session, named.issue_id)
    return await _delivery(session, named.issue_id, named.subscriber_id)


async def _by_message_id(session: AsyncSession, signer: Signer, message_id: str) -> Owner | None:
    shape = _OURS.fullmatch(message_id)
    named = signer.read(shape["token"], Purpose.MESSAGE) if shape else None
    if shape is None or named is None:
        return None
    if not named.scope:
        return await _letter(session, named.subscriber_id)
    try:
        day = date.fromisoformat(shape["number"])
    except ValueError:
        return None
    issue = await issues.numbered(session, named.scope, day)
    return await _delivery(session, issue.id or 0, named.subscriber_id) if issue else None


async def _by_relay_id(session: AsyncSession, relays: list[str], relay_id: str) -> Owner | None:
    if not relays or not relay_id:
        return None
    which = select(Delivery).where(
        col(Delivery.relay_id) == relay_id[:_RELAY_ID], col(Delivery.relay).in_(relays)
    )
    found = (await session.scalars(which.limit(2))).all()
    return await _owner(session, found[0]) if len(found) == 1 else None


async def _by_address(session: AsyncSession, relays: list[str], address: str) -> Owner | None:
    try:
        who = await store.by_key(session, addresses.accept(address).key)
    except Invalid:
        return None
    if not relays or who is None:
        return None
    which = (
        select(Delivery)
        .where(col(Delivery.subscriber_id) == who.id, col(Delivery.relay).in_(relays))
        .where(col(Delivery.state).in_(_ACCEPTED))
        .order_by(col(Delivery.done_at).desc())
        .limit(1)
    )
    found = (await session.scalars(which)).first()
    return await _owner(session, found, is_sure=False) if found else None


async def _delivery(session: AsyncSession, issue_id: int, subscriber_id: int) -> Owner | None:
    found = await session.get(Delivery, (issue_id, subscriber_id))
    return await _owner(session, found) if found else None


async def _owner(session: AsyncSession, found: Delivery, is_sure: bool = True) -> Owner:
    issue = await issues.issue(session, found.issue_id)
    return Owner(
        found.subscriber_id,
        found.issue_id,
        edition_id=issue.edition_id,
        handed_at=found.done_at,
        is_sure=is_sure,
    )


async def _letter(session: AsyncSession, letter_id: int) -> Owner | None:
    found = await session.get(Letter, letter_id)
    return Owner(found.subscriber_id, letter_id=letter_id, handed_at=found.done_at) if found else None

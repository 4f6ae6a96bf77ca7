"""What the deliveries of a mailing share, and of which mailings anything may be claimed now."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from app.core.db import Database
from app.core.errors import Unavailable
from app.delivery import ledger, mailings
from app.delivery.models import Mailing
from app.flows.compose import Composer, Press
from app.issues import store
from app.mail import render

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stock:
    """What the deliveries of one mailing share: its presses by language, and what to do when an answer is lost.

    `providers` are those whose readers it had something for when it was last looked at.
    """

    mailing_id: int
    presses: dict[str, Press]
    default: str
    holds: bool
    started_at: datetime
    providers: Sequence[str] = ()

    def time(self, now: datetime) -> datetime:
        """Return the time as this mailing has it: never before its start, wherever a clock has been set back to."""
        return max(now, self.started_at)

    def press(self, language: str) -> Press:
        """Return the press for a reader's language, else the edition's own."""
        return self.presses.get(language) or self.presses[self.default]


async def stock(session: AsyncSession, composer: Composer, mailing: Mailing) -> Stock | None:
    """Set a mailing's renditions for its readers; None while they are not made yet."""
    made = await mailings.renditions(session, mailing.id or 0)
    if not made or mailing.started_at is None:
        return None
    issue = await store.issue(session, mailing.issue_id)
    edition = await store.edition_of(session, issue)
    presses = {
        language: composer.press(
            edition,
            issue.id or 0,
            issue.date,
            language,
            mailing.started_at,
            render.Rendition(one.subject, one.html, one.text),
        )
        for language, one in made.items()
    }
    default = edition.language if edition.language in presses else next(iter(presses))
    holds = mailing.on_uncertain == "hold"
    return Stock(mailing.id or 0, presses, default, holds, mailing.started_at)


async def restock(
    db: Database, composer: Composer, known: Mapping[int, Stock], now: datetime
) -> dict[int, Stock]:
    """Return the stock of every mailing that may be claimed from; what is `known` already is not made again.

    A mailing that cannot be set pauses and says so, and no other waits for it.
    """
    those = [one for one in await db.told(mailings.under_way) if one.expires_at and one.expires_at > now]
    found = dict[int, Stock]()
    for mailing in those:
        number = mailing.id or 0
        if one := known.get(number) or await _stock(db, composer, mailing):
            due = partial(ledger.providers_due, mailing_id=number, now=one.time(now))
            found[number] = replace(one, providers=await db.told(due))
    return found


async def _stock(db: Database, composer: Composer, mailing: Mailing) -> Stock | None:
    try:
        async with db.reading() as session:
            return await stock(session, composer, mailing)
    except (SQLAlchemyError, Unavailable):
        raise
    except Exception as error:
        log.exception("mailing %d cannot be set", mailing.id)
        async with db.transaction() as writing:
            await mailings.pause(writing, mailing.id or 0, f"it cannot be composed: {type(error).__name__}")
        return None

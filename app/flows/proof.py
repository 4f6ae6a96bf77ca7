"""An issue as a reader gets it: as its mailing was set, or as it would be set now."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from app.core.errors import Fault, Invalid
from app.delivery import mailings
from app.flows import references
from app.flows.compose import Composer
from app.issues import store
from app.issues.models import Edition, Issue, IssueText
from app.mail.render import Rendition
from app.subscribers import addresses
from app.subscribers.addresses import Address


@dataclass(frozen=True, slots=True)
class Proof:
    """An issue set in one language; `moment` is when its mailing started, None before that."""

    edition: Edition
    language: str
    rendition: Rendition
    moment: datetime | None


async def pull(session: AsyncSession, composer: Composer, issue: Issue, text: IssueText) -> Proof:
    """Return an issue as it is in one of its texts: what went out, else what would."""
    edition = await store.edition_of(session, issue)
    sent = await mailings.of_issue(session, issue.id or 0)
    made = await mailings.renditions(session, sent.id or 0) if sent else {}
    if sent is not None and (kept := made.get(text.language)):
        rendition = Rendition(kept.subject, kept.html, kept.text)
        return Proof(edition, text.language, rendition, sent.started_at)
    others = store.other_labels(edition, await store.editions(session))
    pages = await references.of_text(session, text)
    rendered = await asyncio.to_thread(composer.render_issue, edition, issue.date, text, others, pages)
    return Proof(edition, text.language, rendered, sent.started_at if sent else None)


def chosen(texts: Sequence[IssueText], language: str, default: IssueText) -> IssueText:
    """Return the text in a reader's language, else the default."""
    return next((text for text in texts if text.language == language), default)


def accepted(address: str, field: str = "address") -> Address:
    """Return an address that an editor gave, or raise Invalid under the name of the field that it came in."""
    try:
        return addresses.accept(address)
    except Invalid as error:
        raise Invalid(error.detail, [Fault(fault.message, field=field) for fault in error.faults]) from None

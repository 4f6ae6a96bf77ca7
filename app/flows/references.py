"""The issues that a text names, `2026-10-22 日报`, found in the archive."""

import asyncio
from collections.abc import Mapping

from sqlalchemy.ext.asyncio import AsyncSession

from app.issues import sources, store
from app.issues.document import CrossReference, Document
from app.issues.models import IssueState, IssueText


async def pages_of(session: AsyncSession, document: Document) -> Mapping[CrossReference, str]:
    """Return the path of the archive page of each published issue that a text names."""
    known = {name: one for one in await store.editions(session) for name in (one.slug, one.label.casefold())}
    found = {}
    for named in document.cross_references:
        edition = known.get(named.word.casefold())
        issue = await store.numbered(session, edition.id or 0, named.date) if edition else None
        if edition and issue and issue.state == IssueState.PUBLISHED:
            found[named] = f"/archive/{edition.slug}/{named.date}"
    return found


async def of_text(session: AsyncSession, text: IssueText) -> Mapping[CrossReference, str]:
    """Return the same for a text as it was handed in."""
    document = await asyncio.to_thread(sources.parse, text.source, text.format)
    return await pages_of(session, document)

"""What editors are told of a mailing and of an issue, the same by API and by command."""

import asyncio
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, distinct, func, literal, select, true
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlmodel import col

from app.core.db import UTCDateTime
from app.delivery import books, mailings
from app.delivery.models import Delivery, Mailing, MailingState, State
from app.feedback import store as feedback
from app.flows import proofread
from app.flows.compose import SAMPLE_ADDRESS, Composer, Reader
from app.flows.proof import pull
from app.issues import document, preflight, sources, store
from app.issues.models import Edition, Issue, IssueText
from app.subscribers.models import ConsentEvent

PARTS = ("html", "text", "headers", "message")
NEVER = datetime(9999, 1, 1, tzinfo=UTC)


async def progress(session: AsyncSession, mailing_id: int, now: datetime) -> dict[str, Any]:
    """Return how far a mailing is; raise NotFound."""
    return await mailing(session, await mailings.get(session, mailing_id), now)


async def mailing(session: AsyncSession, one: Mailing, now: datetime) -> dict[str, Any]:
    """Return a mailing with its balanced counts, its rate (mails a second) and eta (seconds, or None)."""
    values = {"mailing": one.id, "issue": one.issue_id, "lately": now - books.STALE}
    row = (await session.execute(_figures(), values | {"since": one.started_at or NEVER})).one()
    counts = books.told(row)
    rate = float(row.rate) if one.state == MailingState.SENDING else 0.0
    left = counts[State.OWED] + counts[State.IN_FLIGHT] + counts[State.DEFERRED]
    return {
        "id": one.id,
        "issue_id": one.issue_id,
        "edition": row.slug,
        "state": one.state,
        "scheduled_at": one.scheduled_at,
        "started_at": one.started_at,
        "finished_at": one.finished_at,
        "audience": one.audience,
        **counts,
        **feedback.told(row),
        "left": row.left,
        "rate": round(rate, 1),
        "eta": round(left / rate) if rate >= 0.1 else None,
        "problem": one.problem,
    }


async def reconcile(session: AsyncSession, one: Mailing, now: datetime) -> list[dict[str, Any]]:
    """Count a mailing's rows anew, set its tallies right, and return each difference that there was.

    Nothing is counted where the rows have been forgotten: the tallies are all that is left.
    """
    if one.finished_at is not None and now - one.finished_at > mailings.KEPT:
        return []
    tallied, rows = await books.counts(session, one.id or 0), await books.recount(session, one.id or 0)
    found = [
        {"state": state, "tally": tallied[state], "rows": rows[state]}
        for state in tallied
        if tallied[state] != rows[state]
    ]
    if found or one.audience != sum(rows.values()):
        one.audience = sum(rows.values())
        changes = {state: rows[state] - tallied[state] for state in tallied}
        await books.correct(session, one.id or 0, changes)
        await session.flush()
    return found


async def issue(session: AsyncSession, one: Issue) -> dict[str, Any]:
    """Return an issue with its texts and its mailing's id."""
    edition = await store.edition_of(session, one)
    texts = await store.texts(session, one.id or 0)
    sent = await mailings.of_issue(session, one.id or 0)
    return {
        "id": one.id,
        "edition": edition.slug,
        "date": one.date,
        "state": one.state,
        "published_at": one.published_at,
        "mailing_id": sent.id if sent else None,
        "texts": [
            {"language": text.language, "format": text.format, "subject": text.subject, "source": text.source}
            for text in texts
        ],
    }


async def handed_in(session: AsyncSession, one: Issue, edition: Edition, text: IssueText) -> dict[str, Any]:
    """Return what an editor sees right after handing in a text: how it was understood, and what to look at."""
    parsed = await asyncio.to_thread(sources.parse, text.source, text.format)
    around = await proofread.surroundings(session, one, edition, text.language, parsed)
    return {
        "id": one.id,
        "edition": edition.slug,
        "date": one.date,
        "language": text.language,
        "subject": text.subject,
        "outline": document.outline(parsed),
        "diagnostics": [
            {"level": "warning", "line": finding.line, "part": finding.field, "message": finding.message}
            for finding in preflight.look_over(parsed, around)
        ],
    }


async def preview(
    session: AsyncSession, composer: Composer, one: Issue, part: str, language: str | None, now: datetime
) -> tuple[str, bytes]:
    """Return the media type and bytes of a part of what a reader gets, with links that open nothing.

    `part` is html, text, headers or message.
    """
    proof = await pull(session, composer, one, await store.text(session, one, language))
    rendered = proof.rendition
    moment = proof.moment or now
    press = composer.press(proof.edition, one.id or 0, one.date, proof.language, moment, rendered)
    reader = Reader(0, SAMPLE_ADDRESS)
    if part in ("html", "text"):
        filled = rendered.html if part == "html" else rendered.text
        for slot, value in composer.links(press, reader).items():
            filled = filled.replace(slot, value)
        return f"text/{'html' if part == 'html' else 'plain'}; charset=utf-8", filled.encode()
    whole = composer.issue_message(press, reader).message
    if part == "headers":
        return "text/plain; charset=utf-8", whole.partition(b"\r\n\r\n")[0] + b"\r\n"
    return "message/rfc822", whole


def _until(since: ColumnElement[datetime]) -> ColumnElement[datetime]:
    """Select when the edition's next mailing started after the one that started at `since`; NEVER, if none has."""
    other = aliased(Issue)
    started = (
        select(func.min(col(Mailing.started_at)))
        .join(other, col(other.id) == Mailing.issue_id)
        .where(col(other.edition_id) == Edition.id, col(Mailing.started_at) > since)
        .scalar_subquery()
    )
    return func.coalesce(started, literal(NEVER, UTCDateTime()))


def _left() -> ColumnElement[int]:
    """Select how many left the edition after they got `issue`, which started at `since`, and before its next one."""
    since = bindparam("since", type_=UTCDateTime())
    editions, its = (
        literal(" ") + one + literal(" ") for one in (col(ConsentEvent.editions), col(Edition.slug))
    )
    return (
        select(func.count(distinct(col(ConsentEvent.subscriber_id))))
        .join(Delivery, col(Delivery.subscriber_id) == ConsentEvent.subscriber_id)
        .where(col(Delivery.issue_id) == bindparam("issue"), col(Delivery.state) == State.SENT)
        .where(
            col(ConsentEvent.kind) == "left",
            col(ConsentEvent.at) >= since,
            col(ConsentEvent.at) < _until(since),
        )
        .where(editions.contains(its))
        .scalar_subquery()
    )


@cache
def _figures() -> Select[Any]:
    """Select all that changes while a mailing goes out: asked again and again, so in one statement, made once."""
    counted = books.COUNTS_AND_RATE.subquery("counted")
    came_back = feedback.counting().subquery("came_back")
    return (
        select(col(Edition.slug), counted, came_back, _left().label("left"))
        .join(Issue, col(Issue.edition_id) == Edition.id)
        .join(counted, true())
        .join(came_back, true())
        .where(col(Issue.id) == bindparam("issue"))
    )

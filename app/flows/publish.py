"""An issue becomes a mailing, and each reader is owed it."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from app.core.db import Database, upsert
from app.core.errors import Conflict, Fault, Invalid
from app.delivery import ledger, mailings
from app.delivery.ledger import Audience
from app.delivery.models import Mailing, MailingState, Rendition
from app.flows import references
from app.flows.compose import Composer
from app.issues import cadence, store
from app.issues.document import CrossReference
from app.issues.models import Edition, Issue, IssueState, IssueText
from app.mail import render
from app.subscribers import audience, hours

log = logging.getLogger(__name__)

OVERDUE = "overdue: it should have gone at {at:%Y-%m-%d %H:%M} UTC; resume it to send it now, or cancel it"

STALE = "no worker since {last:%Y-%m-%d %H:%M} UTC; resume it if this is no restored copy, or cancel it"


@dataclass(frozen=True, slots=True)
class Order:
    """How a mailing shall go: at None is now, lateness (seconds) None is the edition's."""

    at: datetime | None = None
    max_lateness: int | None = None
    on_uncertain: str = "resend"


@dataclass(frozen=True, slots=True)
class Typesetting:
    """A mailing whose issue is still to be rendered."""

    mailing_id: int
    edition: Edition
    day: date
    texts: Sequence[IssueText]
    others: tuple[str, ...]
    pages: Sequence[Mapping[CrossReference, str]]  # one a text


async def send(session: AsyncSession, issue_id: int, order: Order, now: datetime) -> tuple[Mailing, bool]:
    """Make the issue's one mailing, or return the one it has; True when this call made or reopened it.

    Raises Conflict when it is scheduled for another time. Once committed, every reader is owed the issue.
    """
    issue = await store.issue(session, issue_id)
    await store.hold(session, issue)
    existing = await mailings.of_issue(session, issue_id)
    if existing is not None:
        return await _again(session, issue, existing, order, now)
    edition = await store.edition_of(session, issue)
    await store.text(session, issue, None)
    lateness = edition.max_lateness if order.max_lateness is None else order.max_lateness
    if order.at is not None and now - order.at > timedelta(seconds=lateness):
        sentence = f"That time is over for longer than a mailing may be late ({lateness:,} s)."
        raise Invalid(sentence, [Fault(sentence, field="at")])
    mailing = Mailing(
        issue_id=issue_id,
        state=MailingState.SCHEDULED,
        scheduled_at=order.at or now,
        max_lateness=lateness,
        time_to_live=edition.time_to_live,
        on_uncertain=order.on_uncertain,
        created_at=now,
    )
    session.add(mailing)
    issue.state = IssueState.SCHEDULED
    await session.flush()
    if mailing.scheduled_at <= now:
        await _begin(session, issue, mailing, now)
    return await mailings.get(session, mailing.id or 0), True


async def _again(
    session: AsyncSession, issue: Issue, mailing: Mailing, order: Order, now: datetime
) -> tuple[Mailing, bool]:
    if mailing.state == MailingState.CANCELLED:
        reopened = await mailings.reopen(session, mailing.id or 0, order.at or now, now)
        if reopened.cutoff is None:
            issue.state = IssueState.SCHEDULED
            if reopened.scheduled_at <= now:
                await _begin(session, issue, reopened, now)
        return await mailings.get(session, mailing.id or 0), True
    if order.at is not None and mailing.cutoff is not None:
        raise Conflict(f"Issue {issue.id} has gone out already: see mailing {mailing.id}.")
    if order.at is not None and order.at != mailing.scheduled_at:
        raise Conflict(
            f"Issue {issue.id} is to go at {mailing.scheduled_at:%Y-%m-%d %H:%M} UTC; "
            f"to change that, reschedule mailing {mailing.id}."
        )
    return mailing, False


async def begin_due(session: AsyncSession, now: datetime) -> None:
    """Start the mailings whose time has come; one that is later than it may be pauses and asks."""
    for mailing in await mailings.due(session, now):
        if now - mailing.scheduled_at > timedelta(seconds=mailing.max_lateness):
            await mailings.pause(session, mailing.id or 0, OVERDUE.format(at=mailing.scheduled_at))
            continue
        try:
            async with session.begin_nested():
                # The issue before its mailing, everywhere: so nobody deadlocks.
                issue = await store.issue(session, mailing.issue_id)
                await store.hold(session, issue)
                await _begin(session, issue, mailing, now)
        except SQLAlchemyError:
            raise
        except Exception as error:  # no other mailing waits for it
            log.exception("mailing %d cannot start", mailing.id)
            await mailings.pause(session, mailing.id or 0, f"it cannot start: {type(error).__name__}")


async def pause_stale(session: AsyncSession, last: datetime | None, now: datetime) -> None:
    """Pause what is under way if nobody has been at work since `last`, for longer than it may be late.

    So a restored copy of the database sends nothing by itself, and nor does a worker that was off too long. What
    an editor has started or resumed since then is not stale.
    """
    for mailing in await mailings.under_way(session):
        if last is None or mailing.expires_at is None:
            continue
        ordered = mailing.expires_at - timedelta(seconds=mailing.time_to_live + mailing.wait)
        if now - max(last, ordered) > timedelta(seconds=mailing.max_lateness):
            await mailings.pause(session, mailing.id or 0, STALE.format(last=last))


async def _begin(session: AsyncSession, issue: Issue, mailing: Mailing, now: datetime) -> None:
    """Freeze audience and content: the cutoff is the scheduled time, whenever the worker got to it."""
    if not await mailings.start(session, mailing.id or 0, mailing.scheduled_at, now):
        return
    issue.state, issue.published_at = IssueState.PUBLISHED, now
    others = select(col(Issue.id)).where(col(Issue.edition_id) == issue.edition_id, col(Issue.id) != issue.id)
    await ledger.hasten(session, mailings.of_issues(others), now)


async def set_type(db: Database, composer: Composer) -> None:
    """Render each mailing under way that has no rendition yet; one that cannot be rendered pauses and says why."""
    for mailing in await db.told(mailings.without_rendition):
        async with db.reading() as session:
            job = await _typesetting(session, mailing)
        try:
            made = [
                await asyncio.to_thread(composer.render_issue, job.edition, job.day, text, job.others, pages)
                for text, pages in zip(job.texts, job.pages, strict=True)
            ]
        except Exception as error:
            async with db.transaction() as session:
                await mailings.pause(
                    session, job.mailing_id, f"it cannot be rendered: {type(error).__name__}"
                )
            log.exception("mailing %d cannot be rendered", job.mailing_id)
            continue
        async with db.transaction() as session:
            await _keep(session, composer, job, made)


async def _typesetting(session: AsyncSession, mailing: Mailing) -> Typesetting:
    issue = await store.issue(session, mailing.issue_id)
    edition = await store.edition_of(session, issue)
    others = store.other_labels(edition, await store.editions(session))
    texts = await store.texts(session, issue.id or 0)
    pages = [await references.of_text(session, text) for text in texts]
    return Typesetting(mailing.id or 0, edition, issue.date, texts, others, pages)


async def _keep(
    session: AsyncSession, composer: Composer, job: Typesetting, made: Sequence[render.Rendition]
) -> None:
    """Keep a mailing's renditions, unless another worker has been faster."""
    edition = await session.get_one(Edition, job.edition.id)
    edition.list_id = composer.list_id(edition)
    rows = [
        {"mailing_id": job.mailing_id, "language": text.language, "subject": one.subject, "html": one.html,
         "text": one.text}
        for text, one in zip(job.texts, made, strict=True)
    ]  # fmt: skip
    insert = upsert(session, Rendition.__table__).values(rows)  # type: ignore[attr-defined]
    await session.execute(insert.on_conflict_do_nothing())


async def enlist_next(session: AsyncSession, mailing_id: int, whose: Audience, now: datetime) -> Mailing:
    """Owe a mailing's issue to the next chunk of its audience; the last one completes it. Returns what it is then."""
    if await ledger.enlist(session, mailing_id, whose, now):
        await mailings.complete(session, mailing_id)
    return await mailings.get(session, mailing_id)


async def audience_of(session: AsyncSession, mailing: Mailing) -> Audience:
    """Return who is due a mailing that has begun, and whose own hour is still to come; made once for all chunks."""
    if mailing.cutoff is None:
        raise RuntimeError("a mailing without a cutoff has no audience")
    issue = await store.issue(session, mailing.issue_id)
    edition = await store.edition_of(session, issue)
    readers: Select[*tuple[Any, ...]] = audience.readers_of(issue.edition_id, mailing.cutoff)
    if cadence.is_weekend_extra(edition.cadence, issue.date):
        readers = audience.sparing_weekends(readers)
    wanted = await audience.hours(session, edition.timezone)
    slots = hours.slots(wanted, mailing.started_at or mailing.cutoff)
    readers = audience.at_their_hour(readers, slots, edition.timezone)
    return Audience(
        audience.choosers_of(issue.edition_id, mailing.cutoff), partial(audience.between, readers)
    )


async def cancel(session: AsyncSession, mailing_id: int, now: datetime) -> Mailing:
    """Cancel a mailing; an issue of which nothing went out is a draft again."""
    issue = await store.issue(session, (await mailings.get(session, mailing_id)).issue_id)
    await store.hold(session, issue)
    mailing = await mailings.cancel(session, mailing_id, now)
    if mailing.cutoff is None:
        issue.state = IssueState.DRAFT
    return mailing


async def steer(session: AsyncSession, mailing_id: int, act: str, now: datetime) -> Mailing:
    """Pause, resume, cancel or retry a mailing; raises Conflict where its state forbids it."""
    if act == "pause":
        return await mailings.pause(session, mailing_id, "paused by an editor")
    if act == "resume":
        return await mailings.resume(session, mailing_id, now)
    if act == "retry":
        return await mailings.retry(session, mailing_id, now)
    return await cancel(session, mailing_id, now)

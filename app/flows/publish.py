"""An issue is handed in, becomes a mailing, and each reader is owed it."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from app.core.db import Database
from app.core.errors import Conflict, Invalid, TooMany
from app.core.i18n import LANGUAGES
from app.delivery import ledger, letters, mailings
from app.delivery.models import Letter, Mailing, MailingState, Rendition
from app.flows.compose import Composer
from app.issues import document, sources, store
from app.issues.models import Edition, Issue, IssueState, IssueText
from app.mail import render
from app.subscribers import audience
from app.subscribers.addresses import accept

log = logging.getLogger(__name__)

TESTS_AN_HOUR = 20
OVERDUE = "overdue: it should have gone at {at:%Y-%m-%d %H:%M} UTC; resume it to send it now, or cancel it"
SUBJECT_LIMIT = 2000


@dataclass(frozen=True, slots=True)
class Manuscript:
    """A text as an editor hands it in; language None is the edition's, subject None is made from the text."""

    source: str | bytes
    format: str = "text"
    language: str | None = None
    subject: str | None = None


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


async def hand_in(
    session: AsyncSession, slug: str, day: date, manuscript: Manuscript, now: datetime
) -> tuple[Issue, Edition, IssueText]:
    """Keep a text as the issue of an edition and a date.

    Raises NotFound for the edition, Invalid with every faulty line, Conflict when there is a text already.
    """
    edition = await store.edition(session, slug)
    language = manuscript.language or edition.language
    if language not in LANGUAGES:
        raise Invalid(f"There are no catalogues for “{language}”; languages are: {', '.join(LANGUAGES)}.")
    parsed = sources.parse(manuscript.source, manuscript.format)
    text = IssueText(
        issue_id=0,
        language=language,
        format=manuscript.format,
        source=_decoded(manuscript.source),
        subject=checked_subject(manuscript.subject or document.subject_of(parsed)),
    )
    issue = await store.numbered(session, edition.id or 0, day)
    if issue is None:
        issue = Issue(edition_id=edition.id or 0, date=day, created_at=now)
        session.add(issue)
        await session.flush()
    await store.add_text(session, issue, text)
    return issue, edition, text


def checked_subject(subject: str) -> str:
    """Return a subject fit for a header, or raise Invalid: one line, not empty, not endless."""
    if not subject.strip() or len(subject) > SUBJECT_LIMIT:
        raise Invalid(f"A subject has 1 to {SUBJECT_LIMIT} characters.")
    if not subject.isprintable():
        raise Invalid("A subject is one line without control characters.")
    return subject.strip()


async def send(session: AsyncSession, issue_id: int, order: Order, now: datetime) -> tuple[Mailing, bool]:
    """Make the issue's one mailing, or return the one it has; True when this call made or reopened it.

    Raises Conflict when it is scheduled for another time. Once committed, every reader is owed the issue.
    """
    issue = await store.issue(session, issue_id)
    existing = await mailings.of_issue(session, issue_id)
    if existing is not None:
        return await _again(session, issue, existing, order, now)
    edition = await store.edition_of(session, issue)
    await store.text(session, issue, None)
    mailing = Mailing(
        issue_id=issue_id,
        state=MailingState.SCHEDULED,
        scheduled_at=order.at or now,
        max_lateness=edition.max_lateness if order.max_lateness is None else order.max_lateness,
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
        return reopened, True
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
        issue = await store.issue(session, mailing.issue_id)
        await _begin(session, issue, mailing, now)


async def _begin(session: AsyncSession, issue: Issue, mailing: Mailing, now: datetime) -> None:
    """Freeze audience and content: the cutoff is the scheduled time, whenever the worker got to it."""
    if not await mailings.start(session, mailing.id or 0, mailing.scheduled_at, now):
        return
    issue.state, issue.published_at = IssueState.PUBLISHED, now


async def set_type(db: Database, composer: Composer) -> None:
    """Render each mailing under way that has no rendition yet; one that cannot be rendered pauses and says why."""
    async with db.reading() as session:
        jobs = [await _typesetting(session, mailing) for mailing in await mailings.without_rendition(session)]
    for job in jobs:
        try:
            made = [
                await asyncio.to_thread(composer.render_issue, job.edition, job.day, text, job.others)
                for text in job.texts
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
    return Typesetting(
        mailing.id or 0, edition, issue.date, await store.texts(session, issue.id or 0), others
    )


async def _keep(
    session: AsyncSession, composer: Composer, job: Typesetting, made: Sequence[render.Rendition]
) -> None:
    edition = await session.get_one(Edition, job.edition.id)
    edition.list_id = composer.list_id(edition)
    for text, one in zip(job.texts, made, strict=True):
        await session.merge(
            Rendition(mailing_id=job.mailing_id, language=text.language, subject=one.subject, html=one.html,
                      text=one.text)
        )  # fmt: skip


async def enlist_next(session: AsyncSession, mailing: Mailing, now: datetime) -> None:
    """Owe a mailing's issue to the next chunk of its audience; the last one completes it."""
    if mailing.cutoff is None:
        raise RuntimeError("a mailing without a cutoff has no audience")
    issue = await store.issue(session, mailing.issue_id)
    readers = audience.readers_of(issue.edition_id, mailing.cutoff)
    if await ledger.enlist(session, mailing.id or 0, readers, now):
        await mailings.complete(session, mailing.id or 0)


async def cancel(session: AsyncSession, mailing_id: int, now: datetime) -> Mailing:
    """Cancel a mailing; an issue of which nothing went out is a draft again."""
    mailing = await mailings.cancel(session, mailing_id, now)
    if mailing.cutoff is None:
        (await store.issue(session, mailing.issue_id)).state = IssueState.DRAFT
    return mailing


async def owe_copy(
    session: AsyncSession, composer: Composer, issue_id: int, address: str, kind: str, now: datetime
) -> Letter:
    """Owe one address a copy of an issue outside the books; a `test` says so in its subject."""
    issue = await store.issue(session, issue_id)
    edition = await store.edition_of(session, issue)
    text = await store.text(session, issue, None)
    others = store.other_labels(edition, await store.editions(session))
    rendered = await asyncio.to_thread(composer.render_issue, edition, issue.date, text, others)
    subject = f"[Test] {rendered.subject}" if kind == "test" else rendered.subject
    data = {
        "html": rendered.html,
        "text": rendered.text,
        "subject": subject,
        "sender": composer.sender(edition),
        "sender_name": edition.sender_name or edition.name,
    }
    letter = Letter(kind=kind, address=address, language=text.language, data=data, created_at=now, due_at=now)
    session.add(letter)
    await session.flush()
    return letter


def _decoded(source: str | bytes) -> str:
    return source if isinstance(source, str) else source.decode("utf-8-sig")


async def amend(
    session: AsyncSession, issue_id: int, language: str | None, subject: str | None, source: str | None
) -> tuple[Issue, Edition, IssueText]:
    """Change a text that is not frozen; a new source without a subject gets the subject it suggests."""
    issue = await store.issue(session, issue_id)
    store.require_draft(issue)
    text = await store.text(session, issue, language)
    if source is not None:
        parsed = sources.parse(source, text.format)
        text.source = source
        subject = subject or document.subject_of(parsed)
    if subject is not None:
        text.subject = checked_subject(subject)
    await session.flush()
    return issue, await store.edition_of(session, issue), text


async def discard(session: AsyncSession, issue_id: int) -> None:
    """Delete a draft; raise Conflict for an issue that is scheduled or published."""
    issue = await store.issue(session, issue_id)
    if issue.state != IssueState.DRAFT or await mailings.of_issue(session, issue_id):
        raise Conflict(f"Issue {issue_id} is {issue.state} and has a mailing; only drafts can be deleted.")
    await session.delete(issue)


async def owe_tests(
    session: AsyncSession, composer: Composer, issue_id: int, addresses: Sequence[str], now: datetime
) -> None:
    """Owe a test to each address; raises Invalid for a bad one, TooMany past 20 an hour."""
    if await letters.made_since(session, "test", now - timedelta(hours=1)) + len(addresses) > TESTS_AN_HOUR:
        raise TooMany(f"There can be {TESTS_AN_HOUR} tests an hour; wait a little.")
    for address in addresses:
        await owe_copy(session, composer, issue_id, accept(address).typed, "test", now)

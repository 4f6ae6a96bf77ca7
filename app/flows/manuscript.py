"""A text is handed in, amended or discarded, and copied to somebody outside the books."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncSession

from app.core.errors import Conflict, Fault, Invalid, NotFound, TooMany
from app.core.i18n import LANGUAGES
from app.delivery import letters, mailings
from app.delivery.models import Letter
from app.flows.compose import Composer
from app.flows.proof import Proof, accepted, chosen, pull
from app.issues import document, sources, store
from app.issues.models import Edition, Issue, IssueText
from app.mail import headers
from app.subscribers import store as readers

TESTS_AN_HOUR = 20
SUBJECT_LIMIT = 2000
SLOTS = "The word “__BS_…” stands for a reader's own links and cannot be part of a text."


@dataclass(frozen=True, slots=True)
class Manuscript:
    """A text as an editor hands it in; language None is the edition's, subject None is made from the text."""

    source: str | bytes
    format: str = "text"
    language: str | None = None
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What of a text changes, None leaves it; `language` says of which text, `format` goes with the source."""

    language: str | None = None
    subject: str | None = None
    source: str | bytes | None = None
    format: str | None = None


async def hand_in(
    session: AsyncSession, slug: str, day: date, manuscript: Manuscript, now: datetime
) -> tuple[Issue, Edition, IssueText]:
    """Keep a text as the issue of an edition and a date.

    Raises NotFound for the edition, Invalid with every faulty line, Conflict when there is a text already.
    """
    edition = await store.edition(session, slug)
    language = manuscript.language or edition.language
    if language not in LANGUAGES:
        sentence = f"A text is in one of these languages: {', '.join(LANGUAGES)}."
        raise Invalid(sentence, [_at("language", sentence)])
    parsed = await asyncio.to_thread(_parsed, manuscript.source, manuscript.format)
    text = IssueText(
        issue_id=0,
        language=language,
        format=manuscript.format,
        source=_decoded(manuscript.source),
        subject=_subject(manuscript.subject, parsed),
    )
    await store.hold(session, edition)
    issue = await store.numbered(session, edition.id or 0, day)
    if issue is not None:
        await store.hold(session, issue)
    else:
        issue = Issue(edition_id=edition.id or 0, date=day, created_at=now)
        session.add(issue)
        await session.flush()
    await store.add_text(session, issue, text)
    return issue, edition, text


def checked_subject(subject: str) -> str:
    """Return a subject fit for a header, or raise Invalid: one line, not empty, not endless."""
    sentence = ""
    if not subject.strip() or len(subject) > SUBJECT_LIMIT:
        sentence = f"A subject has 1 to {SUBJECT_LIMIT} characters."
    elif headers.clean(subject) != subject.strip(" "):
        sentence = "A subject is one line without control characters."
    if sentence:
        raise Invalid(sentence, [_at("subject", sentence)])
    return subject.strip()


def _subject(given: str | None, parsed: document.Document) -> str:
    return checked_subject(document.subject_of(parsed) if given is None else given)


def _at(field: str, sentence: str) -> Fault:
    return Fault(sentence, field=field)


def _decoded(source: str | bytes) -> str:
    return source if isinstance(source, str) else source.decode("utf-8-sig")


async def amend(session: AsyncSession, issue_id: int, change: Change) -> tuple[Issue, Edition, IssueText]:
    """Change a text that is not frozen; a new source without a subject gets the subject it suggests."""
    issue = await store.issue(session, issue_id)
    await store.hold(session, issue)
    store.require_draft(issue)
    text = await store.text(session, issue, change.language)
    if change.source is not None:
        format = change.format or text.format
        parsed = await asyncio.to_thread(_parsed, change.source, format)
        text.source, text.format = _decoded(change.source), format
        text.subject = _subject(change.subject, parsed)
    elif change.subject is not None:
        text.subject = checked_subject(change.subject)
    await session.flush()
    return issue, await store.edition_of(session, issue), text


def as_in_file(text: IssueText, file: Path) -> IssueText:
    """Return what a text would be if the file were handed in for it; raises Invalid with every faulty line."""
    source, format = file.read_bytes(), sources.format_of(file.name)
    parsed = _parsed(source, format)
    return IssueText(
        issue_id=text.issue_id,
        language=text.language,
        format=format,
        source=_decoded(source),
        subject=document.subject_of(parsed),
    )


async def discard(session: AsyncSession, issue_id: int) -> None:
    """Delete a draft; raise Conflict for an issue that has a mailing, be it a cancelled one."""
    issue = await store.issue(session, issue_id)
    await store.hold(session, issue)
    if (sent := await mailings.of_issue(session, issue_id)) is not None:
        raise Conflict(
            f"Issue {issue_id} is in the books: mailing {sent.id} is {sent.state}. Only a draft that was never "
            "to be sent can be deleted; change its text instead."
        )
    await session.delete(issue)


async def owe_tests(
    session: AsyncSession, composer: Composer, issue_id: int, addresses: Sequence[str], now: datetime
) -> None:
    """Owe a test to each address; raises Invalid for a bad one, TooMany past 20 an hour."""
    who = [accepted(address, f"to.{number}") for number, address in enumerate(addresses)]
    if await letters.made_since(session, "test", now - timedelta(hours=1)) + len(who) > TESTS_AN_HOUR:
        raise TooMany(f"There can be {TESTS_AN_HOUR} tests an hour; wait a little.")
    issue = await store.issue(session, issue_id)
    proof = await pull(session, composer, issue, await store.text(session, issue, None))
    for one in who:
        session.add(_letter("test", one.typed, proof, composer, now))


async def copy_for(
    session: AsyncSession, composer: Composer, issue_id: int, address: str, now: datetime
) -> str:
    """Owe one reader a copy of an issue they lost, in their language; return their address as we have it.

    Raises NotFound for somebody who is no reader.
    """
    issue = await store.issue(session, issue_id)
    who = await readers.by_key(session, accepted(address).key)
    if who is None or who.state not in ("active", "paused"):
        raise NotFound("There is no active reader with this address; `test` sends to any address.")
    default = await store.text(session, issue, None)
    text = chosen(await store.texts(session, issue_id), who.language, default)
    proof = await pull(session, composer, issue, text)
    copy = _letter("copy", who.address, proof, composer, now)
    copy.subscriber_id = who.id
    copy.data["edition_id"] = proof.edition.id  # whose links leave that edition, as the lost mail's did
    session.add(copy)
    return who.address


def _letter(kind: str, address: str, proof: Proof, composer: Composer, now: datetime) -> Letter:
    """Return an issue as a letter to one address, outside the books; a test says so in its subject."""
    mark = "[Test] " if kind == "test" else ""
    data = {
        "html": proof.rendition.html,
        "text": proof.rendition.text,
        "subject": mark + proof.rendition.subject,
        "sender": composer.sender(proof.edition),
        "sender_name": proof.edition.sender_name or proof.edition.name,
    }
    return Letter(kind=kind, address=address, language=proof.language, data=data, created_at=now, due_at=now)


def _parsed(source: str | bytes, format: str) -> document.Document:
    """Parse a text; one that holds a slot of ours would pull a reader's links into its body."""
    parsed = sources.parse(source, format)
    for number, line in enumerate(_decoded(source).splitlines(), 1):
        if "__BS_" in line:
            raise Invalid(SLOTS, [Fault(SLOTS, number)])
    # In Markdown the word can come about by escapes.
    for item in parsed.items:
        if "__BS_" in repr(item) + "".join(item.in_plain):
            raise Invalid(SLOTS, [Fault(SLOTS, item.line)])
    if "__BS_" in repr(parsed) + "".join(parsed.lead_in_plain):
        raise Invalid(SLOTS, [Fault(SLOTS, 1)])
    return parsed

"""Queries on editions, issues and texts."""

from collections.abc import Sequence
from datetime import date
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, and_, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased
from sqlmodel import col
from sqlmodel import select as select_model

from app.core.errors import Conflict, Invalid, NotFound
from app.issues.models import Edition, Issue, IssueState, IssueText


async def editions(session: AsyncSession) -> Sequence[Edition]:
    """Return every edition in the order of the form."""
    return (
        await session.scalars(select_model(Edition).order_by(col(Edition.position), col(Edition.id)))
    ).all()


def on_offer(connection: Connection) -> Sequence[Row[Any]]:
    """Return what `editions` does as rows, to a step of `Database.work`."""
    return connection.execute(_on_offer()).all()


@cache
def _on_offer() -> Select[Any]:
    table: Table = Edition.__table__  # type: ignore[attr-defined]
    return select(table).order_by(table.c.position, table.c.id)


async def edition(session: AsyncSession, slug: str) -> Edition:
    """Return an edition, or raise NotFound naming those that there are."""
    for one in (known := await editions(session)):
        if one.slug == slug:
            return one
    raise NotFound(f"There is no edition “{slug}”; there are: {', '.join(one.slug for one in known)}.")


async def chosen(session: AsyncSession, slugs: Sequence[str]) -> list[Edition]:
    """Return the editions of these names, or raise Invalid naming those that there are."""
    return among(await editions(session), slugs)


def among(every: Sequence[Edition], slugs: Sequence[str]) -> list[Edition]:
    """Return those of these names, or raise Invalid naming those that there are."""
    known = {one.slug: one for one in every}
    if unknown := [slug for slug in slugs if slug not in known]:
        raise Invalid(f"There is no edition “{unknown[0]}”; choose from: {', '.join(known)}.")
    return [one for slug, one in known.items() if slug in slugs]


async def issue(session: AsyncSession, issue_id: int) -> Issue:
    """Return an issue, or raise NotFound."""
    found = await session.get(Issue, issue_id)
    if found is None:
        raise NotFound(f"There is no issue {issue_id}; `issues list` shows those that there are.")
    return found


async def hold(session: AsyncSession, row: Issue | Edition) -> None:
    """Let no other transaction change an issue or an edition until ours ends, and see it as it is now."""
    await session.refresh(row, with_for_update={"key_share": True})  # what refers to it may still be added


async def edition_of(session: AsyncSession, one: Issue) -> Edition:
    """Return the edition that an issue is a number of."""
    return (await session.scalars(select_model(Edition).where(Edition.id == one.edition_id))).one()


async def numbered(session: AsyncSession, edition_id: int, day: date) -> Issue | None:
    """Return the issue of an edition and a date, if there is one."""
    which = select_model(Issue).where(Issue.edition_id == edition_id, Issue.date == day)
    return (await session.scalars(which)).first()


async def texts(session: AsyncSession, issue_id: int) -> Sequence[IssueText]:
    """Return an issue's texts, one a language."""
    which = select_model(IssueText).where(IssueText.issue_id == issue_id).order_by(IssueText.language)
    return (await session.scalars(which)).all()


async def text(session: AsyncSession, one: Issue, language: str | None) -> IssueText:
    """Return an issue's text in a language, else in its edition's, else its only one; raise NotFound."""
    found = {each.language: each for each in await texts(session, one.id or 0)}
    if language is not None and language not in found:
        raise NotFound(f"Issue {one.id} has no text in “{language}”; it has: {', '.join(found) or 'none'}.")
    preferred = language or (await edition_of(session, one)).language
    if not found:
        raise NotFound(f"Issue {one.id} has no text yet.")
    return found.get(preferred) or next(iter(found.values()))


def is_shown() -> ColumnElement[bool]:
    """Return what joins to Issue and Edition the one text that pages show, which is `text`'s choice too."""
    other = aliased(IssueText)
    first = select(func.min(other.language)).where(col(other.issue_id) == Issue.id).correlate(Issue, Edition)
    own = first.where(col(other.language) == Edition.language)
    shown = func.coalesce(own.scalar_subquery(), first.scalar_subquery())
    return and_(col(IssueText.issue_id) == Issue.id, col(IssueText.language) == shown)


async def add_text(session: AsyncSession, one: Issue, given: IssueText) -> None:
    """Add a text to an issue; raise Conflict when it has one in that language, or is frozen."""
    require_draft(one)
    given.issue_id = one.id or 0
    if await session.get(IssueText, (one.id, given.language)) is not None:
        raise Conflict(
            f"There is already a “{given.language}” text for this edition and date: issue {one.id}. "
            "Change that one, or delete it first."
        )
    session.add(given)
    await session.flush()


def require_draft(one: Issue) -> None:
    """Raise Conflict when an issue's content is frozen."""
    if one.state == IssueState.PUBLISHED:
        raise Conflict(f"Issue {one.id} is published, so its content is frozen.")


async def published(
    session: AsyncSession, edition_id: int | None = None, limit: int = 1000, before: date | None = None
) -> Sequence[tuple[Issue, Edition, str]]:
    """Return published issues with edition and subject, the newest first; only those `before` a date, if given."""
    which = (
        select(Issue, Edition, col(IssueText.subject))
        .join(Edition, col(Edition.id) == Issue.edition_id)
        .join(IssueText, is_shown())
        .where(col(Issue.state) == IssueState.PUBLISHED)
        .order_by(col(Issue.date).desc(), col(Edition.position))
        .limit(limit)
    )
    if edition_id is not None:
        which = which.where(col(Issue.edition_id) == edition_id)
    if before is not None:
        which = which.where(col(Issue.date) < before)
    return (await session.execute(which)).all()


async def days_from(session: AsyncSession, edition_id: int | None, first: date, limit: int) -> Sequence[date]:
    """Return the days from `first` on at which issues were published, one for each, the earliest first."""
    which = select(col(Issue.date)).where(col(Issue.state) == IssueState.PUBLISHED, col(Issue.date) >= first)
    if edition_id is not None:
        which = which.where(col(Issue.edition_id) == edition_id)
    return (await session.execute(which.order_by(col(Issue.date)).limit(limit))).scalars().all()


async def texts_before(
    session: AsyncSession, one: Issue, language: str, limit: int
) -> list[tuple[Issue, IssueText]]:
    """Return the published issues before this one with their texts in a language, the newest first."""
    which = (
        select(Issue, IssueText)
        .join(IssueText, col(IssueText.issue_id) == Issue.id)
        .where(col(Issue.edition_id) == one.edition_id, col(Issue.date) < one.date)
        .where(col(Issue.state) == IssueState.PUBLISHED, col(IssueText.language) == language)
        .order_by(col(Issue.date).desc())
        .limit(limit)
    )
    return [(issue, text) for issue, text in await session.execute(which)]


async def has_published(session: AsyncSession, edition: Edition) -> bool:
    """Tell whether an issue of this edition has been published yet."""
    which = select_model(Issue).where(Issue.edition_id == edition.id, Issue.state == IssueState.PUBLISHED)
    return (await session.scalars(which.limit(1))).first() is not None


def other_labels(edition: Edition, editions: Sequence[Edition]) -> tuple[str, ...]:
    """Return the labels of the other editions in this one's language."""
    return tuple(one.label for one in editions if one.id != edition.id and one.language == edition.language)


async def neighbours(
    session: AsyncSession, one: Issue
) -> tuple[tuple[date, str] | None, tuple[date, str] | None]:
    """Return date and subject of the published issues before and after this one in its edition."""
    near = (
        select(col(Issue.date), col(IssueText.subject))
        .join(Edition, col(Edition.id) == Issue.edition_id)
        .join(IssueText, is_shown())
        .where(col(Issue.edition_id) == one.edition_id, col(Issue.state) == IssueState.PUBLISHED)
        .limit(1)
    )
    past = near.where(col(Issue.date) < one.date).order_by(col(Issue.date).desc())
    future = near.where(col(Issue.date) > one.date).order_by(col(Issue.date))
    before = (await session.execute(past)).first()
    after = (await session.execute(future)).first()
    return before, after

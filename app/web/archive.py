"""Published issues, for everybody: the archive, one issue, its source text; and the stylesheet."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from fastapi import Request
from sqlmodel import select
from starlette.responses import PlainTextResponse, Response

from app.core.errors import NotFound
from app.edge import InHouse, Reading
from app.flows import references
from app.issues import blocks, sources, store
from app.issues.blocks import Image
from app.issues.document import Document
from app.issues.models import Edition, Issue, IssueState
from app.web.pages import ISSUE_STYLE, READERS_STYLE, STYLES, Pages, headers, page_router, pages, stylesheet

router = page_router()

FOREVER = {"Cache-Control": "public, max-age=31536000, immutable"}
PAGE = 200  # issues on one page of the archive, save that a day is never parted


@router.get("/style.css")
async def style(session: Reading, at: InHouse) -> Response:
    """Return the stylesheet; its address changes with its content."""
    css = stylesheet(at.settings.templates, *STYLES, editions=await store.editions(session))
    return Response(css, media_type="text/css", headers=headers(at.settings.base_url, False) | FOREVER)


@router.get("/readers.css")
async def readers_style(at: InHouse) -> Response:
    """Return what the pages behind a reader's links need beside the stylesheet."""
    css = stylesheet(at.settings.templates, READERS_STYLE)
    return Response(css, media_type="text/css", headers=headers(at.settings.base_url, False) | FOREVER)


@router.get("/issue.css")
async def issue_style(at: InHouse) -> Response:
    """Return what the page of an issue needs beside the stylesheet."""
    css = stylesheet(at.settings.templates, ISSUE_STYLE)
    return Response(css, media_type="text/css", headers=headers(at.settings.base_url, False) | FOREVER)


@router.get("/archive")
async def everything(request: Request, session: Reading, at: InHouse, before: str = "") -> Response:
    """List the issues of every edition, a page of the newest or of those before a date."""
    return await _list(session, await pages(session, at, request), None, _date(before) if before else None)


@router.get("/archive/{slug}")
async def of_edition(
    request: Request, session: Reading, at: InHouse, slug: str, before: str = ""
) -> Response:
    """List the issues of one edition, a page of the newest or of those before a date."""
    edition = await store.edition(session, slug)
    return await _list(session, await pages(session, at, request), edition, _date(before) if before else None)


@router.get("/archive/{slug}/{day}")
async def one_issue(request: Request, session: Reading, at: InHouse, slug: str, day: str) -> Response:
    """Show an issue."""
    edition, issue = await _published(session, slug, day)
    text = await store.text(session, issue, None)
    shown = await pages(session, at, request)
    past, future = await store.neighbours(session, issue)
    base = f"{at.settings.base_url}/archive/{slug}"
    document = sources.parse(text.source, text.format)
    context = {
        "document": document,
        "references": await _references(session, shown, document),
        "edition": _as_shown(shown, edition),
        "issue_date": issue.date,
        "subject": text.subject,
        "previous": (past[1], f"{base}/{past[0]}{shown.keep}") if past else None,
        "next": (future[1], f"{base}/{future[0]}{shown.keep}") if future else None,
        "source_url": f"{at.settings.base_url}/source/{slug}/{issue.date}.txt",
        "text_language": text.language,
        "accent": edition.accent,
        "accent_dark": edition.accent_dark,
    }
    answer = shown.respond("issue.html", context)
    if any(isinstance(part, Image) for item in document.items for part in blocks.parts_of(item.blocks)):
        answer.headers["Content-Security-Policy"] += "; img-src https:"
    return answer


@router.get("/source/{slug}/{day}.txt")
async def source(session: Reading, at: InHouse, slug: str, day: str) -> Response:
    """Return an issue's text as it was handed in."""
    _, issue = await _published(session, slug, day)
    text = await store.text(session, issue, None)
    return PlainTextResponse(text.source, headers=headers(at.settings.base_url, False))


async def _published(session: Reading, slug: str, day: str) -> tuple[Edition, Issue]:
    edition = await store.edition(session, slug)
    which = select(Issue).where(Issue.edition_id == edition.id, Issue.date == _date(day))
    issue = (await session.scalars(which.where(Issue.state == IssueState.PUBLISHED))).first()
    if issue is None:
        raise NotFound("There is no such issue.")
    return edition, issue


async def _references(session: Reading, shown: Pages, document: Document) -> dict[str, str]:
    """Return the issues that a text names, as it names them, each with its page; what is no page is left out."""
    base, pages = shown.house.settings.base_url, await references.pages_of(session, document)
    return {f"{named.date} {named.word}": f"{base}{path}{shown.keep}" for named, path in pages.items()}


def _date(written: str) -> date:
    """Return the day of an address, written in the one way that our links have it; raise NotFound."""
    try:
        day = date.fromisoformat(written)
    except ValueError:
        day = None
    if day is None or day.isoformat() != written:
        raise NotFound("There is no such issue.")
    return day


async def _list(session: Reading, shown: Pages, edition: Edition | None, before: date | None) -> Response:
    which, base = edition.id if edition else None, shown.house.settings.base_url
    found = await store.published(session, which, PAGE + 1, before)
    kept, older = _whole_days(found)
    newer = await store.days_from(session, which, before, PAGE + 1) if before else []
    rows = [
        {
            "date": issue.date,
            "edition": _as_shown(shown, of),
            "title": subject,
            "url": f"{base}/archive/{of.slug}/{issue.date}{shown.keep}",
        }
        for issue, of, subject in kept
    ]
    here = f"{base}/archive/{edition.slug}" if edition else f"{base}/archive"
    context: dict[str, Any] = {
        "edition": _as_shown(shown, edition) if edition else None,
        "issues": rows,
        "older_url": _page(shown, here, older) if older else None,
        "newer_url": _page(shown, here, newer[PAGE] if len(newer) > PAGE else None) if before else None,
    }
    return shown.respond("archive.html", context)


def _whole_days(found: Sequence[Any]) -> tuple[Sequence[Any], date | None]:
    """Return the rows of a page, none of whose days goes on on the next, and before which day that begins."""
    if len(found) <= PAGE:
        return found, None
    last = found[PAGE][0].date
    return [row for row in found if row[0].date > last], last + timedelta(days=1)


def _page(shown: Pages, here: str, before: date | None) -> str:
    query = [shown.keep.lstrip("?")] * bool(shown.keep) + [f"before={before}"] * bool(before)
    return here + ("?" + "&".join(query) if query else "")


def _as_shown(shown: Pages, edition: Edition) -> dict[str, Any]:
    return next(one for one in shown.editions if one["id"] == edition.id)

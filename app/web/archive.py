"""Published issues, for everybody: the archive, one issue, its source text; and the stylesheet."""

from datetime import date
from typing import Any

from fastapi import Request
from sqlmodel import select
from starlette.responses import PlainTextResponse, Response

from app.core.errors import NotFound
from app.edge import House, InHouse, Reading
from app.issues import sources, store
from app.issues.document import Document
from app.issues.models import Edition, Issue, IssueState
from app.web.pages import Pages, headers, page_router, pages, stylesheet

router = page_router()


@router.get("/style.css")
async def style(session: Reading, at: InHouse) -> Response:
    """Return the stylesheet; its address changes with its content."""
    css = stylesheet(await store.editions(session), at.settings.templates)
    forever = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(css, media_type="text/css", headers=headers(at.settings.base_url, False) | forever)


@router.get("/archive")
async def everything(request: Request, session: Reading, at: InHouse) -> Response:
    """List the issues of every edition."""
    return await _list(session, at, await pages(session, at, request), None)


@router.get("/archive/{slug}")
async def of_edition(request: Request, session: Reading, at: InHouse, slug: str) -> Response:
    """List the issues of one edition."""
    edition = await store.edition(session, slug)
    return await _list(session, at, await pages(session, at, request), edition)


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
    return shown.respond("issue.html", context)


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


async def _references(session: Reading, shown: Pages, document: Document) -> list[tuple[str, str]]:
    """Return the issues that a text names, as it names them, each with its page; what is no page is left out."""
    known = {name: one for one in shown.editions for name in (one["slug"], one["label"].casefold())}
    found = []
    for named in document.cross_references:
        edition = known.get(named.word.casefold())
        issue = await store.numbered(session, edition["id"], named.date) if edition else None
        if edition and issue and issue.state == IssueState.PUBLISHED:
            url = f"{shown.house.settings.base_url}/archive/{edition['slug']}/{named.date}{shown.keep}"
            found += [(f"{named.date}{gap}{named.word}", url) for gap in (" ", "")]
    return found


def _date(written: str) -> date:
    """Return the day of an address, written in the one way that our links have it; raise NotFound."""
    try:
        day = date.fromisoformat(written)
    except ValueError:
        day = None
    if day is None or day.isoformat() != written:
        raise NotFound("There is no such issue.")
    return day


async def _list(session: Reading, at: House, shown: Pages, edition: Edition | None) -> Response:
    rows = [
        {
            "date": issue.date,
            "edition": _as_shown(shown, of),
            "title": subject,
            "url": f"{at.settings.base_url}/archive/{of.slug}/{issue.date}{shown.keep}",
        }
        for issue, of, subject in await store.published(session, edition.id if edition else None)
    ]
    context: dict[str, Any] = {"edition": _as_shown(shown, edition) if edition else None, "issues": rows}
    return shown.respond("archive.html", context)


def _as_shown(shown: Pages, edition: Edition) -> dict[str, Any]:
    return next(one for one in shown.editions if one["id"] == edition.id)

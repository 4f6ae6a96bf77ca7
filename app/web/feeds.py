"""The feeds of an edition: its newest published issues, whole, as Atom (RFC 4287) and as JSON Feed 1.1."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree as ET

from fastapi import Request
from sqlalchemy import select
from sqlmodel import col
from starlette.responses import Response

from app.core import i18n
from app.edge import House, InHouse, Reading
from app.issues import sources, store
from app.issues.models import Edition, Issue, IssueState, IssueText
from app.web.pages import environments, headers, page_router

router = page_router()

NEWEST = 30
ATOM = "http://www.w3.org/2005/Atom"
JSON_FEED = "https://jsonfeed.org/version/1.1"
NEVER = datetime(1970, 1, 1, tzinfo=UTC)  # when a feed without an issue last changed

ET.register_namespace("", ATOM)


@dataclass(frozen=True, slots=True)
class Entry:
    """One issue as a feed has it; content is frozen once published, so it is never updated later."""

    id: str
    url: str
    title: str
    published: str
    summary: str
    html: str
    language: str


@router.get("/feeds/{slug}.atom")
async def atom(request: Request, session: Reading, at: InHouse, slug: str) -> Response:
    """Return an edition's newest issues as an Atom feed."""
    edition = await store.edition(session, slug)
    feed = _atom(at, edition, await _entries(session, at, edition))
    return _answer(request, at, ET.tostring(feed, "utf-8", xml_declaration=True), "application/atom+xml")


@router.get("/feeds/{slug}.json")
async def json_feed(request: Request, session: Reading, at: InHouse, slug: str) -> Response:
    """Return an edition's newest issues as a JSON Feed."""
    edition = await store.edition(session, slug)
    feed = _json(at, edition, await _entries(session, at, edition))
    return _answer(request, at, json.dumps(feed, ensure_ascii=False).encode(), "application/feed+json")


def _answer(request: Request, at: House, body: bytes, media_type: str) -> Response:
    """Return the feed, or 304 to a reader that has this very one (RFC 9110 §13.1.2)."""
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    found = headers(at.settings.base_url, False) | {"ETag": tag}
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    if tag in known:
        return Response(status_code=304, headers=found)
    return Response(body, media_type=f"{media_type}; charset=utf-8", headers=found)


async def _entries(session: Reading, at: House, edition: Edition) -> list[Entry]:
    which = (
        select(Issue, IssueText)
        .join(Edition, col(Edition.id) == Issue.edition_id)
        .join(IssueText, store.is_shown())
        .where(col(Issue.edition_id) == edition.id, col(Issue.state) == IssueState.PUBLISHED)
        .order_by(col(Issue.date).desc())
        .limit(NEWEST)
    )
    return [_entry(at, edition, issue, text) for issue, text in await session.execute(which)]


def _entry(at: House, edition: Edition, issue: Issue, text: IssueText) -> Entry:
    document = sources.parse(text.source, text.format)
    made = environments(at.settings.templates)[text.language]
    return Entry(
        # A tag (RFC 4151): the edition's lasting name outlives the address of the pages.
        id=f"tag:{at.composer.list_id(edition)},{issue.date}:issue",
        url=f"{at.settings.base_url}/archive/{edition.slug}/{issue.date}",
        title=text.subject,
        published=_written(issue.published_at or NEVER),
        summary=document.summary,
        html=made.get_template("feed_issue.html").render(document=document),
        language=i18n.catalogue(text.language).tag,
    )


def _atom(at: House, edition: Edition, entries: Sequence[Entry]) -> ET.Element:
    base, language = at.settings.base_url, i18n.catalogue(edition.language).tag
    feed = ET.Element(f"{{{ATOM}}}feed", {"xml:lang": language})
    _add(feed, "id", f"tag:{at.composer.list_id(edition)},2026:feed")
    _add(feed, "title", edition.name)
    if edition.description:
        _add(feed, "subtitle", edition.description)
    _add(feed, "updated", max((entry.published for entry in entries), default=_written(NEVER)))
    _add(feed, "link", rel="self", type="application/atom+xml", href=f"{base}/feeds/{edition.slug}.atom")
    _add(feed, "link", rel="alternate", type="text/html", href=f"{base}/archive/{edition.slug}")
    _add(_add(feed, "author"), "name", edition.sender_name or edition.name)
    for entry in entries:
        one = _add(feed, "entry")
        _add(one, "id", entry.id)
        _add(one, "title", entry.title)
        _add(one, "link", rel="alternate", type="text/html", href=entry.url)
        _add(one, "published", entry.published)
        _add(one, "updated", entry.published)
        _add(one, "summary", entry.summary)
        _add(one, "content", entry.html, type="html")
    return feed


def _add(parent: ET.Element, name: str, words: str | None = None, **attributes: str) -> ET.Element:
    child = ET.SubElement(parent, f"{{{ATOM}}}{name}", attributes)
    child.text = words
    return child


def _json(at: House, edition: Edition, entries: Sequence[Entry]) -> dict[str, Any]:
    base = at.settings.base_url
    return {
        "version": JSON_FEED,
        "title": edition.name,
        "description": edition.description,
        "home_page_url": f"{base}/archive/{edition.slug}",
        "feed_url": f"{base}/feeds/{edition.slug}.json",
        "language": i18n.catalogue(edition.language).tag,
        "authors": [{"name": edition.sender_name or edition.name}],
        "items": [
            {
                "id": entry.id,
                "url": entry.url,
                "title": entry.title,
                "summary": entry.summary,
                "content_html": entry.html,
                "date_published": entry.published,
                "language": entry.language,
            }
            for entry in entries
        ],
    }


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

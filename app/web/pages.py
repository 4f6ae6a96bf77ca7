"""Page templates, the language of a page, and the headers that every page carries."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader
from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.responses import HTMLResponse, RedirectResponse, Response

from app.core import i18n, templates
from app.core.errors import BroadsheetError
from app.edge import House, new_error_id
from app.issues import cadence, store
from app.issues.models import Edition
from app.mail import typeset

STYLES = ("style.css", "editions.css")
READERS_STYLE = "readers.css"
ISSUE_STYLE = "issue.css"
_NEEDLESS = re.compile(r"/\*.*?\*/|\n", re.DOTALL)
Shown = Edition | Row[Any]  # what a page is told of
DEFAULT_ACCENTS = ("#b4371e", "#f08a6e")


class Page(APIRoute):
    """A route whose GET answers HEAD as well (RFC 9110 §9.3.2), which FastAPI's own does not."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        super().__init__(path, endpoint, **settings)
        if self.methods and "GET" in self.methods:
            self.methods.add("HEAD")


def page_router(prefix: str = "") -> APIRouter:
    """Return a router for pages."""
    return APIRouter(prefix=prefix, route_class=Page)


@cache
def environments(overlay: Path | None) -> dict[str, Environment]:
    """Return what renders pages in each language; files of the folder `overlay`/web go before ours."""
    loader = FileSystemLoader(templates.folders("web", overlay))
    return {
        language: templates.environment(loader, speaking, typeset.filters(speaking))
        for language in i18n.LANGUAGES
        if (speaking := i18n.catalogue(language))
    }


def language_of(request: Request, preferred: str | None = None) -> str:
    """Return the language of a page: the one asked for in its address, the reader's own, or the browser's."""
    asked = request.query_params.get("language", "")
    if asked in i18n.LANGUAGES:
        return asked
    if preferred in i18n.LANGUAGES:
        return preferred
    return i18n.negotiate(request.headers.get("accept-language"))


def stylesheet(overlay: Path | None, *names: str, editions: Sequence[Shown] = ()) -> str:
    """Return the named stylesheets as one, without comments and line breaks."""
    return _stylesheet(overlay, names, tuple((one.slug, one.accent, one.accent_dark) for one in editions))


@lru_cache(maxsize=16)
def _stylesheet(
    overlay: Path | None, names: tuple[str, ...], accents: tuple[tuple[str, str, str], ...]
) -> str:
    editions = [{"slug": slug, "accent": accent, "accent_dark": dark} for slug, accent, dark in accents]
    made = environments(overlay)[i18n.LANGUAGES[0]]
    return _NEEDLESS.sub("", "".join(made.get_template(name).render(editions=editions) for name in names))


class Pages:
    """Renders one request's page: what is common to all pages is looked up here, once."""

    def __init__(
        self, house: House, request: Request, editions: Sequence[Shown], language: str, today: date
    ) -> None:
        self.house, self.request, self.language = house, request, language
        # Not from request.url, which the Host header has a hand in.
        self.here = quote(request.scope["path"])
        self.editions = [_shown(edition, today) for edition in editions]
        css = stylesheet(house.settings.templates, *STYLES, READERS_STYLE, ISSUE_STYLE, editions=editions)
        self.version = hashlib.sha256(css.encode()).hexdigest()[:12]

    @property
    def base(self) -> str:
        """Return what every link of ours begins with."""
        return self.house.settings.base_url

    @property
    def keep(self) -> str:
        """Return the query that keeps a language chosen in the address through links, since no cookie does."""
        asked = self.request.query_params.get("language", "")
        return f"?language={asked}" if asked in i18n.LANGUAGES else ""

    def say(self, key: str, **values: object) -> str:
        """Return a message in the page's language."""
        return i18n.catalogue(self.language).say(key, **values)

    def respond(
        self, template: str, context: Mapping[str, Any], status: int = 200, private: bool = False
    ) -> HTMLResponse:
        """Return a page; a `private` one is for a token's holder: not kept, not indexed, no referrer."""
        told = {**self._common(private), **context}
        made = environments(self.house.settings.templates)[self.language]
        return self._answer(made.get_template(template).render(told), status, private)

    def _answer(self, html: str, status: int, private: bool) -> HTMLResponse:
        return HTMLResponse(html, status, headers=headers(self.base, private))

    def _common(self, private: bool) -> dict[str, Any]:
        """Return what every page is told."""
        first = self.editions[0] if self.editions else None
        base = self.base
        return {
            "language": self.language,
            "keep": self.keep,
            "publication": self.house.settings.name,
            "base_url": base,
            "style_url": f"{base}/style.css?v={self.version}",
            "readers_style_url": f"{base}/readers.css?v={self.version}",
            "issue_style_url": f"{base}/issue.css?v={self.version}",
            "this_url": self.here,
            "editions": self.editions,
            "contact": self.house.settings.contact,
            "noindex": private,
            "accent": first["accent"] if first else DEFAULT_ACCENTS[0],
            "accent_dark": first["accent_dark"] if first else DEFAULT_ACCENTS[1],
        }

    def link(self, path: str) -> str:
        """Return the address of a page of ours, in the language of this one."""
        return f"{self.base}{path}{self.keep}"

    def go(self, path: str, query: str = "") -> Response:
        """Send the browser on to a page of ours (303), with a query of its own before the language."""
        return self.go_plainly(path + query + (self.keep.replace("?", "&") if query else self.keep))

    def go_plainly(self, path: str) -> Response:
        """Send the browser on to a page of ours in the reader's own language."""
        return RedirectResponse(f"{self.base}{path}", 303, headers=headers(self.base, private=True))

    def day(self, moment: date) -> str:
        """Return a day in words."""
        return i18n.format_date(moment, self.language)

    def note(
        self,
        key: str,
        status: int = 200,
        links: Sequence[tuple[str, str]] = (),
        buttons: Sequence[tuple[str, str]] = (),
        **values: object,
    ) -> HTMLResponse:
        """Return a page that says one thing: the catalogue's `web.note.<key>.heading` and `.text`.

        `links` and `buttons` are words and where they lead; a button posts.
        """
        context = {
            "heading": self.say(f"web.note.{key}.heading", **values),
            "paragraphs": [self.say(f"web.note.{key}.text", **values)],
            "links": list(links),
            "buttons": list(buttons),
        }
        told = json.dumps({**self._common(private=True), **context}, default=str)
        return self._answer(_note(self.house.settings.templates, self.language, told), status, private=True)


@lru_cache(maxsize=64)
def _note(overlay: Path | None, language: str, told: str) -> str:
    """Return a note's page, made once for all who are told the same; `told` is its context as JSON."""
    return environments(overlay)[language].get_template("note.html").render(json.loads(told))


@cache
def headers(base_url: str, private: bool) -> dict[str, str]:
    """Return the headers of every page."""
    found = {
        "Content-Security-Policy": policy(base_url),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer" if private else "strict-origin-when-cross-origin",
        "Cache-Control": "no-store" if private else "no-cache",
        "Vary": "Accept-Language",
    }
    if base_url.startswith("https://"):
        found["Strict-Transport-Security"] = "max-age=31536000"
    return found


def framed(response: Response, base_url: str) -> Response:
    """Let any site show this page in a frame; it is the form, which needs no rights and shows nobody's."""
    response.headers["Content-Security-Policy"] = policy(base_url, framed_by="*")
    del response.headers["X-Frame-Options"]
    return response


def policy(base_url: str, framed_by: str = "'none'") -> str:
    """Return what a page may load: our stylesheet and forms, by whichever name of this host it was opened."""
    parts = urlsplit(base_url)
    ours = f"'self' {parts.scheme}://{parts.netloc}"
    return (
        f"default-src 'none'; style-src {ours}; form-action {ours}; frame-src 'self'; "
        f"base-uri 'none'; frame-ancestors {framed_by}"
    )


async def pages(session: AsyncSession, house: House, request: Request, preferred: str | None = None) -> Pages:
    """Return what renders a page for this request, in the reader's `preferred` language if they have one."""
    editions = await store.editions(session)
    return Pages(house, request, editions, language_of(request, preferred), house.now().date())


def failed(house: House, request: Request, error: Exception, status: int = 500) -> Response:
    """Return the page for an error; a bug is logged and shown by its id."""
    shown = Pages(house, request, (), language_of(request), house.now().date())
    if isinstance(error, BroadsheetError):
        status = error.status
    if status >= 500 and not isinstance(error, BroadsheetError):
        return shown.note("error", 500, id=new_error_id(error))
    known = {
        404: "missing",
        405: "missing",
        409: "stale",
        410: "stale",
        413: "large",
        429: "often",
        503: "away",
    }
    return shown.note(known.get(status, "wrong"), status)


def _shown(edition: Shown, today: date) -> dict[str, Any]:
    seen = ("id", "slug", "name", "label", "description", "language", "accent", "accent_dark", "timezone")
    shown = {part: getattr(edition, part) for part in seen}
    return shown | {
        "next_date": cadence.next_date(edition.cadence, today),
        "comes_on_both": cadence.comes_on_both(edition.cadence),
    }

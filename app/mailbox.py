"""The embedded mailbox for a first run: an SMTP server on loopback, and a page that shows what it took."""

import asyncio
import re
import warnings
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from functools import cached_property
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session
from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

from app.core.clock import clock
from app.core.config import Settings, is_loopback
from app.core.errors import NotFound
from app.edge import InHouse, Reading, house
from app.web.pages import headers, page_router, pages, stylesheet

KEPT = 500
HOST = "127.0.0.1"
LOCAL_HOST = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE)
LARGEST = 32 * 1024 * 1024
FRAME_CSP = (
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox allow-popups "
    "allow-popups-to-escape-sandbox"  # or the button of a page that opens would do nothing
)


@dataclass(frozen=True)
class Mail:
    """A mail as it came in, read only when somebody looks at it."""

    number: int
    to: str
    at: datetime
    raw: bytes

    @cached_property
    def parsed(self) -> EmailMessage:
        """The mail as Python's parser reads it."""
        return message_from_bytes(self.raw, policy=policy.default)

    @property
    def from_(self) -> str:
        """The From header."""
        return str(self.parsed["From"] or "")

    @property
    def subject(self) -> str:
        """The Subject header."""
        return str(self.parsed["Subject"] or "")

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers in their order."""
        return [(name, str(value)) for name, value in self.parsed.items()]

    @property
    def source(self) -> str:
        """The mail as it went over the wire."""
        return self.raw.decode("ascii", "replace")

    def part(self, kind: str) -> str:
        """Return the `plain` or `html` part, or an empty text."""
        found = self.parsed.get_body((kind,))
        try:
            return str(found.get_content()) if found is not None else ""
        except (LookupError, ValueError):  # a charset or an encoding that there is not
            return self.source

    def holds(self, words: str) -> bool:
        """Tell whether address or subject hold these words."""
        return words.casefold() in f"{self.to} {self.subject}".casefold()


class Mailbox:
    """Takes mail on a free port of loopback."""

    def __init__(self) -> None:
        self.mails: deque[Mail] = deque(maxlen=KEPT)
        self._count = 0
        self._server: asyncio.Server | None = None

    async def open(self, port: int = 0) -> int:
        """Listen on a port of loopback, a free one for 0, and return it."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._session, HOST, port)
        taken: int = self._server.sockets[0].getsockname()[1]
        return taken

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    def _session(self) -> SMTP:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # no AUTH and no TLS are meant here
            return SMTP(self, data_size_limit=LARGEST, hostname="mailbox.localhost")

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802, ARG002
        """Keep a mail (the name is aiosmtpd's)."""
        content = envelope.content
        raw = content if isinstance(content, bytes) else (content or "").encode()
        self._count += 1
        self.mails.append(Mail(self._count, ", ".join(envelope.rcpt_tos), clock(), raw))
        return f"250 2.0.0 Ok: queued as {self._count:06X}"


def wanted(settings: Settings) -> bool:
    """Tell whether a relay of the settings is the embedded mailbox."""
    return any(url.scheme == "mailbox" for url in settings.relay_urls)


def port_of(settings: Settings) -> int:
    """Return the port that the settings give the embedded mailbox, 0 for a free one."""
    return next(url.port for url in settings.relay_urls if url.scheme == "mailbox")


def pointed_at(settings: Settings, port: int) -> Settings:
    """Return the settings with the mailbox's port in place of `mailbox:`."""
    urls = [
        url if not url.startswith("mailbox:") else f"smtp+plain://{HOST}:{port}{_options(url)}"
        for url in settings.relays
    ]
    return settings.model_validate(settings.model_dump() | {"relays": tuple(urls)})


def _options(url: str) -> str:
    return "".join(url.partition("?")[1:])


def router(box: Mailbox) -> APIRouter:
    """Return the pages of a mailbox."""
    routes = page_router("/mailbox")

    @routes.get("")
    async def show_all(request: Request, session: Reading, at: InHouse, q: str = "") -> Response:
        await _require_loopback(request)
        shown = await pages(session, at, request)
        mails = [mail for mail in reversed(box.mails) if mail.holds(q)]
        return shown.respond("mailbox.html", {"mails": mails, "q": q}, private=True)

    @routes.get(".css")
    async def style(at: InHouse) -> Response:
        css = stylesheet(at.settings.templates, "mailbox.css")
        return Response(css, media_type="text/css", headers=headers(at.settings.base_url, private=True))

    @routes.get("/{number}")
    async def show_one(
        request: Request, session: Reading, at: InHouse, number: int, part: str = "html"
    ) -> Response:
        await _require_loopback(request)
        shown = await pages(session, at, request)
        return shown.respond("mailbox_mail.html", {"mail": _shown(box, number), "part": part}, private=True)

    @routes.get("/{number}/html")
    async def show_html(request: Request, at: InHouse, number: int) -> Response:
        await _require_loopback(request)
        html = _find(box, number).part("html").replace("<head>", '<head><base target="_blank">', 1)
        found = headers(at.settings.base_url, private=True) | {
            "Content-Security-Policy": FRAME_CSP,
            "X-Frame-Options": "SAMEORIGIN",
        }
        return HTMLResponse(html, headers=found)

    return routes


async def _require_loopback(request: Request) -> None:
    # What a proxy on this machine passes on comes from loopback too, and is not from here.
    is_passed_on = "x-forwarded-for" in request.headers or "forwarded" in request.headers
    is_from_here = request.client is not None and is_loopback(request.client.host) and not is_passed_on
    # Another site whose name has been made to lead here would read the pages in a browser on this machine.
    is_for_here = LOCAL_HOST.fullmatch(request.headers.get("host", "")) is not None
    if not (is_from_here and is_for_here and (await house(request)).settings.on_loopback):
        raise NotFound("The mailbox is shown on this machine only.")


def _find(box: Mailbox, number: int) -> Mail:
    for mail in box.mails:
        if mail.number == number:
            return mail
    raise NotFound("The mailbox does not hold this mail (any more).")


def _shown(box: Mailbox, number: int) -> dict[str, Any]:
    mail = _find(box, number)
    seen = ("number", "to", "from_", "subject", "at", "headers", "source")
    shown: dict[str, Any] = {name: getattr(mail, name) for name in seen}
    return shown | {"text": mail.part("plain"), "html_url": f"/mailbox/{number}/html"}

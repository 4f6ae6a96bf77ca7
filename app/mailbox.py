"""The embedded mailbox for a first run: an SMTP server on loopback, and a page that shows what it took."""

import asyncio
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

from app.core.config import Settings, is_loopback
from app.core.errors import NotFound
from app.edge import InHouse, Reading, clock
from app.web.pages import pages

KEPT = 500
HOST = "127.0.0.1"
LARGEST = 32 * 1024 * 1024
FRAME_CSP = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; sandbox allow-popups"


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
        return str(found.get_content()) if found is not None else ""

    def holds(self, words: str) -> bool:
        """Tell whether address or subject hold these words."""
        return words.casefold() in f"{self.to} {self.subject}".casefold()


class Mailbox:
    """Takes mail on a free port of loopback."""

    def __init__(self) -> None:
        self.mails: deque[Mail] = deque(maxlen=KEPT)
        self._count = 0
        self._server: asyncio.Server | None = None

    async def open(self) -> int:
        """Listen, and return the port."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._session, HOST, 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

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


def pointed_at(settings: Settings, port: int) -> Settings:
    """Return the settings with the mailbox's port in place of `mailbox:`."""
    urls = [
        url if not url.startswith("mailbox:") else f"smtp+plain://{HOST}:{port}" for url in settings.relays
    ]
    return settings.model_validate(settings.model_dump() | {"relays": tuple(urls)})


def router(box: Mailbox) -> APIRouter:
    """Return the pages of a mailbox."""
    routes = APIRouter(prefix="/mailbox")

    @routes.get("")
    async def show_all(request: Request, session: Reading, at: InHouse, q: str = "") -> Response:
        _require_loopback(request)
        shown = await pages(session, at, request)
        mails = [mail for mail in reversed(box.mails) if mail.holds(q)]
        return shown.respond("mailbox.html", {"mails": mails, "q": q}, private=True)

    @routes.get("/{number}")
    async def show_one(
        request: Request, session: Reading, at: InHouse, number: int, part: str = "html"
    ) -> Response:
        _require_loopback(request)
        shown = await pages(session, at, request)
        return shown.respond("mailbox_mail.html", {"mail": _shown(box, number), "part": part}, private=True)

    @routes.get("/{number}/html")
    async def show_html(request: Request, number: int) -> Response:
        _require_loopback(request)
        html = _find(box, number).part("html").replace("<head>", '<head><base target="_blank">', 1)
        return HTMLResponse(html, headers={"Content-Security-Policy": FRAME_CSP, "Cache-Control": "no-store"})

    return routes


def _require_loopback(request: Request) -> None:
    if request.client is None or not is_loopback(request.client.host):
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

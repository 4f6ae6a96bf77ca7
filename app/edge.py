"""What both edges share: a request's session, who is calling, how errors look, how lists page."""

import logging
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Request
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.core.config import Settings
from app.core.db import Database
from app.core.errors import BroadsheetError, Fault, Invalid, TooLarge
from app.core.jobs import Wake
from app.editors import keys
from app.editors.models import ApiKey
from app.flows.compose import Composer

log = logging.getLogger(__name__)

BODY_LIMIT = 1_000_000  # bytes, where a route does not say otherwise


def clock() -> datetime:
    """Return the time now, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class House:
    """What every request needs, made once by the program."""

    settings: Settings
    db: Database
    composer: Composer
    wake: Wake = field(default_factory=Wake)
    now: Callable[[], datetime] = clock


def house(request: Request) -> House:
    """Return the house that the program built."""
    found: House = request.app.state.house
    return found


InHouse = Annotated[House, Depends(house)]


async def reading(at: InHouse) -> AsyncIterator[AsyncSession]:
    """Give a session that cannot change anything."""
    async with at.db.reading() as session:
        yield session


async def writing(at: InHouse) -> AsyncIterator[AsyncSession]:
    """Give a session that is committed before the answer leaves, and wake the worker then."""
    async with at.db.transaction() as session:
        yield session
    at.wake.call()


# The scope is what makes the commit come before the answer; by default it would come after.
Reading = Annotated[AsyncSession, Depends(reading, scope="function")]
Writing = Annotated[AsyncSession, Depends(writing, scope="function")]


async def editor(request: Request, at: InHouse) -> ApiKey:
    """Let in who holds a key of an editor or an admin."""
    return await _holder(request, at, keys.Scope.EDITOR)


async def admin(request: Request, at: InHouse) -> ApiKey:
    """Let in who holds a key of an admin."""
    return await _holder(request, at, keys.Scope.ADMIN)


async def _holder(request: Request, at: House, scope: keys.Scope) -> ApiKey:
    kind, _, presented = request.headers.get("authorization", "").partition(" ")
    async with at.db.reading() as session:
        return await keys.check(session, presented.strip() if kind.lower() == "bearer" else "", scope)


def cursor_after(last: int) -> str:
    """Return the opaque cursor of the page that follows the row `last`."""
    return urlsafe_b64encode(f"after:{last}".encode()).decode().rstrip("=")


def read_cursor(cursor: str | None) -> int:
    """Return the row that a page follows; 0 for the first. Raises Invalid for what is no cursor of ours."""
    if not cursor:
        return 0
    try:
        kind, _, last = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition(":")
        number = int(last)
    except ValueError:
        kind, number = "", 0
    if kind != "after" or not 0 <= number < 1 << 62:
        raise Invalid("This is not a cursor of ours; leave it out to begin at the first page.")
    return number


def problem(error: BroadsheetError) -> dict[str, Any]:
    """Return an error as RFC 9457 has it, with the faults that are worth a line each."""
    return {
        "type": f"https://broadsheet.example/problems/{error.type}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "errors": [_fault(fault) for fault in error.faults],
    }


def _fault(fault: Fault) -> dict[str, Any]:
    return {"line": fault.line, "field": fault.field, "message": fault.message}


def new_error_id(error: Exception) -> str:
    """Log a bug with its trace under a fresh id, and return the id to show."""
    number = secrets.token_hex(4)
    log.error("error %s", number, exc_info=error)
    return number


class BodyLimit:
    """Refuses bodies over a limit before they are read: 413 by Content-Length, or once too much has come."""

    def __init__(self, app: ASGIApp, limit: int = BODY_LIMIT, larger: dict[str, int] | None = None) -> None:
        self.app, self.limit, self.larger = app, limit, larger or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what comes in."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self.larger.get(scope["path"], self.limit)
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if not announced.isdigit() or int(announced) > limit:
            await _refuse(send, limit)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:
                raise TooLarge(f"The body may have {limit:,} bytes.")
            return message

        await self.app(scope, counted, send)


async def _refuse(send: Send, limit: int) -> None:
    sentence = f"The body may have {limit:,} bytes.".encode()
    headers = [(b"content-type", b"text/plain"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": sentence})

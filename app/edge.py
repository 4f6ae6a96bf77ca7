"""What both edges share: a request's session, who is calling, how errors look, how lists page."""

import asyncio
import json
import logging
import secrets
from base64 import b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.core import jobs, schema
from app.core.clock import clock
from app.core.config import Settings
from app.core.db import Database
from app.core.errors import BroadsheetError, Fault, Invalid, Misconfigured, TooLarge, Unavailable
from app.core.jobs import Wake
from app.core.outage import explain
from app.editors import keys
from app.editors.models import ApiKey
from app.feedback.fetching import Documents
from app.flows.compose import Composer

log = logging.getLogger(__name__)

BODY_LIMIT = 1_000_000  # bytes, where a route does not say otherwise
PATIENCE, SLOWEST = 60.0, 100_000  # a body may take so many seconds, and more at so many bytes a second
LARGEST = 2**31 - 1  # what every database takes for an id

Id = Annotated[int, Path(ge=1, le=LARGEST)]


@dataclass(frozen=True, slots=True)
class House:
    """What every request needs, made once by the program."""

    settings: Settings
    db: Database
    composer: Composer
    wake: Wake = field(default_factory=Wake)
    now: Callable[[], datetime] = clock
    documents: Documents = field(default_factory=Documents)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)  # set when answers without end must end


class NotAllowed(BroadsheetError):
    """The address is right and the method is not (RFC 9110 §15.5.6)."""

    status, type, title = 405, "method-not-allowed", "This address does not take this method"


class TooSlow(BroadsheetError):
    """The body did not come to its end (RFC 9110 §15.5.9)."""

    status, type, title = 408, "request-timeout", "The body came too slowly"


@contextmanager
def opening() -> Iterator[None]:
    """Turn what a database says that cannot be opened into Unavailable, or Misconfigured where it is none."""
    try:
        yield
    except OperationalError as error:
        raise Unavailable(explain(error)) from error
    except DatabaseError as error:
        raise Misconfigured("DATABASE_URL names something that is no database of ours.") from error


async def require_current(db: Database) -> None:
    """Raise Misconfigured unless the database has this version's schema, Unavailable when it cannot be opened."""
    with opening():
        await schema.require_current(db)


async def house(request: Request) -> House:
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
        await jobs.ask(session)
    at.wake.call()


# The scope is what makes the commit come before the answer; by default it would come after.
Reading = Annotated[AsyncSession, Depends(reading, scope="function")]
Writing = Annotated[AsyncSession, Depends(writing, scope="function")]


Presented = Annotated[
    HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False, description="bs_…"))
]


async def editor(at: InHouse, presented: Presented) -> ApiKey:
    """Let in who holds a key of an editor or an admin."""
    return await _holder(at, presented, keys.Scope.EDITOR)


async def admin(at: InHouse, presented: Presented) -> ApiKey:
    """Let in who holds a key of an admin."""
    return await _holder(at, presented, keys.Scope.ADMIN)


async def inbound(at: InHouse, presented: Presented) -> ApiKey:
    """Let in who holds a key for returned mail."""
    return await _holder(at, presented, keys.Scope.INBOUND)


async def _holder(at: House, presented: HTTPAuthorizationCredentials | None, scope: keys.Scope) -> ApiKey:
    given = presented.credentials if presented else ""
    key = await at.db.glance(lambda session: keys.check(session, given, scope))
    if keys.is_news(key, at.now()):
        with suppress(Unavailable):  # looking must work on a full disk too
            async with at.db.transaction() as session:
                await keys.used(session, key.id or 0, at.now())
    return key


Editor = Annotated[ApiKey, Depends(editor)]
Admin = Annotated[ApiKey, Depends(admin)]


def cursor_after(last: int) -> str:
    """Return the opaque cursor of the page that follows the row `last`."""
    return urlsafe_b64encode(f"after:{last}".encode()).decode().rstrip("=")


def following(numbers: Sequence[int], limit: int) -> str | None:
    """Return the cursor of the next page, where one row more than `limit` was asked for and has come.

    `numbers` are what the rows are ordered by.
    """
    return cursor_after(numbers[limit - 1]) if len(numbers) > limit else None


def read_cursor(cursor: str | None) -> int:
    """Return the row that a page follows; 0 for the first. Raises Invalid for what is no cursor of ours."""
    if not cursor:
        return 0
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        kind, _, last = b64decode(padded, altchars=b"-_", validate=True).decode("ascii").partition(":")
        number = int(last) if kind == "after" and last.isdecimal() and len(last) <= 10 else -1
    except ValueError:
        number = -1
    if not 0 <= number <= LARGEST:
        sentence = "This is not a cursor of ours; leave it out to begin at the first page."
        raise Invalid(sentence, [Fault(sentence, field="cursor")])
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
    """Refuses a body that is too large before it is read (413), and one that does not come to its end (408)."""

    def __init__(self, app: ASGIApp, limit: int = BODY_LIMIT, larger: dict[str, int] | None = None) -> None:
        self.app, self.limit, self.larger = app, limit, larger or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what comes in; whatever the application says to a body cut off is said over by the refusal."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self.larger.get(scope["path"], self.limit)
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if not announced.isdigit() or len(announced) > 19 or int(announced) > limit:
            await _refuse(scope, send, _too_large(limit))
            return
        intake = _Intake(receive, send, limit)
        with suppress(TooLarge, TooSlow):
            await self.app(scope, intake.receive, intake.send)
        if intake.refusal is not None and not intake.started:
            await _refuse(scope, send, intake.refusal)


class _Intake:
    """One request's body on its way in; after a `refusal` nothing of the application's answer goes out."""

    def __init__(self, receive: Receive, send: Send, limit: int) -> None:
        self._receive, self._send, self._limit = receive, send, limit
        self._deadline = asyncio.get_running_loop().time() + PATIENCE + limit / SLOWEST
        self._seen, self._is_whole = 0, False
        self.started = False
        self.refusal: BroadsheetError | None = None

    async def receive(self) -> Message:
        """Return the next piece, or raise TooLarge or TooSlow."""
        try:
            async with asyncio.timeout_at(None if self._is_whole else self._deadline):
                message = await self._receive()
        except TimeoutError:
            self.refusal = TooSlow("The body did not come to its end in time; send it again.")
            raise self.refusal from None
        self._is_whole = not message.get("more_body", False)
        self._seen += len(message.get("body", b""))
        if self._seen > self._limit:
            self.refusal = _too_large(self._limit)
            raise self.refusal
        return message

    async def send(self, message: Message) -> None:
        """Pass a piece of the answer on."""
        if self.refusal is None or self.started:
            self.started = True
            await self._send(message)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body may have {limit:,} bytes.")


async def _refuse(scope: Scope, send: Send, error: BroadsheetError) -> None:
    kind, body = b"text/plain; charset=utf-8", error.detail.encode()
    if scope["path"].startswith("/api/"):
        kind, body = b"application/problem+json", json.dumps(problem(error)).encode()
    length = str(len(body)).encode()
    headers = [(b"content-type", kind), (b"content-length", length), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

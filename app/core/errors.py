"""Every error a caller may meet, with its HTTP status and a sentence that says what to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with what was handed in; `line` counts from 1, `field` is a path such as `to.0`."""

    message: str
    line: int | None = None
    field: str | None = None


class BroadsheetError(Exception):
    """A caller's mistake or a state that forbids the call; `type` is stable and documented."""

    status: ClassVar[int] = 400
    type: ClassVar[str] = "bad-request"
    title: ClassVar[str] = "The request cannot be understood"

    def __init__(self, detail: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.faults = tuple(faults)


class Unauthorized(BroadsheetError):
    status, type, title = 401, "unauthorized", "A key is needed"


class Forbidden(BroadsheetError):
    status, type, title = 403, "forbidden", "This key may not do that"


class NotFound(BroadsheetError):
    status, type, title = 404, "not-found", "There is nothing here"


class Conflict(BroadsheetError):
    status, type, title = 409, "conflict", "The present state forbids this"


class TooLarge(BroadsheetError):
    status, type, title = 413, "too-large", "The body is too large"


class Unsupported(BroadsheetError):
    status, type, title = 415, "unsupported-media-type", "This kind of body is not read here"


class Invalid(BroadsheetError):
    status, type, title = 422, "invalid", "What was handed in has faults"


class TooMany(BroadsheetError):
    status, type, title = 429, "too-many", "Too many of these for now"


class Unavailable(BroadsheetError):
    status, type, title = 503, "unavailable", "This cannot be done at the moment"


class Misconfigured(BroadsheetError):
    """The settings or the database do not allow a start; shown by commands, never over HTTP."""

    status, type, title = 500, "misconfigured", "The settings need a change"

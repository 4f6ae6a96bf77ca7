"""What a file of readers is made of: a system's names for columns, the plan for a file, a row that can be read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from app.core.errors import Invalid

COLUMNS = (
    "email", "name", "language", "editions", "status", "timezone", "hour", "created_at", "confirmed_at", "source",
)  # fmt: skip
KINDS = ("new", "ended", "updated", "known", "left", "suppressed", "doubled", "invalid")


class Unreadable(Invalid):
    """The file is no table of text: nothing in it can be shown by line."""

    status, type, title = 400, "bad-request", "The file cannot be read"


@dataclass(frozen=True, slots=True)
class Preset:
    """How one system's export looks; header names are in lower case, words apart by one space.

    `signature` must all be there, and one of each set in `one_of`. `columns` maps header names to our fields:
    those of COLUMNS, `first_name`, `last_name`, and the ways to have ended: `left`, `bounced`, `complained`
    (anything but empty, 0, false, no), `subscribed` (0, false, no) and `why_left`. `statuses` maps their words to
    ours. `standing` is what a row is when it says nothing; `is_sure` is False where other systems look the same.
    """

    signature: frozenset[str]
    columns: Mapping[str, str]
    statuses: Mapping[str, str] = field(default_factory=dict)
    one_of: tuple[frozenset[str], ...] = ()
    standing: str = "active"
    is_sure: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A header row that was understood: where each field stands, and what the columns are called there."""

    delimiter: str
    width: int
    places: Mapping[str, int]
    taken: Mapping[str, str]
    ignored: tuple[str, ...]
    preset: str | None
    statuses: Mapping[str, str]
    standing: str
    is_ours: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """How a file is to be taken: `source` is kept as where consent came from, `editions` fill a missing column."""

    source: str
    editions: tuple[str, ...] = ()
    language: str = "zh"
    confirm: bool = False
    update: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that can be read; its address is still unchecked, and None is what the file does not say."""

    line: int
    email: str
    name: str = ""
    language: str | None = None
    editions: tuple[str, ...] | None = None
    status: str = "active"
    reason: str | None = None
    paused_until: datetime | None = None
    timezone: str | None = None
    hour: int | None = None
    created_at: datetime | None = None
    confirmed_at: datetime | None = None
    source: str | None = None

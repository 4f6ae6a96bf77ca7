"""What the calls on readers take and give."""

from datetime import datetime
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from app.api.shapes import Page, Shape, example

READER = {
    "id": 42,
    "email": "lin@example.com",
    "name": "林一",
    "language": "zh",
    "editions": ["daily", "weekly"],
    "status": "active",
    "reason": None,
    "paused_until": None,
    "timezone": "Asia/Shanghai",
    "hour": None,
    "weekdays_only": False,
    "source": "form",
    "created_at": "2026-10-26T00:00:00Z",
    "confirmed_at": "2026-10-26T00:03:12Z",
}
COUNTS = {
    "new": 990, "ended": 4, "updated": 0, "known": 2, "left": 1, "suppressed": 1, "doubled": 1, "invalid": 1,
}  # fmt: skip
JOB = {
    "id": 3,
    "state": "done",
    "name": "subscribers.csv",
    "source": "import:substack",
    "dry_run": False,
    "preset": "substack",
    "columns": {"email": "email", "created_at": "created_at", "left": "email_disabled"},
    "ignored": ["active_subscription", "expiry"],
    "progress": 1.0,
    "counts": COUNTS,
    "problem": None,
    "created_at": "2026-10-26T00:00:00Z",
    "finished_at": "2026-10-26T00:00:01Z",
    "rows": [{"line": 7, "kind": "invalid", "problem": "An address must have an @-sign."}],
    "next": None,
}


class NewSubscriber(Shape):
    """A reader whom an editor adds; with `confirm` they are asked by mail first."""

    model_config = example({"email": "lin@example.com", "editions": ["daily"]}) | ConfigDict(extra="forbid")
    email: str = Field(max_length=320)
    editions: list[str] = Field(min_length=1, max_length=50)
    name: str = Field(default="", max_length=120)
    language: Literal["zh", "en"] = "zh"
    source: str = Field(default="editor", min_length=1, max_length=120)
    confirm: bool = False


class SubscriberChange(Shape):
    """What of a reader to change; what is left out stays. No editions at all is leaving; null takes a wish away."""

    model_config = example({"editions": ["weekly"], "timezone": "Asia/Shanghai"}) | ConfigDict(extra="forbid")
    name: str = Field(default="", max_length=120)
    language: Literal["zh", "en"] = "zh"
    editions: list[str] = Field(default=[], max_length=50)
    timezone: str | None = Field(default=None, max_length=64)
    hour: int | None = Field(default=None, ge=0, le=23)
    weekdays_only: bool = False
    paused_until: AwareDatetime | None = Field(default=None, description="within a year; null ends a pause")


class ImportOrder(Shape):
    """How a file of readers is to be taken."""

    source: str = Field(default="import", min_length=1, max_length=120)
    name: str = Field(default="", max_length=200, description="the file's, to know it again")
    editions: str = Field(default="", max_length=400, description="for rows that name none: daily,weekly")
    language: Literal["zh", "en"] = Field(default="zh", description="for rows that name none")
    dry_run: bool = False
    confirm: bool = False
    update: bool = False


class SubscriberView(BaseModel):
    """A reader, without their tokens."""

    model_config = example(READER)
    id: int
    email: str
    name: str
    language: str
    editions: list[str]
    status: Literal["pending", "active", "paused", "ended"]
    reason: str | None
    paused_until: datetime | None
    timezone: str | None
    hour: int | None
    weekdays_only: bool
    source: str
    created_at: datetime
    confirmed_at: datetime | None


class SubscriberPage(Page[SubscriberView]):
    """A page of readers, and how many there are in each state in all."""

    model_config = example(
        {"items": [READER], "next": None, "counts": {"pending": 2, "active": 997, "paused": 0, "ended": 1}}
    )
    counts: dict[str, int]


class ImportedRow(BaseModel):
    """A row that was not taken."""

    line: int
    kind: Literal["known", "left", "suppressed", "doubled", "invalid"]
    problem: str


class ImportView(BaseModel):
    """A file on its way in: its counts, and a page of the rows that were not taken; `next` is the cursor of more."""

    model_config = example(JOB)
    id: int
    state: Literal["running", "done", "failed"]
    name: str
    source: str
    dry_run: bool
    preset: str | None
    columns: dict[str, str]
    ignored: list[str]
    progress: float
    counts: dict[str, int]
    problem: str | None
    created_at: datetime
    finished_at: datetime | None
    rows: list[ImportedRow]
    next: str | None


def imported(job: dict[str, Any], cursor_after: Any) -> dict[str, Any]:
    """Return a job with an opaque cursor in place of a row's number."""
    return job | {"next": cursor_after(job["next"]) if job["next"] else None}

"""What the calls take and give, as OpenAPI describes it."""

from datetime import date, datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field


class Shape(BaseModel):
    """Refuses fields that nobody reads: a misspelt one must not pass for a default."""

    model_config = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """An error (RFC 9457): a stable type, and a sentence that says what to do."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, Any]] = []


class NewIssue(Shape):
    """A text handed in as JSON."""

    edition: str = Field(max_length=32)
    date: date
    language: str | None = Field(default=None, max_length=8)
    format: str = Field(default="text", max_length=16)
    source: str = Field(max_length=1_000_000)
    subject: str | None = Field(default=None, max_length=2000)


class IssueChange(Shape):
    """What of a draft may change; None leaves it."""

    language: str | None = Field(default=None, max_length=8)
    subject: str | None = Field(default=None, max_length=2000)
    source: str | None = Field(default=None, max_length=1_000_000)


class HandedIn(BaseModel):
    """How a text was understood."""

    id: int
    edition: str
    date: date
    language: str
    subject: str
    outline: list[dict[str, Any]]
    diagnostics: list[dict[str, Any]]


class TextView(BaseModel):
    """An issue's text in one language."""

    language: str
    format: str
    subject: str
    source: str


class IssueView(BaseModel):
    """An issue."""

    id: int
    edition: str
    date: date
    state: Literal["draft", "scheduled", "published"]
    published_at: datetime | None
    mailing_id: int | None
    texts: list[TextView]


class TestOrder(Shape):
    """Whom to send a test to."""

    to: list[str] = Field(min_length=1, max_length=20)


class SendOrder(Shape):
    """When and how a mailing shall go; an `at` without an offset is local time in `tz`."""

    at: datetime | None = None
    tz: str | None = Field(default=None, max_length=64)
    max_lateness: int | None = Field(default=None, ge=60, le=30 * 86_400, description="seconds")
    on_uncertain: Literal["resend", "hold"] = "resend"
    force: bool = False


class MailingView(BaseModel):
    """A mailing, whose audience is the sum of the ten counts that follow it."""

    id: int
    issue_id: int
    edition: str
    state: Literal["scheduled", "preparing", "sending", "paused", "finished", "cancelled"]
    scheduled_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    audience: int
    owed: int
    in_flight: int
    sent: int
    deferred: int
    refused: int
    failed: int
    uncertain: int
    withdrawn: int
    suppressed: int
    expired: int
    rate: float
    eta: int | None
    problem: str | None


class NewSubscriber(Shape):
    """A reader whom an editor adds; with `confirm` they are asked by mail first."""

    email: str = Field(max_length=320)
    editions: list[str] = Field(min_length=1, max_length=50)
    name: str = Field(default="", max_length=120)
    language: Literal["zh", "en"] = "zh"
    source: str = Field(default="editor", max_length=120)
    confirm: bool = False


class ImportOrder(Shape):
    """How a file of readers is to be taken."""

    source: str = Field(default="import", max_length=120)
    editions: str = Field(default="", max_length=400, description="for rows that name none: daily,weekly")
    dry_run: bool = False
    confirm: bool = False
    update: bool = False


class SubscriberView(BaseModel):
    """A reader, without their tokens."""

    id: int
    email: str
    name: str
    language: str
    editions: list[str]
    status: Literal["pending", "active", "paused", "ended"]
    reason: str | None
    source: str
    created_at: datetime
    confirmed_at: datetime | None


class EditionView(BaseModel):
    """An edition."""

    slug: str
    name: str
    label: str
    description: str
    language: str
    accent: str
    accent_dark: str
    cadence: dict[str, Any]
    timezone: str
    max_lateness: int
    time_to_live: int


Row = TypeVar("Row")


class Page(BaseModel, Generic[Row]):
    """A page of a list; `next` is the cursor of the one that follows, or null."""

    items: list[Row]
    next: str | None = None

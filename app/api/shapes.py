"""What the calls take and give, as OpenAPI describes it."""

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

Row = TypeVar("Row")

MAILING = {
    "id": 5,
    "issue_id": 7,
    "edition": "daily",
    "state": "sending",
    "scheduled_at": "2026-10-26T00:00:00Z",
    "started_at": "2026-10-26T00:00:00Z",
    "finished_at": None,
    "audience": 1000,
    "owed": 480,
    "in_flight": 20,
    "sent": 495,
    "deferred": 3,
    "refused": 1,
    "failed": 0,
    "uncertain": 0,
    "withdrawn": 1,
    "suppressed": 0,
    "expired": 0,
    "bounced_hard": 0,
    "bounced_soft": 0,
    "complained": 0,
    "left": 1,
    "rate": 250.0,
    "eta": 2,
    "problem": None,
}
DELIVERY = {
    "address": "lin@example.com",
    "subscriber_id": 42,
    "state": "sent",
    "reason": None,
    "attempts": 1,
    "due_at": "2026-10-26T00:00:01Z",
    "relay": "smtp.example.net:587",
    "relay_id": "4bX2",
    "code": 250,
    "reply": "2.0.0 Ok: queued as 4bX2",
    "done_at": "2026-10-26T00:00:01Z",
}
EDITION = {
    "slug": "monthly",
    "name": "AI 技术月报",
    "label": "月报",
    "description": "一个月的线索",
    "language": "zh",
    "accent": "#2f6b3a",
    "accent_dark": "#8fcf9a",
    "cadence": {"day_of_month": 1},
    "timezone": "Asia/Shanghai",
    "max_lateness": 86400,
    "time_to_live": 259200,
    "footer": "",
    "letters": ["welcome"],
    "sender": None,
    "sender_name": None,
    "list_id": None,
}


def example(value: dict[str, Any], *names: str) -> ConfigDict:
    """Return a configuration that shows an example, or these fields of it."""
    shown = {name: value[name] for name in names} if names else value
    return ConfigDict(json_schema_extra={"example": shown})


class Shape(BaseModel):
    """Refuses fields that nobody reads: a misspelt one must not pass for a default."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*")
    @classmethod
    def _fit_to_be_kept(cls, value: Any) -> Any:
        if holds_what_nobody_keeps(value):
            raise ValueError("holds U+0000 or half of a surrogate pair, which no database keeps")
        return value


def holds_what_nobody_keeps(value: object) -> bool:
    """Tell whether a text, or any text in a list or an object, has characters that PostgreSQL or UTF-8 refuse."""
    if isinstance(value, str):
        return any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in value)
    if isinstance(value, dict):
        return any(holds_what_nobody_keeps(each) for pair in value.items() for each in pair)
    return isinstance(value, list) and any(map(holds_what_nobody_keeps, value))


class ProblemFault(BaseModel):
    """One thing wrong with what was sent."""

    line: int | None = None
    field: str | None = None
    message: str


class Problem(BaseModel):
    """An error (RFC 9457): a stable type, and a sentence that says what to do."""

    model_config = example(
        {
            "type": "https://broadsheet.example/problems/invalid",
            "title": "What was handed in has faults",
            "status": 422,
            "detail": "Line 12 is 131 characters without a final 。",
            "errors": [{"line": 12, "field": None, "message": "131 characters without a final 。"}],
        }
    )
    type: str
    title: str
    status: int
    detail: str
    errors: list[ProblemFault] = []


class AddressOrder(Shape):
    """One address."""

    model_config = example({"address": "lin@example.com"}) | ConfigDict(extra="forbid")
    address: str = Field(max_length=320)


class Queued(BaseModel):
    """To whom letters are on their way."""

    model_config = example({"queued": ["me@example.com"]})
    queued: list[str]


class TimeOrder(Shape):
    """When a scheduled mailing shall go; an `at` without an offset is local time in `tz`."""

    model_config = example({"at": "2026-10-27T08:00:00", "tz": "Asia/Shanghai"}) | ConfigDict(extra="forbid")
    at: datetime
    tz: str | None = Field(default=None, max_length=64)


class SendOrder(Shape):
    """When and how a mailing shall go; an `at` without an offset is local time in `tz`."""

    model_config = example({"at": "2026-10-27T08:00:00", "tz": "Asia/Shanghai"}) | ConfigDict(extra="forbid")
    at: datetime | None = None
    tz: str | None = Field(default=None, max_length=64)
    max_lateness: int | None = Field(default=None, ge=60, le=30 * 86_400, description="seconds")
    on_uncertain: Literal["resend", "hold"] = "resend"
    force: bool = False


class MailingView(BaseModel):
    """A mailing, whose audience is the sum of the ten counts that follow it."""

    model_config = example(MAILING)
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
    bounced_hard: int
    bounced_soft: int
    complained: int
    left: int
    rate: float
    eta: int | None
    problem: str | None


class Difference(BaseModel):
    """A state whose tally and rows did not agree."""

    state: str
    tally: int
    rows: int


class Reconciled(BaseModel):
    """The books after a recount, and each difference that was found and set right."""

    model_config = example({"mailing": MAILING, "differences": []})
    mailing: MailingView
    differences: list[Difference]


class DeliveryView(BaseModel):
    """One mailing owed to one reader; the address is null once they are erased."""

    model_config = example(DELIVERY)
    address: str | None = None
    subscriber_id: int
    state: str
    reason: str | None
    attempts: int
    due_at: datetime
    relay: str | None
    relay_id: str | None
    code: int | None
    reply: str | None
    done_at: datetime | None


class Why(BaseModel):
    """Did they get it, and why (not)."""

    model_config = example(
        {
            "address": "lin@example.com",
            "verdict": "late",
            "sentence": "They chose AI 技术日报 after the audience was frozen; it counts from the next issue.",
            "delivery": None,
        }
    )
    address: str
    verdict: str
    sentence: str
    delivery: DeliveryView | None


class EditionView(BaseModel):
    """An edition."""

    model_config = example(EDITION)
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
    footer: str
    letters: list[str]
    sender: str | None
    sender_name: str | None
    list_id: str | None


class EditionChange(Shape):
    """What of an edition to change; null leaves it."""

    model_config = example(EDITION, "name", "accent", "cadence") | ConfigDict(extra="forbid")
    name: str | None = Field(default=None, max_length=80)
    label: str | None = Field(default=None, max_length=20)
    description: str | None = Field(default=None, max_length=200)
    language: str | None = Field(default=None, max_length=8)
    accent: str | None = Field(default=None, max_length=7)
    accent_dark: str | None = Field(default=None, max_length=7)
    cadence: dict[str, Any] | None = None
    timezone: str | None = Field(default=None, max_length=64)
    max_lateness: int | None = Field(default=None, ge=60, le=30 * 86_400, description="seconds")
    time_to_live: int | None = Field(default=None, ge=60, le=30 * 86_400, description="seconds")
    footer: str | None = Field(default=None, max_length=500, description="lines at the foot of its mails")
    letters: list[str] | None = Field(default=None, description="those that it sends: welcome, goodbye")
    sender: str | None = Field(default=None, max_length=254)
    sender_name: str | None = Field(default=None, max_length=80)
    list_id: str | None = Field(default=None, max_length=120)


class NewEdition(EditionChange):
    """A new edition; what is not given has a default."""

    model_config = example(EDITION, "slug", "name", "label", "language", "cadence") | ConfigDict(
        extra="forbid"
    )
    slug: str = Field(max_length=32)


class Page(BaseModel, Generic[Row]):
    """A page of a list; `next` is the cursor of the one that follows, or null."""

    items: list[Row]
    next: str | None = None

"""What the calls about returned mail take and give, as OpenAPI describes it."""

from datetime import datetime

from pydantic import BaseModel

from app.api.shapes import example

REPORT = {
    "id": 12,
    "origin": "ses",
    "state": "suppressed",
    "kind": "bounce",
    "action": "suppress",
    "meaning": "bad-mailbox",
    "code": 550,
    "status": "5.1.1",
    "text": "550 5.1.1 ‹address›: user unknown",
    "address": None,
    "happened_at": "2026-10-26T00:00:07Z",
    "received_at": "2026-10-26T00:00:09Z",
    "done_at": "2026-10-26T00:00:09Z",
    "issue_id": 7,
    "subscriber_id": 42,
    "letter_id": None,
    "provider": "gmail",
}
COUNTS = {
    "sent": 12000,
    "bounced_hard": 14,
    "bounced_soft": 31,
    "complained": 10,
    "bounce_rate": 0.0012,
    "complaint_rate": 0.0008,
    "level": "near 0.1 %",
}


class Taken(BaseModel):
    """How many reports of a call are new; 0 where all are known or none is worth keeping."""

    model_config = example({"reports": 1})
    reports: int


class Handed(BaseModel):
    """What a returned mail was read as, one word for each recipient it speaks of."""

    model_config = example({"kinds": ["bounce"]})
    kinds: list[str]


class ReportView(BaseModel):
    """A report. `address` shows only while nobody knows whose it was."""

    model_config = example(REPORT)
    id: int
    origin: str
    state: str
    kind: str
    action: str
    meaning: str
    code: int | None
    status: str | None
    text: str
    address: str | None
    happened_at: datetime | None
    received_at: datetime
    done_at: datetime | None
    issue_id: int | None
    subscriber_id: int | None
    letter_id: int | None
    provider: str


class ReportDetail(ReportView):
    """A report with what it came from; `raw` is None once that was forgotten, after 30 days."""

    model_config = example(REPORT | {"raw": "Return-Path: <>\r\n…"})
    raw: str | None


LEFT = {"left": 9, "reasons": {"content": 1, "often": 4}}


class EditionNumbers(BaseModel):
    """What came back of an edition. Rates are of what was sent; `level` is how complaints stand to the limits.

    `reasons` are those that readers gave who left: often (too much), content, asked (never), other.
    """

    model_config = example({"edition": "daily"} | LEFT | COUNTS)
    edition: str
    sent: int
    bounced_hard: int
    bounced_soft: int
    complained: int
    left: int
    reasons: dict[str, int]
    bounce_rate: float
    complaint_rate: float
    level: str


class ProviderNumbers(BaseModel):
    """The same for a mailbox provider, of finished mailings."""

    model_config = example({"provider": "gmail"} | COUNTS)
    provider: str
    sent: int
    bounced_hard: int
    bounced_soft: int
    complained: int
    bounce_rate: float
    complaint_rate: float
    level: str


class StaleView(BaseModel):
    """Authentic calls of a provider that came too late to be believed."""

    model_config = example({"origin": "ses", "calls": 3, "last_at": "2026-10-26T04:00:00Z"})
    origin: str
    calls: int
    last_at: datetime


class Numbers(BaseModel):
    """What came back lately, and what to look at."""

    model_config = example(
        {
            "days": 30,
            "editions": [{"edition": "daily"} | LEFT | COUNTS],
            "providers": [{"provider": "gmail"} | COUNTS],
            "stale": [{"origin": "ses", "calls": 3, "last_at": "2026-10-26T04:00:00Z"}],
            "stray": 2,
            "warnings": ["gmail: 0.08 % of the readers complain, which is near 0.1 %."],
        }
    )
    days: int
    editions: list[EditionNumbers]
    providers: list[ProviderNumbers]
    stale: list[StaleView]
    stray: int
    warnings: list[str]

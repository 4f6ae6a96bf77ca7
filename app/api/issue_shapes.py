"""What the calls on issues take and give."""

from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from app.api.shapes import Shape, example

ISSUE = {
    "id": 7,
    "edition": "daily",
    "date": "2026-10-26",
    "state": "published",
    "published_at": "2026-10-26T00:00:00Z",
    "mailing_id": 5,
    "texts": [
        {"language": "zh", "format": "text", "subject": "缓存：先看瓶颈，再谈提速", "source": "技术日报\n…"}
    ],
}


class NewIssue(Shape):
    """A text handed in as JSON."""

    model_config = example(
        {
            "edition": "daily",
            "date": "2026-10-26",
            "source": "技术日报\n本期重点：缓存为何没有变快。\n缓存：先看瓶颈\n它们的差别在于何时写回。\nhttps://example.org/cache\n",
        }
    ) | ConfigDict(extra="forbid")
    edition: str = Field(max_length=32)
    date: date
    language: str | None = Field(default=None, max_length=8)
    format: str = Field(default="text", max_length=16)
    source: str = Field(max_length=1_000_000)
    subject: str | None = Field(default=None, max_length=2000)


class IssueChange(Shape):
    """What of a draft may change; null leaves it."""

    model_config = example({"subject": "缓存：先看瓶颈"}) | ConfigDict(extra="forbid")
    language: str | None = Field(default=None, max_length=8)
    subject: str | None = Field(default=None, max_length=2000)
    source: str | None = Field(default=None, max_length=1_000_000)
    format: str | None = Field(default=None, max_length=16)


class OutlineItem(BaseModel):
    """An item as it was understood."""

    title: str
    paragraphs: list[str]
    sources: list[str]
    line: int | None


class OutlineSection(BaseModel):
    """A section as it was understood; a weekly has one without a name."""

    section: str | None
    items: list[OutlineItem]


class Diagnostic(BaseModel):
    """Something to look at before sending."""

    level: Literal["error", "warning"]
    line: int | None
    part: str | None
    message: str


class HandedIn(BaseModel):
    """How a text was understood."""

    model_config = example(
        {
            "id": 7,
            "edition": "daily",
            "date": "2026-10-26",
            "language": "zh",
            "subject": "缓存：先看瓶颈，再谈提速",
            "outline": [
                {
                    "section": "重点",
                    "items": [
                        {
                            "title": "缓存：先看瓶颈，再谈提速",
                            "paragraphs": ["它们的差别在于何时写回。"],
                            "sources": ["https://example.org/cache"],
                            "line": 4,
                        }
                    ],
                }
            ],
            "diagnostics": [{"level": "warning", "line": 1, "part": None, "message": "The title says 周报."}],
        }
    )
    id: int
    edition: str
    date: date
    language: str
    subject: str
    outline: list[OutlineSection]
    diagnostics: list[Diagnostic]


class Finding(BaseModel):
    """What was found in one of an issue's texts, in a line of it or in a part of the mail."""

    language: str
    line: int | None
    part: str | None
    message: str


class Findings(BaseModel):
    """What must not go out unless it is forced to, and what is worth a look."""

    model_config = example(
        {
            "errors": [
                {"language": "zh", "line": None, "part": "html", "message": "The HTML has 104,512 bytes; …"}
            ],
            "warnings": [{"language": "zh", "line": 1, "part": None, "message": "The title says 周报, …"}],
        }
    )
    errors: list[Finding]
    warnings: list[Finding]


class TextView(BaseModel):
    """An issue's text in one language."""

    language: str
    format: str
    subject: str
    source: str


class IssueView(BaseModel):
    """An issue."""

    model_config = example(ISSUE)
    id: int
    edition: str
    date: date
    state: Literal["draft", "scheduled", "published"]
    published_at: datetime | None
    mailing_id: int | None
    texts: list[TextView]


class TestOrder(Shape):
    """Whom to send a test to."""

    model_config = example({"to": ["me@example.com"]}) | ConfigDict(extra="forbid")
    to: list[str] = Field(min_length=1, max_length=20)

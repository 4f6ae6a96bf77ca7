"""Tables: editions, their issues, and the text of an issue in each language."""

import datetime as dt
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, CheckConstraint, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

from app.core.db import UTCDateTime

LETTERS = ("welcome", "goodbye")


class IssueState(StrEnum):
    """draft → scheduled → published; a cancelled schedule makes it a draft again."""

    DRAFT = "draft"
    SCHEDULED = "scheduled"
    PUBLISHED = "published"


class Edition(SQLModel, table=True):
    """A series with a cadence; a new one is a row and no code."""

    id: int | None = Field(default=None, primary_key=True)
    slug: str = Field(max_length=32, unique=True)
    name: str = Field(max_length=80)
    label: str = Field(max_length=20)
    description: str = Field(default="", max_length=200)
    language: str = Field(max_length=8)
    list_id: str | None = Field(default=None, max_length=120)  # fixed by the first mailing
    sender: str | None = Field(default=None, max_length=254)
    sender_name: str | None = Field(default=None, max_length=80)
    accent: str = Field(max_length=7)
    accent_dark: str = Field(max_length=7)
    cadence: dict[str, Any] = Field(sa_type=JSON)
    timezone: str = Field(max_length=64)
    max_lateness: int  # seconds
    time_to_live: int  # seconds
    footer: str = Field(default="", max_length=500)  # lines at the foot of its mails
    letters: list[str] = Field(default_factory=list, sa_type=JSON)  # of LETTERS: those that it sends
    position: int = 0


class Issue(SQLModel, table=True):
    """One dated number of an edition."""

    __table_args__ = (
        UniqueConstraint("edition_id", "date"),
        CheckConstraint("state IN ('draft', 'scheduled', 'published')", name="state"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True)
    edition_id: int = Field(foreign_key="edition.id")
    date: dt.date
    state: str = Field(default=IssueState.DRAFT, max_length=10)
    created_at: datetime = Field(sa_type=UTCDateTime)
    published_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


class IssueText(SQLModel, table=True):
    """What an issue says in one language, as it was handed in."""

    __tablename__ = "issue_text"

    issue_id: int = Field(foreign_key="issue.id", primary_key=True, ondelete="CASCADE")
    language: str = Field(max_length=8, primary_key=True)
    format: str = Field(max_length=16)
    source: str = Field(sa_type=Text)
    subject: str = Field(max_length=2000)

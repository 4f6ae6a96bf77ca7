"""Tables: what came in as it was, what each of it says and what became of it, and the numbers beside it."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import CheckConstraint, Index, LargeBinary, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from app.core.db import UTCDateTime


class ReportState(StrEnum):
    """waiting → suppressed, counted, left, noted (read, and nothing follows) or stray (nobody knows whose)."""

    WAITING = "waiting"
    SUPPRESSED = "suppressed"
    COUNTED = "counted"
    LEFT = "left"
    NOTED = "noted"
    STRAY = "stray"


_STATES = ", ".join(f"'{state}'" for state in ReportState)
_WAITING = text("state = 'waiting'")


class Received(SQLModel, table=True):
    """One mail or one verified call as it came; `call_id` is the provider's for it, a mail's is its digest."""

    __table_args__ = (UniqueConstraint("origin", "call_id"), {"sqlite_autoincrement": True})

    id: int | None = Field(default=None, primary_key=True)
    origin: str = Field(max_length=16)
    call_id: str = Field(max_length=200)
    raw: bytes = Field(sa_type=LargeBinary)
    received_at: datetime = Field(sa_type=UTCDateTime, index=True)


class KeptReport(SQLModel, table=True):
    """A report beside its delivery; what names the reader is blank once it is known whose it was."""

    __tablename__ = "report"
    __table_args__ = (
        CheckConstraint(f"state IN ({_STATES})", name="state"),
        UniqueConstraint("origin", "event_id"),
        Index("waiting_report", "id", sqlite_where=_WAITING, postgresql_where=_WAITING),
        Index(None, "issue_id", "subscriber_id"),
        Index(None, "state", "id"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True)
    received_id: int | None = None  # no foreign key: what came in as it was goes first
    origin: str = Field(max_length=16)
    event_id: str = Field(max_length=240)
    state: str = Field(default=ReportState.WAITING, max_length=10)
    kind: str = Field(max_length=12)
    action: str = Field(max_length=8)
    meaning: str = Field(max_length=32)
    code: int | None = None
    status: str | None = Field(default=None, max_length=16)
    text: str = Field(default="", max_length=200)
    address: str | None = Field(default=None, max_length=320)
    token: str | None = Field(default=None, max_length=320)
    message_id: str | None = Field(default=None, max_length=320)
    relay_id: str | None = Field(default=None, max_length=320)
    happened_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    received_at: datetime = Field(sa_type=UTCDateTime, index=True)
    done_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    # Whose it was, once it is known; no foreign keys, since the books outlive readers and letters.
    issue_id: int | None = None
    subscriber_id: int | None = Field(default=None, index=True)
    letter_id: int | None = None
    provider: str = Field(default="", max_length=64)


class StaleCalls(SQLModel, table=True):
    """How many authentic calls of a provider came too late to be believed."""

    __tablename__ = "stale_calls"

    origin: str = Field(max_length=16, primary_key=True)
    calls: int = 0
    last_at: datetime = Field(sa_type=UTCDateTime)


class Reach(SQLModel, table=True):
    """How many mails of a finished mailing a mailbox provider was sent; counted once."""

    mailing_id: int = Field(foreign_key="mailing.id", primary_key=True)
    provider: str = Field(max_length=64, primary_key=True)
    sent: int


class Storm(SQLModel, table=True):
    """A mailing that paused itself, once for each kind: an editor who resumes it has seen why."""

    mailing_id: int = Field(foreign_key="mailing.id", primary_key=True)
    kind: str = Field(max_length=12, primary_key=True)
    at: datetime = Field(sa_type=UTCDateTime)

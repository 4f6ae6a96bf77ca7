"""Tables: who reads, what they chose and asked for, proof of it, whom we must not mail, files on their way in."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, BigInteger, CheckConstraint, Index, LargeBinary, text
from sqlmodel import Field, SQLModel

from app.core.db import UTCDateTime
from app.subscribers.consent import State

_HAS_HOUR = text("hour IS NOT NULL")
_WAITS = text("state = 'waiting'")


class Subscriber(SQLModel, table=True):
    """A person; `address` as they typed it, `address_key` as it is compared, `address_hash` keyed for good.

    `provider` is who runs the mailbox, where its domain alone tells; for others see MailDomain.
    """

    __table_args__ = (
        CheckConstraint("state IN ('pending', 'active', 'paused', 'ended')", name="state"),
        Index(None, "state", "id"),
        Index("hours", "timezone", "hour", sqlite_where=_HAS_HOUR, postgresql_where=_HAS_HOUR),
        {"sqlite_autoincrement": True},  # an id is in links that live for years: never given twice
    )

    id: int | None = Field(default=None, primary_key=True)
    address: str = Field(max_length=254)
    address_key: str = Field(max_length=320, unique=True)
    address_hash: bytes = Field(sa_type=LargeBinary, index=True)
    provider: str = Field(default="", max_length=64)
    name: str = Field(default="", max_length=120)
    language: str = Field(max_length=8)
    timezone: str | None = Field(default=None, max_length=64)
    hour: int | None = None  # the hour of the day at which mail shall come, where they are
    weekdays_only: bool = False
    state: str = Field(default=State.PENDING, max_length=8)
    reason: str | None = Field(default=None, max_length=12)
    paused_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    paused_until: datetime | None = Field(default=None, sa_type=UTCDateTime)
    source: str = Field(default="form", max_length=120)
    created_at: datetime = Field(sa_type=UTCDateTime)
    confirmed_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


class MailDomain(SQLModel, table=True):
    """A domain of readers that tells no provider by its name, and whose its mail exchangers are ("": nobody known)."""

    __tablename__ = "mail_domain"

    domain: str = Field(max_length=255, primary_key=True)
    provider: str = Field(default="", max_length=64)
    looked_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    due_at: datetime = Field(sa_type=UTCDateTime, index=True)  # when to look again


class Subscription(SQLModel, table=True):
    """A subscriber's choice of an edition, counted from `since`: an issue cut off earlier is not theirs."""

    __table_args__ = (Index(None, "edition_id", "subscriber_id"),)

    subscriber_id: int = Field(foreign_key="subscriber.id", primary_key=True, ondelete="CASCADE")
    edition_id: int = Field(foreign_key="edition.id", primary_key=True)
    since: datetime = Field(sa_type=UTCDateTime)


class ConsentEvent(SQLModel, table=True):
    """Proof of what a reader did and when: the wording they saw, its language, and a keyed hash of the network."""

    __tablename__ = "consent_event"
    __table_args__ = (Index(None, "kind", "at"),)

    id: int | None = Field(default=None, primary_key=True)
    subscriber_id: int = Field(index=True)
    kind: str = Field(max_length=16)
    at: datetime = Field(sa_type=UTCDateTime)
    wording: str = Field(max_length=16)
    language: str = Field(max_length=8)
    source: str = Field(max_length=120)
    network: bytes | None = Field(default=None, sa_type=LargeBinary)
    editions: str = Field(default="", max_length=400)
    detail: str = Field(default="", max_length=16)  # why they left, in one of the words that were offered


class AskState(StrEnum):
    """waiting → written (a letter is owed) or silent (none is: a limit, or an address that must not be mailed)."""

    WAITING = "waiting"
    WRITTEN = "written"
    SILENT = "silent"


class Ask(SQLModel, table=True):
    """A request from the form: taken in a moment at the door, answered by the worker, then known by hashes only."""

    __table_args__ = (
        CheckConstraint("state IN ('waiting', 'written', 'silent')", name="state"),
        Index(None, "network", "at"),
        Index(None, "digest", "at"),
        Index("waiting", "id", sqlite_where=_WAITS, postgresql_where=_WAITS),
    )

    id: int | None = Field(default=None, primary_key=True)
    at: datetime = Field(sa_type=UTCDateTime, index=True)
    state: str = Field(default=AskState.WAITING, max_length=8)
    digest: bytes = Field(sa_type=LargeBinary)  # of the address without its tag and, at Gmail, its dots
    network: bytes | None = Field(default=None, sa_type=LargeBinary)
    wish: dict[str, Any] | None = Field(default=None, sa_type=JSON(none_as_null=True))  # until it is answered


class Errand(SQLModel, table=True):
    """What a reader asked for that takes a freshly mailed link; `address` is the new one of a change."""

    __table_args__ = (
        CheckConstraint("kind IN ('address', 'move', 'data', 'erase')", name="kind"),
        {"sqlite_autoincrement": True},  # an id is in a link: never given twice
    )

    id: int | None = Field(default=None, primary_key=True)
    subscriber_id: int = Field(foreign_key="subscriber.id", index=True, ondelete="CASCADE")
    kind: str = Field(max_length=8)
    address: str = Field(default="", max_length=254)
    made_at: datetime = Field(sa_type=UTCDateTime)


class Suppression(SQLModel, table=True):
    """An address that must not be mailed, known by its keyed hash; the address itself only while it is not erased."""

    id: int | None = Field(default=None, primary_key=True)
    address_hash: bytes = Field(sa_type=LargeBinary, unique=True)
    address: str | None = Field(default=None, max_length=254)
    reason: str = Field(max_length=12)
    note: str = Field(default="", max_length=200)
    since: datetime = Field(sa_type=UTCDateTime)


class SuppressionKey(SQLModel, table=True):
    """The fingerprint of the key that all hashes were made with; one row."""

    __tablename__ = "suppression_key"

    id: int = Field(default=1, primary_key=True)
    fingerprint: str = Field(max_length=64)


class ImportState(StrEnum):
    """running → done, or failed; what was taken before a failure stays."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class ImportJob(SQLModel, table=True):
    """A file of readers on its way in; `position` (bytes) and `line` are where the last committed batch ended."""

    __tablename__ = "import_job"
    __table_args__ = (
        CheckConstraint("state IN ('running', 'done', 'failed')", name="state"),
        Index(None, "state", "id"),
        {"sqlite_autoincrement": True},  # an id names a file, too: never given twice
    )

    id: int | None = Field(default=None, primary_key=True)
    state: str = Field(default=ImportState.RUNNING, max_length=8)
    name: str = Field(default="", max_length=200)
    file: str = Field(max_length=80)  # in the folder of imports, in UTF-8; gone once the job is over
    size: int = Field(sa_type=BigInteger)
    position: int = Field(default=0, sa_type=BigInteger)
    line: int = 0
    plan: dict[str, Any] = Field(sa_type=JSON)
    preset: str | None = Field(default=None, max_length=32)
    columns: dict[str, Any] = Field(sa_type=JSON)
    counts: dict[str, Any] = Field(sa_type=JSON)
    problem: str | None = Field(default=None, max_length=300)
    created_at: datetime = Field(sa_type=UTCDateTime)
    touched_at: datetime = Field(sa_type=UTCDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


class ImportFault(SQLModel, table=True):
    """A row that was not taken: its line, what kind of case it is, and why."""

    __tablename__ = "import_fault"
    __table_args__ = (Index(None, "job_id", "id"),)

    id: int | None = Field(default=None, primary_key=True)
    job_id: int = Field(foreign_key="import_job.id", ondelete="CASCADE")
    line: int
    kind: str = Field(max_length=10)
    message: str = Field(max_length=300)


class ImportSeen(SQLModel, table=True):
    """An address that stood in a file, as 8 bytes of its keyed hash; forgotten when the job is over."""

    __tablename__ = "import_seen"
    __table_args__ = ({"sqlite_with_rowid": False},)

    job_id: int = Field(primary_key=True)
    digest: int = Field(sa_type=BigInteger, primary_key=True)

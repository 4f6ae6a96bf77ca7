"""Tables: mailings, what each reader is owed, letters, the running counts, and who is at work."""

from datetime import date, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import JSON, CheckConstraint, ColumnElement, Index, Table, Text, literal_column, text
from sqlmodel import Field, SQLModel

from app.core.db import UTCDateTime


class MailingState(StrEnum):
    """scheduled → preparing → sending → finished; the first three ⇄ paused; any but finished → cancelled."""

    SCHEDULED = "scheduled"
    PREPARING = "preparing"
    SENDING = "sending"
    PAUSED = "paused"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class State(StrEnum):
    """Where one delivery or letter stands; `owed`, `deferred` and `in_flight` are open, the rest are settled."""

    OWED = "owed"
    IN_FLIGHT = "in_flight"
    SENT = "sent"
    DEFERRED = "deferred"
    REFUSED = "refused"
    FAILED = "failed"
    UNCERTAIN = "uncertain"
    WITHDRAWN = "withdrawn"
    SUPPRESSED = "suppressed"
    EXPIRED = "expired"


UNDER_WAY = (MailingState.PREPARING, MailingState.SENDING)  # what may be claimed from
OPEN = (State.OWED, State.DEFERRED, State.IN_FLIGHT)
WAITING = (State.OWED, State.DEFERRED)
_STATES = ", ".join(f"'{state}'" for state in State)
_WAITING = text("state IN ('owed', 'deferred')")
_IN_FLIGHT = text("state = 'in_flight'")


class Mailing(SQLModel, table=True):
    """One issue on its way to many; one for ever for each issue."""

    __table_args__ = (
        CheckConstraint(
            "state IN ('scheduled', 'preparing', 'sending', 'paused', 'finished', 'cancelled')", name="state"
        ),
        CheckConstraint("on_uncertain IN ('resend', 'hold')", name="on_uncertain"),
    )

    id: int | None = Field(default=None, primary_key=True)
    issue_id: int = Field(foreign_key="issue.id", unique=True)
    state: str = Field(max_length=10)
    problem: str | None = Field(default=None, max_length=200)
    scheduled_at: datetime = Field(sa_type=UTCDateTime)
    cutoff: datetime | None = Field(default=None, sa_type=UTCDateTime)
    cursor: int = 0  # the last subscriber enlisted
    enlisted_at: datetime | None = Field(default=None, sa_type=UTCDateTime)  # when the audience was complete
    audience: int = 0
    started_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    finished_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    expires_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    max_lateness: int  # seconds
    time_to_live: int  # seconds, from the start
    wait: int = (
        0  # seconds from the start to the last hour that a reader chose; `expires_at` is later by as much
    )
    on_uncertain: str = Field(default="resend", max_length=6)
    created_at: datetime = Field(sa_type=UTCDateTime)


class Rendition(SQLModel, table=True):
    """An issue's HTML and text in one language, fixed when its mailing starts."""

    mailing_id: int = Field(foreign_key="mailing.id", primary_key=True)
    language: str = Field(max_length=8, primary_key=True)
    subject: str = Field(max_length=2000)
    html: str = Field(sa_type=Text)
    text: str = Field(sa_type=Text)


class Carried(SQLModel):
    """The columns that a delivery and a letter share, moved by the same functions."""

    state: str = Field(default=State.OWED, max_length=10)
    reason: str | None = Field(default=None, max_length=200)
    attempts: int = 0
    due_at: datetime = Field(sa_type=UTCDateTime)
    worker_id: int | None = None
    relay: str | None = Field(default=None, max_length=100)
    relay_id: str | None = Field(default=None, max_length=100)
    code: int | None = None
    reply: str | None = Field(default=None, max_length=200)
    done_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


class Delivery(Carried, table=True):
    """One mailing owed to one subscriber; the key is the rule that nobody gets an issue twice."""

    __table_args__ = (
        CheckConstraint(f"state IN ({_STATES})", name="state"),
        Index("due", "mailing_id", "provider", "due_at", sqlite_where=_WAITING, postgresql_where=_WAITING),
        Index("claimed", "worker_id", sqlite_where=_IN_FLIGHT, postgresql_where=_IN_FLIGHT),
        Index(None, "subscriber_id"),
        Index(None, "relay_id"),
    )

    issue_id: int = Field(primary_key=True)
    subscriber_id: int = Field(primary_key=True)  # no foreign key: the books outlive the reader
    mailing_id: int = Field(foreign_key="mailing.id")
    provider: str = Field(default="", max_length=64)
    slot: datetime | None = Field(
        default=None, sa_type=UTCDateTime
    )  # the reader's own hour, while it is to come


class Letter(Carried, table=True):
    """A message to one reader outside any mailing's books: a confirmation, a notice, a test."""

    __table_args__ = (
        CheckConstraint(f"state IN ({_STATES})", name="state"),
        Index("due_letter", "due_at", sqlite_where=_WAITING, postgresql_where=_WAITING),
        Index("claimed_letter", "worker_id", sqlite_where=_IN_FLIGHT, postgresql_where=_IN_FLIGHT),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True)
    kind: str = Field(max_length=16)
    address: str = Field(max_length=254)
    subscriber_id: int | None = Field(default=None, index=True)
    language: str = Field(max_length=8)
    data: dict[str, Any] = Field(sa_type=JSON)
    created_at: datetime = Field(sa_type=UTCDateTime)


class Tally(SQLModel, table=True):
    """How many deliveries of a mailing stand in each state, as one worker moved them; progress is the sum."""

    mailing_id: int = Field(foreign_key="mailing.id", primary_key=True)
    worker_id: int = Field(primary_key=True)  # 0: moved by a reader or an editor
    owed: int = 0
    in_flight: int = 0
    sent: int = 0
    deferred: int = 0
    refused: int = 0
    failed: int = 0
    uncertain: int = 0
    withdrawn: int = 0
    suppressed: int = 0
    expired: int = 0
    rate: float = 0.0
    rated_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


class Worker(SQLModel, table=True):
    """A process that delivers, from its start to its end; its claims are good while `seen_at` is fresh."""

    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(max_length=120, index=True)
    started_at: datetime = Field(sa_type=UTCDateTime)
    seen_at: datetime = Field(sa_type=UTCDateTime)
    stopped_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


def is_waiting(table: Table) -> ColumnElement[bool]:
    """Return that a row is owed or deferred, written as its partial index has it: SQLite takes no other."""
    return table.c.state.in_([literal_column(f"'{state}'") for state in WAITING])


def is_in_flight(table: Table) -> ColumnElement[bool]:
    """Return that a row is claimed, written as its partial index has it."""
    return table.c.state == literal_column(f"'{State.IN_FLIGHT}'")


class Lane(SQLModel, table=True):
    """How fast all workers together may use one relay, or (with a provider) one relay for one provider's mailboxes.

    `next_slot` is the next free one, in seconds since 1970; `taken` counts the mails of `day` where a relay's day has
    a limit, `began` is when its warm-up did. A relay's `problem` is what a worker last said of it, at `noted_at`; a
    provider's is the reply that slowed or paused it. The rest is what `tempo` makes of such replies.
    """

    name: str = Field(max_length=120, primary_key=True)
    provider: str = Field(default="", max_length=64, primary_key=True)
    next_slot: float = 0.0
    problem: str | None = Field(default=None, max_length=200)
    noted_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    day: date | None = None
    taken: int = 0
    began: date | None = None
    rate: float | None = None
    top: float | None = None
    slowed_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    meaning: str | None = Field(default=None, max_length=24)
    strikes: int = 0
    first_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    struck_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    paused_until: datetime | None = Field(default=None, sa_type=UTCDateTime)
    pause: int = 0  # seconds
    version: int = 0  # of what `tempo` made

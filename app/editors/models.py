"""Tables: API keys, of which only a hash is kept; who did what; and answers that may be asked for again."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Text
from sqlmodel import Field, SQLModel

from app.core.db import UTCDateTime


class ApiKey(SQLModel, table=True):
    """A key `bs_<handle>_<secret>`: the handle finds the row, the hash proves the secret."""

    __tablename__ = "api_key"
    __table_args__ = (CheckConstraint("scope IN ('editor', 'admin', 'inbound')", name="scope"),)

    id: int | None = Field(default=None, primary_key=True)
    handle: str = Field(max_length=16, unique=True)
    name: str = Field(max_length=80)
    scope: str = Field(max_length=8)
    secret_hash: str = Field(max_length=64)
    created_at: datetime = Field(sa_type=UTCDateTime)
    last_used_at: datetime | None = Field(default=None, sa_type=UTCDateTime)
    revoked_at: datetime | None = Field(default=None, sa_type=UTCDateTime)


class AuditEntry(SQLModel, table=True):
    """Who did what: a key's name or `command`, the act, and what it was done to; never an address."""

    __tablename__ = "audit_entry"

    id: int | None = Field(default=None, primary_key=True)
    at: datetime = Field(sa_type=UTCDateTime)
    actor: str = Field(max_length=100)
    act: str = Field(max_length=40)
    subject: str = Field(default="", max_length=100)


class GivenAnswer(SQLModel, table=True):
    """The answer to a call that carried an Idempotency-Key, given again when the call comes again."""

    __tablename__ = "given_answer"

    id: str = Field(max_length=64, primary_key=True)  # SHA-256 of key, path and Idempotency-Key
    request: str = Field(max_length=64)  # SHA-256 of what was asked
    status: int = 0
    body: str = Field(default="", sa_type=Text)
    created_at: datetime = Field(sa_type=UTCDateTime, index=True)

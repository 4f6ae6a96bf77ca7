"""Table: API keys, of which only a hash is kept."""

from datetime import datetime

from sqlalchemy import CheckConstraint
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

"""What the calls on keys, suppressions and the audit trail take and give."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from app.api.shapes import Shape, example

KEY = {
    "id": 3,
    "handle": "9707609dda83",
    "name": "publishing script",
    "scope": "editor",
    "created_at": "2026-10-26T00:00:00Z",
    "last_used_at": None,
    "revoked_at": None,
}


class NewKey(Shape):
    """A key to make."""

    model_config = example(KEY, "name", "scope") | ConfigDict(extra="forbid")
    name: str = Field(min_length=1, max_length=80)
    scope: Literal["editor", "admin", "inbound"] = "editor"


class KeyView(BaseModel):
    """A key without its secret."""

    model_config = example(KEY)
    id: int
    handle: str
    name: str
    scope: Literal["editor", "admin", "inbound"]
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class MadeKey(KeyView):
    """A key with its secret, shown this once."""

    model_config = example(KEY | {"key": "bs_9707609dda83_…"})
    key: str


class NewSuppression(Shape):
    """An address never to be mailed."""

    model_config = example({"address": "nobody@example.com", "note": "asked by phone"}) | ConfigDict(
        extra="forbid"
    )
    address: str = Field(max_length=320)
    note: str = Field(default="", max_length=200)


class SuppressionView(BaseModel):
    """An address that must not be mailed; null once it is erased and only its hash is left."""

    model_config = example(
        {
            "id": 9,
            "address": "nobody@example.com",
            "reason": "editor",
            "note": "",
            "since": "2026-10-26T00:00:00Z",
        }
    )
    id: int
    address: str | None
    reason: str
    note: str
    since: datetime


class AuditView(BaseModel):
    """Who did what, and when."""

    model_config = example(
        {
            "id": 1,
            "at": "2026-10-26T00:00:00Z",
            "actor": "publishing script",
            "act": "send",
            "subject": "issue 7",
        }
    )
    id: int
    at: datetime
    actor: str
    act: str
    subject: str

"""API keys: made once, shown once, kept as a hash, checked in constant time."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache

from sqlalchemy import bindparam, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col, select
from sqlmodel.sql.expression import SelectOfScalar

from app.core.errors import Fault, Forbidden, Invalid, NotFound, Unauthorized
from app.editors.models import ApiKey
from app.mail import headers


class Scope(StrEnum):
    """What a key may do: an admin may all that an editor may; `inbound` hands in returned mail only."""

    EDITOR = "editor"
    ADMIN = "admin"
    INBOUND = "inbound"


SHAPE = re.compile(r"bs_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NOT_A_KEY = "0" * 64
NAME_LIMIT = 80


async def create(session: AsyncSession, name: str, scope: Scope, now: datetime) -> tuple[ApiKey, str]:
    """Make a key and return its row and the key itself, which is nowhere kept. Raises Invalid for the name."""
    if not 1 <= len(name.strip()) <= len(name) <= NAME_LIMIT or headers.clean(name) != name.strip(" "):
        sentence = f"A key's name is one line of 1 to {NAME_LIMIT} characters."
        raise Invalid(sentence, [Fault(sentence, field="name")])
    handle, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    row = ApiKey(handle=handle, name=name, scope=scope, secret_hash=_hash(secret), created_at=now)
    session.add(row)
    await session.flush()
    return row, f"bs_{handle}_{secret}"


async def check(session: AsyncSession, presented: str, wanted: Scope) -> ApiKey:
    """Return the key's row; raise Unauthorized for one that is not ours, Forbidden where its scope falls short."""
    shape = SHAPE.fullmatch(presented)
    row = None
    if shape:
        row = (await session.scalars(_by_handle(), {"handle": shape[1]})).first()
    # An unknown handle costs the same comparison as a wrong secret.
    right = hmac.compare_digest(row.secret_hash if row else _NOT_A_KEY, _hash(shape[2] if shape else ""))
    if row is None or not right or row.revoked_at is not None:
        raise Unauthorized("Send `Authorization: Bearer bs_…`; `broadsheet keys create` makes a key.")
    if row.scope not in (wanted, Scope.ADMIN):
        raise Forbidden(f"This call needs a key of scope {wanted}, and this one has {row.scope}.")
    return row


async def stands(session: AsyncSession, key_id: int) -> bool:
    """Tell whether a key that was good a while ago still is."""
    which = select(ApiKey).where(ApiKey.id == key_id, col(ApiKey.revoked_at).is_(None))
    return (await session.scalars(which)).first() is not None


def is_news(row: ApiKey, now: datetime) -> bool:
    """Tell whether a use at `now` is worth writing down: the last one is kept to the minute."""
    return row.last_used_at is None or now - row.last_used_at > timedelta(minutes=1)


async def used(session: AsyncSession, key_id: int, now: datetime) -> None:
    """Keep when a key was last used."""
    await session.execute(update(ApiKey).where(col(ApiKey.id) == key_id).values(last_used_at=now))


async def all_keys(session: AsyncSession) -> Sequence[ApiKey]:
    """Return every key, the newest last."""
    return (await session.scalars(select(ApiKey).order_by(col(ApiKey.id)))).all()


async def revoke(session: AsyncSession, handle: str, now: datetime) -> ApiKey:
    """End a key for good, by its handle or its number; raise NotFound."""
    # A handle may be all digits; a number has fewer than a handle.
    is_number = handle.isascii() and handle.isdecimal() and len(handle) < 10
    which = col(ApiKey.id) == int(handle) if is_number else col(ApiKey.handle) == handle
    row = (await session.scalars(select(ApiKey).where(which))).first()
    if row is None:
        raise NotFound(f"There is no key {handle}; `broadsheet keys list` shows them.")
    row.revoked_at = row.revoked_at or now
    return row


async def revoke_named(session: AsyncSession, name: str, now: datetime) -> None:
    """End every living key of a name."""
    living = (col(ApiKey.name) == name) & col(ApiKey.revoked_at).is_(None)
    await session.execute(update(ApiKey).where(living).values(revoked_at=now))


@cache
def _by_handle() -> SelectOfScalar[ApiKey]:
    """Select a key by its handle: asked at every call, so made once."""
    return select(ApiKey).where(ApiKey.handle == bindparam("handle"))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()

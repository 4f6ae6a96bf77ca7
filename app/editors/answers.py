"""Answers that are given again: a call with an Idempotency-Key has its effect once (within a week)."""

import hashlib
from datetime import datetime, timedelta

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from app.core.db import changed, upsert
from app.core.errors import Conflict, Invalid
from app.editors.models import GivenAnswer

KEPT = timedelta(days=7)


async def find(session: AsyncSession, scope: str, asked: bytes, now: datetime) -> tuple[GivenAnswer, bool]:
    """Return the answer's row and whether it holds an answer already; a new row waits for its answer.

    `scope` is the caller, the call and their key. Raises Invalid when the key came with another request,
    Conflict when the first call is still under way.
    """
    number = hashlib.sha256(scope.encode()).hexdigest()
    request = hashlib.sha256(asked).hexdigest()
    row = {"id": number, "request": request, "status": 0, "body": "", "created_at": now}
    insert = upsert(session, GivenAnswer.__table__).values(row)  # type: ignore[attr-defined]
    is_new = await changed(session, insert.on_conflict_do_nothing()) == 1
    found = await session.get_one(GivenAnswer, number)
    if is_new:
        return found, False
    if found.request != request:
        raise Invalid("This Idempotency-Key came with another request before; use a new one.")
    if not found.status:
        raise Conflict("The first call with this Idempotency-Key is still under way; ask again in a moment.")
    return found, True


async def forget_old(session: AsyncSession, now: datetime) -> None:
    """Forget the answers of more than a week ago."""
    await session.execute(delete(GivenAnswer).where(col(GivenAnswer.created_at) < now - KEPT))

"""Queries on letters."""

from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from app.delivery.models import Letter


async def made_since(
    session: AsyncSession, kind: str, since: datetime, subscriber_id: int | None = None
) -> int:
    """Return how many letters of a kind were made after `since`, for one subscriber or for all."""
    which = select(func.count()).where(col(Letter.kind) == kind, col(Letter.created_at) > since)
    if subscriber_id is not None:
        which = which.where(col(Letter.subscriber_id) == subscriber_id)
    return (await session.execute(which)).scalar_one()

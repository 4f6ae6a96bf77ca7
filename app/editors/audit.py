"""The audit trail: who sent, paused, imported, exported, erased."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col, select

from app.editors.models import AuditEntry

COMMAND = "command"  # the actor of what is done on the machine itself


def note(session: AsyncSession, actor: str, act: str, subject: str, now: datetime) -> None:
    """Keep who did what to which thing, such as `send` to `issue 7`."""
    session.add(AuditEntry(at=now, actor=actor[:100], act=act, subject=subject[:100]))


async def page(session: AsyncSession, after: int, limit: int) -> Sequence[AuditEntry]:
    """Return entries with an id above `after`, in order."""
    which = select(AuditEntry).where(col(AuditEntry.id) > after).order_by(col(AuditEntry.id)).limit(limit)
    return (await session.scalars(which)).all()

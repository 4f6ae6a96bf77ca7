"""A mailing that brings a storm of bounces or complaints pauses itself, and says so."""

import logging
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from app.core.db import Database, changed, upsert
from app.core.errors import Conflict
from app.delivery import books, mailings
from app.delivery.models import UNDER_WAY, State
from app.feedback import policy, store
from app.feedback.models import Storm

log = logging.getLogger(__name__)


async def look_out(db: Database, issue_id: int, now: datetime) -> None:
    """Pause the mailing of an issue when too much of it comes back; once for each kind of storm.

    An editor who resumes it has read why, so the same storm does not stop it a second time.
    """
    async with db.reading() as session:
        mailing = await mailings.of_issue(session, issue_id)
        if mailing is None or mailing.state not in UNDER_WAY:
            return
        sent = (await books.counts(session, mailing.id or 0))[State.SENT]
        told = await store.counts(session, issue_id)
    problem = policy.storm(sent, told["bounced_hard"], told["complained"])
    if problem is None:
        return
    async with db.transaction() as session:
        if await _is_new(session, mailing.id or 0, problem.partition(":")[0], now):
            await _pause(session, mailing.id or 0, problem)


async def _is_new(session: AsyncSession, mailing_id: int, kind: str, now: datetime) -> bool:
    row = {"mailing_id": mailing_id, "kind": kind, "at": now}
    insert = upsert(session, Storm.__table__).values(row)  # type: ignore[attr-defined]
    return await changed(session, insert.on_conflict_do_nothing()) == 1


async def _pause(session: AsyncSession, mailing_id: int, problem: str) -> None:
    try:
        await mailings.pause(session, mailing_id, problem)
    except Conflict:  # it has come to its end meanwhile
        return
    log.warning("mailing %d pauses: %s", mailing_id, problem)

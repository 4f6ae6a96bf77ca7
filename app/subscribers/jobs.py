"""Queries on files that are on their way in."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col
from sqlmodel import select as select_model

from app.core.errors import NotFound
from app.subscribers.models import ImportFault, ImportJob, ImportSeen, ImportState


async def get(session: AsyncSession, job_id: int) -> ImportJob:
    """Return a job as the database has it now, or raise NotFound."""
    found = await session.get(ImportJob, job_id, populate_existing=True)
    if found is None:
        raise NotFound(f"There is no import {job_id}; it may be over since more than 30 days.")
    return found


async def hold(session: AsyncSession, job_id: int) -> ImportJob:
    """Return a job that nobody else can move until the transaction ends; raises NotFound."""
    found = await session.get(ImportJob, job_id, populate_existing=True, with_for_update=True)
    if found is None:
        raise NotFound(f"There is no import {job_id}.")
    return found


async def running(session: AsyncSession) -> Sequence[ImportJob]:
    """Return the jobs that are not over, the oldest first."""
    which = select_model(ImportJob).where(ImportJob.state == ImportState.RUNNING).order_by(col(ImportJob.id))
    return (await session.scalars(which)).all()


async def end(session: AsyncSession, job: ImportJob, problem: str | None, now: datetime) -> None:
    """Let a job be done, or failed for a reason, and forget which addresses it met."""
    job.state, job.problem = (ImportState.FAILED if problem else ImportState.DONE), problem
    job.finished_at = job.touched_at = now
    await session.execute(delete(ImportSeen).where(col(ImportSeen.job_id) == job.id))


async def report(session: AsyncSession, job_id: int, cases: Sequence[tuple[int, str, str]]) -> None:
    """Keep the rows that were not taken: line, kind, message."""
    rows = [{"job_id": job_id, "line": line, "kind": kind, "message": said} for line, kind, said in cases]
    if rows:
        await session.execute(ImportFault.__table__.insert(), rows)  # type: ignore[attr-defined]


async def faults(session: AsyncSession, job_id: int, after: int, limit: int) -> Sequence[ImportFault]:
    """Return rows that were not taken, with an id above `after`, in the order of the file."""
    which = (
        select_model(ImportFault)
        .where(ImportFault.job_id == job_id, col(ImportFault.id) > after)
        .order_by(col(ImportFault.id))
        .limit(limit)
    )
    return (await session.scalars(which)).all()


async def over_before(session: AsyncSession, moment: datetime) -> Sequence[int]:
    """Return the ids of jobs that were over before a moment."""
    which = select(col(ImportJob.id)).where(col(ImportJob.finished_at) < moment).limit(100)
    return [number for number in (await session.execute(which)).scalars() if number is not None]


async def forget(session: AsyncSession, ids: Sequence[int]) -> None:
    """Forget jobs and the rows they reported."""
    await session.execute(delete(ImportFault).where(col(ImportFault.job_id).in_(ids)))
    await session.execute(delete(ImportJob).where(col(ImportJob.id).in_(ids)))

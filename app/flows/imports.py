"""Readers come from a file: each row is counted, nobody who left is brought back, and a stop loses or doubles nothing.

The file is laid down in UTF-8 beside the database, with a job that knows how far it is. A batch is read and checked
with no transaction open; then its readers, its counts and the new position are committed together. Whoever does the
next batch, a command or a worker, begins where the last commit ended.
"""

import asyncio
import logging
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from app.core.config import Settings
from app.core.db import Database
from app.core.errors import Fault, NotFound, Unavailable
from app.core.i18n import LANGUAGES
from app.flows import intake
from app.issues import store as issues
from app.issues.models import Edition
from app.subscribers import jobs
from app.subscribers.imports import PRESETS, csv, encodings, lines_of
from app.subscribers.imports.candidate import KINDS, Plan, Table
from app.subscribers.imports.decide import Checker, Ready
from app.subscribers.models import ImportJob, ImportState

__all__ = ["Laid", "Plan", "begin", "discard", "folder", "lay_down", "start", "step", "stop", "view", "work"]

log = logging.getLogger(__name__)

BATCH = 2_000  # rows in a transaction
SMALL_BATCH = 200  # where each row may owe a letter or withdraw mail
KEPT = timedelta(days=30)  # how long a job and the rows it reported are kept
ORPHANED = timedelta(days=1)
MISSED = timedelta(hours=1)  # after which a file that is not here will not turn up


@dataclass(frozen=True, slots=True)
class Laid:
    """A file that was laid down: where, its size in bytes, its header row, and where the first row begins."""

    path: Path
    size: int
    table: Table
    offset: int
    line: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that were read and checked, and where the file goes on; `is_last` when it does not."""

    rows: list[Ready | Fault]
    offset: int
    line: int
    is_last: bool


def folder(settings: Settings) -> Path:
    """Return where the files of this database's jobs lie; another database may share `data_dir`."""
    return settings.data_dir / f"imports-{settings.database_name}"


def lay_down(settings: Settings, file: BinaryIO) -> Laid:
    """Keep a file in UTF-8 for a job; raises Invalid for what is no table of readers. Blocks; use a thread."""
    place = folder(settings)
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = place / f"{secrets.token_hex(8)}.csv"
    try:
        with path.open("xb") as copy:
            path.chmod(0o600)
            for chunk in encodings.recoded(file):
                copy.write(chunk)
        with path.open("rb") as copy:
            tape = csv.Tape(lines_of(copy))
            table = csv.head(tape, PRESETS)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return Laid(path, path.stat().st_size, table, tape.offset, tape.line)


def discard(laid: Laid) -> None:
    """Take back a file that no job was made for."""
    laid.path.unlink(missing_ok=True)


async def begin(session: AsyncSession, laid: Laid, plan: Plan, name: str, now: datetime) -> ImportJob:
    """Make the job for a file that was laid down; raises Invalid for an edition that there is not."""
    await issues.chosen(session, plan.editions)
    table = laid.table
    job = ImportJob(
        name=name[:200], file=laid.path.name, size=laid.size, position=laid.offset, line=laid.line,
        plan=asdict(plan), preset=table.preset, counts=dict.fromkeys(KINDS, 0), created_at=now, touched_at=now,
        columns={"taken": dict(table.taken), "ignored": list(table.ignored)},
    )  # fmt: skip
    session.add(job)
    await session.flush()
    return job


async def start(
    db: Database, settings: Settings, file: BinaryIO, plan: Plan, name: str, now: datetime
) -> int:
    """Lay a file down, make its job, and return the job's id; raises Invalid for the file or the plan."""
    laid = await asyncio.to_thread(lay_down, settings, file)
    try:
        async with db.transaction() as session:
            return (await begin(session, laid, plan, name, now)).id or 0
    except BaseException:
        discard(laid)
        raise


async def work(db: Database, settings: Settings, now: datetime) -> bool:
    """Take one batch of the oldest job that is not over; False when there is none on this machine."""
    waiting = await db.told(jobs.running)
    old = [] if waiting else await db.told(lambda session: jobs.over_before(session, now - KEPT))
    for job in waiting:
        if _path(settings, job).exists():
            await step(db, settings, job.id or 0, now)
            return True
        if job.touched_at < now - MISSED:
            await stop(
                db, settings, job.id or 0, "The file is gone; import it again. What was taken stays.", now
            )
    if old:
        async with db.transaction() as session:
            await jobs.forget(session, old)
    if not waiting:
        _sweep(settings, now)
    return False


async def step(db: Database, settings: Settings, job_id: int, now: datetime) -> bool:
    """Take the next batch of a job; False when the job is over. A bug ends the job, and is logged."""
    async with db.reading() as session:
        job = await jobs.get(session, job_id)
        editions = await issues.editions(session)
    if job.state != ImportState.RUNNING:
        return False
    try:
        for attempt in (1, 2, 3):
            try:
                return await _step(db, settings, job, editions, now)
            except IntegrityError:  # somebody signed up in between: they are known now
                if attempt == 3:
                    raise
    except (Unavailable, NotFound, OSError):
        raise
    except Exception:
        log.exception("import %d failed", job_id)
        await stop(
            db, settings, job_id, "Something broke on our side; the log says what. What was taken stays.", now
        )
    return False


async def _step(
    db: Database, settings: Settings, job: ImportJob, editions: Sequence[Edition], now: datetime
) -> bool:
    path, plan = _path(settings, job), _plan(job)
    checker = Checker(plan, LANGUAGES, _words(editions), settings.suppression_key)
    batch = await asyncio.to_thread(_read, path, checker, job.position, job.line)
    async with db.transaction() as session:
        held = await jobs.hold(session, job.id or 0)
        if held.state != ImportState.RUNNING or held.position != job.position:
            return held.state == ImportState.RUNNING  # somebody else took this batch
        taken = await intake.take(session, job.id or 0, batch.rows, plan, editions, now)
        await jobs.report(session, job.id or 0, taken.cases)
        held.counts = {kind: held.counts[kind] + taken.counts[kind] for kind in KINDS}
        held.position, held.line, held.touched_at = batch.offset, batch.line, now
        if batch.is_last:
            await jobs.end(session, held, None, now)
    if batch.is_last:
        path.unlink(missing_ok=True)
    return not batch.is_last


async def stop(db: Database, settings: Settings, job_id: int, problem: str, now: datetime) -> None:
    """Give a running job up for a reason; what was taken stays."""
    async with db.transaction() as session:
        job = await jobs.hold(session, job_id)
        if job.state == ImportState.RUNNING:
            await jobs.end(session, job, problem, now)
    _path(settings, job).unlink(missing_ok=True)


async def view(session: AsyncSession, job_id: int, after: int = 0, limit: int = 200) -> dict[str, Any]:
    """Return a job as editors see it, with a page of the rows that were not taken and where the next begins."""
    job = await jobs.get(session, job_id)
    faults = await jobs.faults(session, job_id, after, limit + 1)
    done = job.position / job.size if job.size else 1.0
    return {
        "id": job.id,
        "state": job.state,
        "name": job.name,
        "source": job.plan["source"],
        "dry_run": job.plan["dry_run"],
        "preset": job.preset,
        "columns": job.columns["taken"],
        "ignored": job.columns["ignored"],
        "progress": 1.0 if job.state == ImportState.DONE else round(done, 3),
        "counts": job.counts,
        "problem": job.problem,
        "created_at": job.created_at,
        "finished_at": job.finished_at,
        "rows": [{"line": one.line, "kind": one.kind, "problem": one.message} for one in faults[:limit]],
        "next": faults[limit - 1].id if len(faults) > limit else None,
    }


def _read(path: Path, checker: Checker, offset: int, line: int) -> Batch:
    """Read and check the next batch. Runs in a thread, so that pages are answered meanwhile."""
    with path.open("rb") as file:
        table = csv.head(csv.Tape(lines_of(file)), PRESETS)
    most = SMALL_BATCH if checker.plan.confirm or checker.plan.update else BATCH
    with path.open("rb") as file:
        file.seek(offset)
        tape = csv.Tape(lines_of(file), offset, line)
        rows = list(islice(csv.read(tape, table), most))
        return Batch(checker.check(rows), tape.offset, tape.line, len(rows) < most)


def _sweep(settings: Settings, now: datetime) -> None:
    """Remove files that a crash left without a job: they hold people's addresses."""
    for path in folder(settings).glob("*.csv"):
        if path.stat().st_mtime < (now - ORPHANED).timestamp():
            path.unlink(missing_ok=True)


def _path(settings: Settings, job: ImportJob) -> Path:
    return folder(settings) / job.file


def _plan(job: ImportJob) -> Plan:
    return Plan(**{**job.plan, "editions": tuple(job.plan["editions"])})


def _words(editions: Sequence[Edition]) -> dict[str, str]:
    """Return every word that means an edition: its name in links, and its label on pages."""
    labels = {one.label.casefold(): one.slug for one in editions}
    return labels | {one.slug.casefold(): one.slug for one in editions}

"""Queries on what came back: kept before it is acted on, listed, counted, and forgotten in time."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Select,
    Table,
    and_,
    bindparam,
    case,
    cast,
    delete,
    distinct,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col
from sqlmodel import select as select_model

from app.core.db import changed, upsert
from app.core.errors import NotFound
from app.feedback.models import KeptReport, Received, ReportState, StaleCalls
from app.feedback.report import DELAYED, Action, Kind, Report

report: Table = KeptReport.__table__  # type: ignore[attr-defined]
received: Table = Received.__table__  # type: ignore[attr-defined]
stale_calls: Table = StaleCalls.__table__  # type: ignore[attr-defined]

KEPT_RAW = timedelta(days=30)
KEPT = timedelta(days=400)  # as long as the deliveries that they stand beside
# Of no use once it has been acted on, and personal until then.
_PASSING = (Kind.DELIVERED, Kind.AUTO_REPLY, Kind.OTHER)

hard = and_(report.c.kind == Kind.BOUNCE, report.c.action == Action.SUPPRESS)
soft = and_(report.c.kind == Kind.BOUNCE, report.c.action == Action.COUNT, report.c.meaning != DELAYED)
complaint: ColumnElement[bool] = report.c.kind == Kind.COMPLAINT


async def keep(
    session: AsyncSession, call: tuple[str, str], raw: bytes, reports: Sequence[Report], now: datetime
) -> int:
    """Keep a mail or a verified call and what it says, and return how many of its reports are new.

    `call` is the origin and the call's id: one that is known already changes nothing, whatever it says now.
    """
    origin, call_id = call
    row = {"origin": origin, "call_id": call_id, "raw": raw, "received_at": now}
    taken = upsert(session, received).values(row).on_conflict_do_nothing().returning(received.c.id)
    received_id = (await session.execute(taken)).scalar()
    if received_id is None or not reports:
        return 0
    rows = [_row(one, f"{call_id}:{place}", received_id, now) for place, one in enumerate(reports)]
    return await changed(session, upsert(session, report).values(rows).on_conflict_do_nothing())


async def note_stale(session: AsyncSession, origin: str, now: datetime) -> None:
    """Count an authentic call that came too late."""
    insert = upsert(session, stale_calls).values(origin=origin, calls=1, last_at=now)
    again = {"calls": stale_calls.c.calls + 1, "last_at": now}
    await session.execute(insert.on_conflict_do_update(index_elements=["origin"], set_=again))


async def stale(session: AsyncSession) -> list[dict[str, Any]]:
    """Return how many calls of each provider came too late, and when the last did."""
    rows = await session.execute(select(stale_calls).order_by(stale_calls.c.origin))
    return [dict(row._mapping) for row in rows]


async def waiting(session: AsyncSession, limit: int) -> list[int]:
    """Return the ids of reports that wait to be acted on, the oldest first."""
    which = select(report.c.id).where(report.c.state == ReportState.WAITING).order_by(report.c.id)
    return list((await session.execute(which.limit(limit))).scalars())


async def take(session: AsyncSession, report_id: int) -> KeptReport | None:
    """Return a report that still waits, held until the transaction ends; None when another has it."""
    which = select_model(KeptReport).where(
        KeptReport.id == report_id, KeptReport.state == ReportState.WAITING
    )
    return (await session.scalars(which.with_for_update(skip_locked=True))).first()


async def get(session: AsyncSession, report_id: int) -> KeptReport:
    """Return a report, or raise NotFound."""
    found = await session.get(KeptReport, report_id)
    if found is None:
        raise NotFound(f"There is no report {report_id}; `reports list` shows them.")
    return found


async def raw(session: AsyncSession, one: KeptReport) -> bytes | None:
    """Return the mail or the call that a report came from, while it is kept."""
    found = await session.get(Received, one.received_id) if one.received_id else None
    return found.raw if found else None


async def page(
    session: AsyncSession, after: int, limit: int, state: str | None = None, kind: str | None = None
) -> Sequence[KeptReport]:
    """Return reports with an id above `after`, in order, all or those in a state or of a kind."""
    which = select_model(KeptReport).where(col(KeptReport.id) > after)
    if state is not None:
        which = which.where(KeptReport.state == state)
    if kind is not None:
        which = which.where(KeptReport.kind == kind)
    return (await session.scalars(which.order_by(col(KeptReport.id)).limit(limit))).all()


async def of_delivery(session: AsyncSession, issue_id: int, subscriber_id: int) -> Sequence[KeptReport]:
    """Return what came back about one delivery, in the order in which it came."""
    which = select_model(KeptReport).where(
        KeptReport.issue_id == issue_id, KeptReport.subscriber_id == subscriber_id
    )
    return (await session.scalars(which.order_by(col(KeptReport.id)))).all()


async def that_suppressed(session: AsyncSession, subscriber_id: int) -> Sequence[KeptReport]:
    """Return the last report for which a subscriber's address was suppressed, if there is one."""
    which = select_model(KeptReport).where(
        KeptReport.subscriber_id == subscriber_id, KeptReport.state == ReportState.SUPPRESSED
    )
    return (await session.scalars(which.order_by(col(KeptReport.id).desc()).limit(1))).all()


async def fates(session: AsyncSession, subscriber_id: int) -> dict[int, set[str]]:
    """Return the kinds of what came back about each issue of a subscriber; a soft bounce is `count`."""
    which = select(report.c.issue_id, case((soft, Action.COUNT.value), else_=report.c.kind)).where(
        report.c.subscriber_id == subscriber_id, report.c.issue_id.is_not(None)
    )
    found: dict[int, set[str]] = {}
    for issue_id, kind in await session.execute(which):
        found.setdefault(issue_id, set()).add(kind)
    return found


async def counts(session: AsyncSession, issue_id: int) -> dict[str, int]:
    """Return of how many readers of an issue there came a hard bounce, a soft one only, a complaint."""
    return told((await session.execute(counting(), {"issue": issue_id})).one())


async def counts_by(
    session: AsyncSession, column: ColumnElement[Any], which: ColumnElement[bool]
) -> dict[Any, dict[str, int]]:
    """Return the same for each value of a column of the reports."""
    rows = await session.execute(select(column, *_counted()).where(which).group_by(column))
    return {row[0]: told(row) for row in rows}


def told(row: Any) -> dict[str, int]:
    """Return a row of counts in the words of a mailing."""
    either = int(row.bounced)
    return {
        "bounced_hard": int(row.hard),
        "bounced_soft": either - int(row.hard),
        "complained": int(row.complained),
    }


@cache
def _counted() -> tuple[Any, ...]:
    # A mail may come back twice, so deliveries are counted and not reports.
    pair = cast(report.c.issue_id, BigInteger) * 2**32 + report.c.subscriber_id
    return (
        func.count(distinct(case((hard, pair)))).label("hard"),
        func.count(distinct(case((or_(hard, soft), pair)))).label("bounced"),
        func.count(distinct(case((complaint, pair)))).label("complained"),
    )


@cache
def counting() -> Select[Any]:
    """Select of how many readers of `issue` there came a hard bounce, any bounce, a complaint; `told` has the words."""
    return select(*_counted()).where(report.c.issue_id == bindparam("issue"))


async def forget_old(session: AsyncSession, now: datetime) -> None:
    """Forget what came in as it was after 30 days, with what nobody could place; the rest after 400 days."""
    await session.execute(delete(received).where(received.c.received_at < now - KEPT_RAW))
    passing = or_(report.c.kind.in_(_PASSING), report.c.state == ReportState.STRAY)
    settled = report.c.state != ReportState.WAITING
    await session.execute(delete(report).where(report.c.received_at < now - KEPT_RAW, settled, passing))
    await session.execute(delete(report).where(report.c.received_at < now - KEPT))


async def blank(session: AsyncSession, report_id: int, text: str, **values: Any) -> None:
    """Settle a report, and blank what names the reader in it."""
    names = dict.fromkeys(("address", "token", "message_id", "relay_id"))
    await session.execute(update(report).where(report.c.id == report_id).values(text=text, **names, **values))


def _row(one: Report, place: str, received_id: int, now: datetime) -> dict[str, Any]:
    row = asdict(one) | {"event_id": one.event_id or place, "received_id": received_id, "received_at": now}
    return row | {"state": ReportState.WAITING, "provider": ""}

"""A report comes back: keep it beside the delivery, spare the reader. What was sent stays as sent.

Each report is settled in a transaction of its own, in the order reader, deliveries, tallies, letters, as everybody
else takes them: so no two who work at once can wait for each other.
"""

import logging
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from app.core.db import Database, insert_for, is_postgresql
from app.core.errors import Unavailable
from app.delivery import ledger
from app.delivery.claims import Settlement
from app.delivery.models import Delivery, State
from app.feedback import policy, store
from app.feedback.models import KeptReport, ReportState
from app.feedback.policy import Fate, Sent
from app.feedback.report import DELAYED, Action, Kind, action_of, one_line
from app.flows import attribution, storm, subscribe, suppress
from app.flows.attribution import Owner
from app.flows.compose import Composer
from app.mail import verdict
from app.mail.outcome import Reply
from app.subscribers import store as subscribers
from app.subscribers.consent import Reason
from app.subscribers.models import Subscriber
from app.subscribers.store import Origin

log = logging.getLogger(__name__)

BATCH = 200
RECENT = 60  # issues of a reader that are looked back on
_HANDED_OVER = (State.SENT, State.UNCERTAIN, State.REFUSED)
_NOT_THERE = "‹address›"


async def work(db: Database, composer: Composer, now: datetime) -> bool:
    """Act on the reports that wait, oldest first; returns whether there were any."""
    waiting = await db.told(lambda session: store.waiting(session, BATCH))
    for report_id in waiting:
        try:
            while await _settle(db, composer, report_id, now):
                pass
        except Unavailable:
            raise
        except Exception:
            log.exception("report %d cannot be acted on and is set aside", report_id)
            async with db.transaction() as session:
                await store.blank(session, report_id, "", state=ReportState.STRAY, done_at=now)
    return bool(waiting)


def refused(connection: Connection, settlements: Sequence[Settlement], now: datetime) -> None:
    """Keep what relays refused for good as reports that wait, in the transaction that records it."""
    rows = [_refusal(one, now) for one in settlements if one.state == State.REFUSED and one.code]
    if rows:
        statement = insert_for(is_postgresql(connection), store.report)
        connection.execute(statement.values(rows).on_conflict_do_nothing())


def _refusal(one: Settlement, now: datetime) -> dict[str, Any]:
    claim, reply = one.claim, Reply(one.code or 0, one.reply or "")
    found = verdict.judge(reply, one.stage, verdict.provider_of(claim.address))
    is_letter = claim.mailing_id is None
    return {
        "origin": attribution.SMTP,
        "event_id": ":".join([claim.table.name, *map(str, claim.key)]),
        "state": ReportState.WAITING,
        "kind": Kind.BOUNCE,
        "action": action_of(found),
        "meaning": found.meaning,
        "code": one.code,
        "status": reply.enhanced,
        "text": one_line(f"{one.code} {one.reply or ''}"),
        "received_at": now,
        "happened_at": now,
        "issue_id": None if is_letter else claim.key[0],
        "subscriber_id": claim.subscriber_id,
        "letter_id": claim.key[0] if is_letter else None,
        "provider": "",
    }


async def _settle(db: Database, composer: Composer, report_id: int, now: datetime) -> bool:
    """Settle one report, or first the delivery that it proves to have been taken; True when called again."""
    async with db.transaction() as session:
        one = await store.take(session, report_id)
        if one is None:
            return False
        owner = await attribution.find(session, composer.settings, composer.signer, one)
        if owner is None:
            await _mark(session, one, ReportState.STRAY, now)
            return False
        if owner.is_sure and await _prove(session, one, owner, now):
            return True
        who = await subscribers.held(session, owner.subscriber_id or 0)
        state = await _act(session, one, owner, who, now) if who else ReportState.NOTED
        await _mark(session, one, state, now, owner, who)
    if state == ReportState.SUPPRESSED and owner.issue_id is not None:
        await storm.look_out(db, owner.issue_id, now)
    return False


async def _prove(session: AsyncSession, one: KeptReport, owner: Owner, now: datetime) -> bool:
    """Settle an uncertain delivery as sent, since what comes back proves that the relay took it."""
    if owner.issue_id is None or one.origin == attribution.SMTP:
        return False
    table = ledger.delivery
    which = and_(
        table.c.issue_id == owner.issue_id,
        table.c.subscriber_id == owner.subscriber_id,
        table.c.state == State.UNCERTAIN,
    )
    return await ledger.move(session, which, State.SENT, now) > 0


async def _act(
    session: AsyncSession, one: KeptReport, owner: Owner, who: Subscriber, now: datetime
) -> ReportState:
    """Do what a report calls for, and return what became of it; `who` is held."""
    origin = Origin(f"report:{one.origin}")
    if _is_stale(one, owner, who, now):
        return ReportState.NOTED
    match (one.kind, one.action):
        case (Kind.UNSUBSCRIBE, _):
            edition = owner.edition_id if one.origin == attribution.MAIL else None
            await subscribe.leave(session, who, edition, origin, now)
            return ReportState.LEFT
        case (Kind.COMPLAINT, Action.SUPPRESS):
            await suppress.by_report(session, who, Reason.COMPLAINED, origin, now)
            return ReportState.SUPPRESSED
        case (Kind.BOUNCE, Action.SUPPRESS):
            await suppress.by_report(session, who, Reason.BOUNCED, origin, now)
            return ReportState.SUPPRESSED
        case (Kind.BOUNCE, _) if one.meaning == DELAYED:
            return ReportState.NOTED
        case (Kind.BOUNCE, Action.COUNT) if await _is_worn_out(session, owner, who):
            await suppress.by_report(session, who, Reason.BOUNCED, origin, now)
            return ReportState.SUPPRESSED
        case (Kind.BOUNCE, Action.COUNT):
            return ReportState.COUNTED
        case _:
            return ReportState.NOTED


def _is_stale(one: KeptReport, owner: Owner, who: Subscriber, now: datetime) -> bool:
    """Tell whether a report is about a mail too old to speak for today: the reader may have come back since.

    A wish to leave is never too old, nor is a complaint that a provider vouches for.
    """
    may_be_late = one.kind == Kind.UNSUBSCRIBE or (
        one.kind == Kind.COMPLAINT and one.origin != attribution.MAIL
    )
    if may_be_late or owner.handed_at is None:
        return False
    came_back = who.confirmed_at is not None and who.confirmed_at > owner.handed_at
    return came_back or now - owner.handed_at > policy.LATEST


async def _is_worn_out(session: AsyncSession, owner: Owner, who: Subscriber) -> bool:
    """Tell whether this soft bounce is one too many, from what became of the reader's last issues."""
    if owner.issue_id is None:
        return False
    came_back = await store.fates(session, who.id or 0)
    came_back.setdefault(owner.issue_id, set()).add(Action.COUNT)
    sent = (
        select(col(Delivery.issue_id), col(Delivery.done_at))
        .where(col(Delivery.subscriber_id) == who.id, col(Delivery.state).in_(_HANDED_OVER))
        .where(
            col(Delivery.done_at).is_not(None), col(Delivery.done_at) >= (who.confirmed_at or who.created_at)
        )
        .order_by(col(Delivery.done_at).desc())
        .limit(RECENT)
    )
    rows = (await session.execute(sent)).all()
    known = [(at, _fate(came_back.get(issue_id, set()))) for issue_id, at in rows]
    return policy.is_worn_out([Sent(at, fate) for at, fate in known if at is not None and fate is not None])


def _fate(kinds: set[str]) -> Fate | None:
    """What became of an issue; None for one that is late, or was refused for a reason that is not theirs."""
    if Kind.DELIVERED in kinds:
        return Fate.DELIVERED
    if Action.COUNT in kinds:
        return Fate.BOUNCED
    return None if Kind.BOUNCE in kinds else Fate.SILENT


async def _mark(
    session: AsyncSession,
    one: KeptReport,
    state: ReportState,
    now: datetime,
    owner: Owner | None = None,
    who: Subscriber | None = None,
) -> None:
    """Settle a report; once it is known whose it was, nothing in it names them any more."""
    if owner is None:
        one.state, one.done_at = state, now
        await session.flush()
        return
    provider = verdict.provider_of(who.address) if who else ""
    if who and owner.issue_id is not None:
        mine = col(Delivery.issue_id) == owner.issue_id, col(Delivery.subscriber_id) == who.id
        provider = await session.scalar(select(col(Delivery.provider)).where(*mine)) or provider
    text = one.text
    names = {one.address or "", who.address if who else ""} - {""}
    for named in names:
        text = re.sub(re.escape(named), _NOT_THERE, text, flags=re.IGNORECASE)
    await store.blank(
        session, one.id or 0, text[:200], state=state, done_at=now, issue_id=owner.issue_id,
        subscriber_id=owner.subscriber_id, letter_id=owner.letter_id,
        provider=provider,
    )  # fmt: skip

"""What came back, in numbers for editors: by mailing, by edition, by mailbox provider, against the limits."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Table, delete, distinct, exists, func, insert, literal, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from app.core.db import Database
from app.delivery.models import Delivery, Mailing, MailingState, State, Tally
from app.feedback import policy, store
from app.feedback.models import KeptReport, Reach, ReportState
from app.feedback.policy import Level
from app.issues import store as issues
from app.issues.models import Issue
from app.mail import verdict
from app.subscribers import domains
from app.subscribers.models import ConsentEvent, Subscriber

reach: Table = Reach.__table__  # type: ignore[attr-defined]

COUNTED = ("bounced_hard", "bounced_soft", "complained")
SAID = {
    Level.NEAR: "{name}: {share:.2%} of the readers complain, which is near 0.1 %.",
    Level.OVER: "{name}: {share:.2%} of the readers complain; Gmail and Yahoo want less than 0.1 %.",
    Level.TOO_HIGH: "{name}: {share:.2%} of the readers complain; from 0.3 % on, Gmail and Yahoo block senders.",
}
_OVER = (MailingState.FINISHED, MailingState.CANCELLED)


async def detail(session: AsyncSession, one: KeptReport) -> dict[str, Any]:
    """Return a report with the mail or the call it came from; None where that is forgotten."""
    raw = await store.raw(session, one)
    return one.model_dump() | {
        "raw": None if raw is None else raw.decode("utf-8", "replace").replace("\0", "")
    }


async def lately(session: AsyncSession, days: int, now: datetime) -> dict[str, Any]:
    """Return what came back of the mailings that started in the last days, and the warnings that follow."""
    since = now - timedelta(days=days)
    editions = await _by_edition(session, since)
    providers = await _by_provider(session, since)
    stray = select(func.count()).where(col(KeptReport.state) == ReportState.STRAY)
    named = [(row["edition"], row) for row in editions] + [(row["provider"], row) for row in providers]
    return {
        "days": days,
        "editions": editions,
        "providers": providers,
        "stale": await store.stale(session),
        "stray": (await session.execute(stray)).scalar_one(),
        "warnings": [warning for name, row in named if (warning := _warning(name, row))],
    }


async def count_reach(db: Database) -> None:
    """Count once, for each mailing that is over, how many of its mails each mailbox provider was sent.

    One that is retried after its end is counted anew.
    """
    todo, again = await db.told(_miscounted)
    if not todo and not again:
        return
    async with db.reading() as session:
        found = {mailing_id: await _sent_by_provider(session, mailing_id or 0) for mailing_id in todo}
    async with db.transaction() as session:
        await session.execute(delete(reach).where(reach.c.mailing_id.in_([*again, *found])))
        rows = [
            {"mailing_id": mailing_id, "provider": provider, "sent": sent}
            for mailing_id, sums in found.items()
            for provider, sent in (sums or {verdict.OTHER: 0}).items()
        ]
        if rows:
            await session.execute(insert(reach), rows)


async def _miscounted(session: AsyncSession) -> tuple[list[int | None], list[int | None]]:
    """Return the mailings to be counted, and those that were and go on."""
    counted = exists().where(reach.c.mailing_id == Mailing.id)
    is_over, started = col(Mailing.state).in_(_OVER), col(Mailing.started_at).is_not(None)
    todo = await session.execute(select(col(Mailing.id)).where(is_over, ~counted, started))
    again = await session.execute(select(col(Mailing.id)).where(counted, ~is_over))
    return list(todo.scalars()), list(again.scalars())


async def _sent_by_provider(session: AsyncSession, mailing_id: int) -> Counter[str]:
    domain = domains.their_domain()
    rows = await session.execute(
        select(col(Delivery.provider), domain, func.count())
        .outerjoin(Subscriber, col(Subscriber.id) == Delivery.subscriber_id)
        .where(col(Delivery.mailing_id) == mailing_id, col(Delivery.state) == State.SENT)
        .group_by(col(Delivery.provider), domain)
    )
    sums: Counter[str] = Counter()
    for provider, name, sent in rows:
        sums[provider or verdict.provider_of(name or "")] += sent
    return sums


async def _by_edition(session: AsyncSession, since: datetime) -> list[dict[str, Any]]:
    recent = (
        select(col(Issue.id), col(Issue.edition_id), func.coalesce(func.sum(col(Tally.sent)), 0))
        .join(Mailing, col(Mailing.issue_id) == Issue.id)
        .outerjoin(Tally, col(Tally.mailing_id) == Mailing.id)
        .where(col(Mailing.started_at) >= since)
        .group_by(col(Issue.id), col(Issue.edition_id))
    )
    rows = (await session.execute(recent)).all()
    table = store.report
    back = await store.counts_by(session, table.c.issue_id, table.c.issue_id.in_([row[0] for row in rows]))
    sums: dict[int, Counter[str]] = {}
    for issue_id, edition_id, sent in rows:
        sums.setdefault(edition_id, Counter()).update({"sent": int(sent)} | back.get(issue_id, {}))
    return [
        {"edition": edition.slug} | await _left(session, edition.slug, since) | _rated(sums[edition.id or 0])
        for edition in await issues.editions(session)
        if edition.id in sums
    ]


async def _by_provider(session: AsyncSession, since: datetime) -> list[dict[str, Any]]:
    over = select(col(Mailing.id), col(Mailing.issue_id)).where(
        col(Mailing.started_at) >= since, exists().where(reach.c.mailing_id == Mailing.id)
    )
    rows = (await session.execute(over)).all()
    total = (
        select(reach.c.provider, func.sum(reach.c.sent))
        .where(reach.c.mailing_id.in_([row[0] for row in rows]))
        .group_by(reach.c.provider)
    )
    sent = {provider: int(many) for provider, many in await session.execute(total)}
    table = store.report
    which = table.c.issue_id.in_([row[1] for row in rows])
    back = await store.counts_by(session, table.c.provider, which)
    found = [
        {"provider": name} | _rated({"sent": sent.get(name, 0)} | back.get(name, {}))
        for name in sent.keys() | (back.keys() - {""})
    ]
    return sorted(found, key=lambda row: (-row["sent"], row["provider"]))


async def _left(session: AsyncSession, slug: str, since: datetime) -> dict[str, Any]:
    """Return how many readers left an edition, and how many of the times each reason was given."""
    editions = literal(" ") + col(ConsentEvent.editions) + literal(" ")
    which = (
        col(ConsentEvent.kind) == "left",
        col(ConsentEvent.at) >= since,
        editions.contains(f" {slug} "),
    )
    readers = select(func.count(distinct(col(ConsentEvent.subscriber_id)))).where(*which)
    said = col(ConsentEvent.detail)
    why = select(said, func.count()).where(*which, said != "").group_by(said).order_by(said)
    return {
        "left": (await session.execute(readers)).scalar_one(),
        "reasons": dict((await session.execute(why)).all()),
    }


def _rated(counts: Mapping[str, int]) -> dict[str, Any]:
    told: dict[str, Any] = {"sent": counts["sent"]} | {name: counts.get(name, 0) for name in COUNTED}
    sent = max(1, told["sent"])
    return told | {
        "bounce_rate": round(told["bounced_hard"] / sent, 5),
        "complaint_rate": round(told["complained"] / sent, 5),
        "level": policy.level(told["sent"], told["complained"]).value,
    }


def _warning(name: str, row: Mapping[str, Any]) -> str | None:
    said = SAID.get(Level(row["level"]))
    return said.format(name=name, share=row["complained"] / row["sent"]) if said else None

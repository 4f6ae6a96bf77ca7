"""Did she get it, and why not: one answer from subscribers, suppressions and the ledger."""

from datetime import date, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from app.core.config import Settings
from app.delivery import mailings
from app.delivery.models import WAITING, Delivery, Mailing, MailingState
from app.feedback import store as reports
from app.flows import came_back, relays
from app.flows.proof import accepted
from app.issues import cadence
from app.issues import store as issues
from app.issues.models import Edition, Issue
from app.subscribers import store, suppression
from app.subscribers.consent import State
from app.subscribers.models import Subscriber, Subscription

SETTLED = {
    "owed": "They are owed this issue, and it has not been handed over yet.",
    "waits": "They are owed this issue at the hour they chose: {due:%Y-%m-%d at %H:%M} UTC.",
    "in_flight": "It is being handed to the relay right now.",
    "sent": "The relay {relay} took it on {done:%Y-%m-%d at %H:%M:%S} UTC and answered: {said}.",
    "deferred": "The relay said “not now” ({said}); it is tried again on {due:%Y-%m-%d at %H:%M:%S} UTC.",
    "refused": "The relay {relay} refused it: {said}.",
    "failed": "It could not be composed for them: {reason}.",
    "uncertain": "It was handed over, and the answer never came: {reason}.",
    "withdrawn": "It was taken back before it was handed over: {reason}.",
    "suppressed": "Their address came to be suppressed before it was handed over.",
    "expired": "It was tried {attempts} times, and its time to live was over: {reason}.",
}


async def why(
    session: AsyncSession, settings: Settings, issue: Issue, address: str, now: datetime
) -> dict[str, Any]:
    """Return whether a reader got, gets or would get an issue, the rule that decided it, and the delivery.

    `verdict` is the delivery's state, or `would`, `unknown`, `suppressed`, `pending`, `paused`, `ended`,
    `not_chosen`, `weekend`, `late`, `cancelled`. Raises Invalid for what is no address.
    """
    known = accepted(address)
    edition = await issues.edition_of(session, issue)
    who = await store.by_key(session, known.key)
    mailing = await mailings.of_issue(session, issue.id or 0)
    delivery = await session.get(Delivery, (issue.id, who.id)) if who else None
    if delivery is not None and who is not None:
        back = came_back.told(await reports.of_delivery(session, delivery.issue_id, delivery.subscriber_id))
        held = await _held(session, settings, delivery, now)
        sentence = " ".join([_of(delivery, mailing), *held, *back])
        return _told(address, delivery.state, sentence, shown(delivery) | {"address": who.address})
    stands = await suppression.find(session, known.hashed(settings.suppression_key))
    if stands is not None:
        said = f"The address must not be mailed ({stands.reason}, since {stands.since:%Y-%m-%d})."
        led = await reports.that_suppressed(session, who.id or 0) if who else []
        return _told(address, "suppressed", " ".join([said, *came_back.told(led)]))
    if who is None:
        return _told(address, "unknown", "There is no reader with this address.")
    verdict, sentence = await _left_out(session, who, edition, issue.date, mailing, now)
    return _told(address, verdict, sentence)


async def _held(session: AsyncSession, settings: Settings, one: Delivery, now: datetime) -> list[str]:
    if one.state not in WAITING or not one.provider:
        return []
    return await relays.of_provider(session, settings.relay_urls, one.provider, now)


async def _left_out(
    session: AsyncSession,
    who: Subscriber,
    edition: Edition,
    day: date,
    mailing: Mailing | None,
    now: datetime,
) -> tuple[str, str]:
    if who.state == State.PENDING:
        return "pending", f"They asked on {who.created_at:%Y-%m-%d} and have not confirmed yet."
    if who.state == State.ENDED:
        return "ended", f"They are no reader any more ({who.reason})."
    then = mailing.cutoff if mailing is not None and mailing.cutoff is not None else now
    if who.state == State.PAUSED and (who.paused_until is None or who.paused_until > then):
        until = f" until {who.paused_until:%Y-%m-%d}" if who.paused_until else ""
        return "paused", f"They have paused{until}."
    chosen = await session.get(Subscription, (who.id, edition.id))
    if chosen is None:
        return "not_chosen", f"They have not chosen {edition.name}."
    if who.weekdays_only and cadence.is_weekend_extra(edition.cadence, day):
        return "weekend", "They want nothing on Saturdays and Sundays."
    if mailing is not None and mailing.state == MailingState.CANCELLED:
        return "cancelled", "The mailing was cancelled before they were owed anything; `send` reopens it."
    if mailing is None or mailing.cutoff is None:
        return "would", "They get it when it is sent."
    if chosen.since > mailing.cutoff:
        return "late", (
            f"They chose {edition.name} on {chosen.since:%Y-%m-%d at %H:%M:%S} UTC, after the audience was "
            f"frozen on {mailing.cutoff:%Y-%m-%d at %H:%M:%S} UTC; it counts from the next issue."
        )
    if mailing.enlisted_at is None:
        return "would", "The audience is being put together; they are part of it."
    return "ended", "They were no reader when the audience was put together, and are one again since."


def _of(one: Delivery, mailing: Mailing | None) -> str:
    said = f"{one.code} {one.reply}" if one.code else "nothing"
    pause = ""
    if one.state in WAITING and mailing is not None and mailing.state == MailingState.PAUSED:
        pause = f" The mailing is paused ({mailing.problem})."
    waits = one.state == "owed" and one.slot is not None and one.slot == one.due_at and not one.attempts
    told = SETTLED["waits" if waits else one.state].format(
        relay=one.relay,
        done=one.done_at or one.due_at,
        due=one.due_at,
        said=said,
        reason=one.reason or said,
        attempts=one.attempts,
    )
    return told + pause


def _told(
    address: str, verdict: str, sentence: str, delivery: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {"address": address, "verdict": verdict, "sentence": sentence, "delivery": delivery}


def shown(one: Delivery) -> dict[str, Any]:
    """Return a delivery as editors see it."""
    seen = (
        "subscriber_id",
        "state",
        "reason",
        "attempts",
        "due_at",
        "relay",
        "relay_id",
        "code",
        "reply",
        "done_at",
    )
    return {name: getattr(one, name) for name in seen}


async def deliveries(
    session: AsyncSession, mailing_id: int, state: str | None, after: int, limit: int
) -> list[dict[str, Any]]:
    """Return a mailing's deliveries by subscriber, those above `after`, each with the address if it is known."""
    which = (
        select(Delivery, col(Subscriber.address))
        .outerjoin(Subscriber, col(Subscriber.id) == Delivery.subscriber_id)
        .where(col(Delivery.mailing_id) == mailing_id, col(Delivery.subscriber_id) > after)
        .order_by(col(Delivery.subscriber_id))
        .limit(limit)
    )
    if state is not None:
        which = which.where(col(Delivery.state) == state)
    return [shown(one) | {"address": address} for one, address in await session.execute(which)]

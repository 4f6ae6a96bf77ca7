"""What editors are told of readers, and what they may do for them: add, change, ask again."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict

from sqlalchemy.ext.asyncio import AsyncSession

from app.core.config import Settings
from app.core.errors import Conflict, Fault, Invalid, NotFound
from app.flows import second_thoughts, subscribe, writing
from app.issues import store as issues
from app.subscribers import addresses, store, suppression
from app.subscribers.consent import State
from app.subscribers.imports import cells
from app.subscribers.models import Subscriber
from app.subscribers.store import Origin


class Change(TypedDict, total=False):
    """What an editor changes of a reader; what is left out stays, and None takes a wish or a pause away."""

    name: str
    language: str
    editions: Sequence[str]
    timezone: str | None
    hour: int | None
    weekdays_only: bool
    paused_until: datetime | None


async def view(session: AsyncSession, readers: Sequence[Subscriber]) -> list[dict[str, Any]]:
    """Return readers as editors see them: without tokens."""
    slugs = {one.id: one.slug for one in await issues.editions(session)}
    chosen = await store.choices_of(session, [one.id or 0 for one in readers])
    return [
        {
            "id": one.id,
            "email": one.address,
            "name": one.name,
            "language": one.language,
            "editions": [slugs[edition] for edition in sorted(chosen.get(one.id or 0, ()))],
            "status": one.state,
            "reason": one.reason,
            "paused_until": one.paused_until,
            "timezone": one.timezone,
            "hour": one.hour,
            "weekdays_only": one.weekdays_only,
            "source": one.source,
            "created_at": one.created_at,
            "confirmed_at": one.confirmed_at,
        }
        for one in readers
    ]


async def add(
    session: AsyncSession,
    settings: Settings,
    request: subscribe.Request,
    name: str,
    confirm: bool,
    now: datetime,
) -> Subscriber:
    """Add a reader who asked an editor; with `confirm` they are asked by mail first.

    Raises Invalid for the address or an edition, Conflict when the reader is here or must not be mailed.
    """
    address = addresses.accept(request.address)
    wanted = await issues.chosen(session, request.editions)
    address_hash = address.hashed(settings.suppression_key)
    if await store.by_key(session, address.key) is not None:
        raise Conflict("This reader is here already; search for the address to see how they stand.")
    if await suppression.find(session, address_hash) is not None:
        raise Conflict("This address must not be mailed; see `suppressions list` for the reason.")
    who = await store.add(session, address, address_hash, request.language, request.origin.source, now)
    who.name = cells.clean(name)
    await store.choose(session, who.id or 0, [one.id or 0 for one in wanted], now)
    if confirm:
        await writing.owe(session, who, "confirm", wanted, now)
    else:
        await subscribe.admit(session, who, request.origin, now)
        store.note(session, who, "added", request.origin, now, " ".join(one.slug for one in wanted))
    return who


async def change(
    session: AsyncSession, subscriber_id: int, wanted: Change, origin: Origin, now: datetime
) -> Subscriber:
    """Change a reader as they asked an editor to; no editions at all is leaving.

    Raises NotFound, Invalid for a value, Conflict for the editions or the pause of somebody who has left.
    """
    who = await store.get(session, subscriber_id)
    if "editions" in wanted:
        await _choose(session, who, wanted["editions"], origin, now)
    if until := wanted.get("paused_until"):
        await second_thoughts.pause(session, who, until, origin, now)
    elif "paused_until" in wanted:
        await second_thoughts.resume(session, who, origin, now)
    if "name" in wanted:
        who.name = cells.clean(wanted["name"])
    if "timezone" in wanted:
        who.timezone = _zone(wanted["timezone"])
    who.language = wanted.get("language", who.language)
    who.hour = wanted.get("hour", who.hour)
    who.weekdays_only = wanted.get("weekdays_only", who.weekdays_only)
    await session.flush()
    return who


async def _choose(
    session: AsyncSession, who: Subscriber, slugs: Sequence[str], origin: Origin, now: datetime
) -> None:
    if not slugs:
        await subscribe.leave(session, who, None, origin, now)
    elif who.state == State.PENDING:
        wanted = await issues.chosen(session, slugs)
        await store.choose(session, who.id or 0, [one.id or 0 for one in wanted], now)
        store.note(session, who, "changed", origin, now, " ".join(one.slug for one in wanted))
    elif who.state == State.ENDED:
        raise Conflict(f"The reader has ended ({who.reason}); only they can come back, by signing up again.")
    else:
        await subscribe.change(session, who, slugs, who.language, origin, now)


def _zone(written: str | None) -> str | None:
    try:
        return cells.zone(written) if written else None
    except ValueError as error:
        raise Invalid(f"{error}.", [Fault(str(error), field="timezone")]) from None


async def by_address(session: AsyncSession, written: str) -> Subscriber:
    """Return the reader with this address; raises Invalid for what is no address, NotFound."""
    who = await store.by_key(session, addresses.accept(written).key)
    if who is None:
        raise NotFound("There is no reader with this address.")
    return who


async def record(session: AsyncSession, who: Subscriber) -> dict[str, Any]:
    """Return all that is known of a reader: as `view`, with what they did and why they must not be mailed."""
    barred = await suppression.find(session, who.address_hash)
    proofs = [
        {"at": one.at, "kind": one.kind, "source": one.source, "editions": one.editions.split()}
        for one in await store.proofs(session, who.id or 0)
    ]
    return (await view(session, [who]))[0] | {
        "suppressed": barred.reason if barred else None,
        "consent": proofs,
    }


async def ask_again(session: AsyncSession, who: Subscriber, now: datetime) -> None:
    """Owe a pending reader the confirmation letter once more; raises Conflict when that is not due."""
    if who.state != State.PENDING:
        raise Conflict(f"The reader is {who.state}, so there is nothing to confirm.")
    barred = await suppression.find(session, who.address_hash)
    if barred is not None and barred.reason not in suppression.LIFTED_BY_CONFIRMATION:
        raise Conflict("This address must not be mailed; see `suppressions list` for the reason.")
    chosen = await store.choices(session, who.id or 0)
    wanted = [one for one in await issues.editions(session) if one.id in chosen]
    if not wanted:
        raise Conflict("The reader has chosen no edition; give them one first.")
    if not await writing.owe(session, who, "confirm", wanted, now):
        raise Conflict("The reader was asked less than 24 hours ago.")

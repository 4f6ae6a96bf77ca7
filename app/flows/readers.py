"""What editors are told of readers, and the readers whom they add themselves."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.core.config import Settings
from app.core.errors import Conflict
from app.flows import subscribe
from app.issues import store as issues
from app.subscribers import addresses, store, suppression
from app.subscribers.models import Subscriber


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
    who.name = name
    await store.choose(session, who.id or 0, [one.id or 0 for one in wanted], now)
    if confirm:
        await subscribe.owe_letter(session, who, "confirm", wanted, now)
    else:
        await subscribe.admit(session, who, request.origin, now)
        store.note(session, who, "added", request.origin, now, " ".join(one.slug for one in wanted))
    return who

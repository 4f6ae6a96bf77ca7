"""Queries on subscribers and their choices."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Table, delete, exists, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col
from sqlmodel import select as select_model

from app.core.db import upsert
from app.core.errors import Fault, Invalid, NotFound
from app.mail import headers
from app.subscribers.addresses import Address
from app.subscribers.consent import WORDING, State
from app.subscribers.models import ConsentEvent, Subscriber, Subscription

subscriber: Table = Subscriber.__table__  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a reader's word came from: a source such as `form` or `import:…`, and the network's keyed hash."""

    source: str
    network: bytes | None = None


async def by_key(session: AsyncSession, key: str) -> Subscriber | None:
    """Return the subscriber whose address has this key."""
    return (await session.scalars(select_model(Subscriber).where(Subscriber.address_key == key))).first()


async def find(session: AsyncSession, subscriber_id: int) -> Subscriber | None:
    """Return a subscriber as the database has them now, if they are still there."""
    return await session.get(Subscriber, subscriber_id, populate_existing=True)


async def get(session: AsyncSession, subscriber_id: int) -> Subscriber:
    """Return a subscriber as the database has them now, or raise NotFound."""
    found = await find(session, subscriber_id)
    if found is None:
        raise NotFound("There is no such subscriber.")
    return found


async def held(session: AsyncSession, subscriber_id: int) -> Subscriber | None:
    """Return a subscriber as they are now, held until our transaction ends; None where nobody is there (any more)."""
    which = select_model(Subscriber).where(Subscriber.id == subscriber_id).with_for_update()
    return (await session.scalars(which.execution_options(populate_existing=True))).first()


async def hold(session: AsyncSession, who: Subscriber) -> None:
    """Let no other transaction change this subscriber until ours ends, and see them as they are now."""
    await session.refresh(who, with_for_update=True)


async def add(
    session: AsyncSession, address: Address, address_hash: bytes, language: str, source: str, now: datetime
) -> Subscriber:
    """Add a pending subscriber, held; of two requests at once for one address the later gets the earlier's row."""
    values = {
        "address": address.typed, "address_key": address.key, "address_hash": address_hash,
        "provider": address.provider, "name": "", "language": language, "state": State.PENDING,
        "source": source, "created_at": now,
    }  # fmt: skip
    await session.execute(upsert(session, subscriber).values(values).on_conflict_do_nothing())
    added = select_model(Subscriber).where(Subscriber.address_key == address.key).with_for_update()
    return (await session.scalars(added)).one()


async def choices(session: AsyncSession, subscriber_id: int) -> set[int]:
    """Return the ids of the editions that a subscriber has chosen."""
    which = select(col(Subscription.edition_id)).where(col(Subscription.subscriber_id) == subscriber_id)
    return set((await session.execute(which)).scalars())


async def choose(
    session: AsyncSession, subscriber_id: int, editions: Iterable[int], now: datetime
) -> tuple[set[int], set[int]]:
    """Make these the subscriber's editions; return those added, which count from `now`, and those dropped."""
    wanted, had = set(editions), await choices(session, subscriber_id)
    for edition_id in sorted(wanted - had):
        session.add(Subscription(subscriber_id=subscriber_id, edition_id=edition_id, since=now))
    if dropped := had - wanted:
        mine = col(Subscription.subscriber_id) == subscriber_id
        await session.execute(delete(Subscription).where(mine, col(Subscription.edition_id).in_(dropped)))
    await session.flush()
    return wanted - had, dropped


async def count_from(session: AsyncSession, subscriber_id: int, now: datetime) -> None:
    """Let every choice count from `now`: a reader who has just confirmed is not owed an earlier issue."""
    which = select_model(Subscription).where(Subscription.subscriber_id == subscriber_id)
    for row in await session.scalars(which):
        row.since = now


def note(
    session: AsyncSession, who: Subscriber, kind: str, origin: Origin, now: datetime, editions: str = ""
) -> None:
    """Keep proof of what a reader did, in the words of the time and the language they saw."""
    session.add(
        ConsentEvent(
            subscriber_id=who.id or 0, kind=kind, at=now, wording=WORDING, language=who.language,
            source=origin.source, network=origin.network, editions=editions,
        )
    )  # fmt: skip


async def page(
    session: AsyncSession,
    after: int,
    limit: int,
    q: str = "",
    state: str | None = None,
    edition_id: int | None = None,
) -> Sequence[Subscriber]:
    """Return subscribers with an id above `after`, in order, whose address holds `q`.

    Raises Invalid for a `q` that no address holds and no database takes.
    """
    if headers.clean(q) != q.strip(" "):
        sentence = "A part of an address has no control characters."
        raise Invalid(sentence, [Fault(sentence, field="q")])
    which = (
        select_model(Subscriber).where(col(Subscriber.id) > after).order_by(col(Subscriber.id)).limit(limit)
    )
    if q:
        which = which.where(col(Subscriber.address_key).contains(q.casefold(), autoescape=True))
    if state:
        which = which.where(Subscriber.state == state)
    if edition_id is not None:
        which = which.where(chosen_by(edition_id))
    return (await session.scalars(which)).all()


def chosen_by(edition_id: int) -> ColumnElement[bool]:
    """Return the condition that a subscriber has chosen an edition."""
    return exists().where(
        col(Subscription.subscriber_id) == Subscriber.id, col(Subscription.edition_id) == edition_id
    )


async def proofs(session: AsyncSession, subscriber_id: int) -> Sequence[ConsentEvent]:
    """Return what a subscriber did, in order."""
    which = select_model(ConsentEvent).where(ConsentEvent.subscriber_id == subscriber_id)
    return (await session.scalars(which.order_by(col(ConsentEvent.id)))).all()


async def last_left(session: AsyncSession, subscriber_id: int, since: datetime) -> ConsentEvent | None:
    """Return the last proof after `since` that a subscriber left an edition or all of them."""
    which = select_model(ConsentEvent).where(
        ConsentEvent.subscriber_id == subscriber_id, ConsentEvent.kind == "left", col(ConsentEvent.at) > since
    )
    return (await session.scalars(which.order_by(col(ConsentEvent.id).desc()).limit(1))).first()


async def pauses_over(session: AsyncSession, now: datetime, limit: int) -> Sequence[int]:
    """Return subscribers whose pause has ended and who do not know it yet."""
    over = select(col(Subscriber.id)).where(
        col(Subscriber.state) == State.PAUSED, col(Subscriber.paused_until) <= now
    )
    return [number for number in (await session.execute(over.limit(limit))).scalars() if number is not None]


async def never_confirmed(session: AsyncSession, source: str, before: datetime, limit: int) -> Sequence[int]:
    """Return pending subscribers of a source who never were readers and have not been asked since `before`."""
    asked = exists().where(
        col(ConsentEvent.subscriber_id) == Subscriber.id, col(ConsentEvent.kind) == "asked",
        col(ConsentEvent.at) >= before,
    )  # fmt: skip
    which = select(col(Subscriber.id)).where(
        col(Subscriber.state) == State.PENDING, col(Subscriber.source) == source, col(Subscriber.created_at) < before,
        col(Subscriber.confirmed_at).is_(None), ~asked,
    )  # fmt: skip
    return [number for number in (await session.execute(which.limit(limit))).scalars() if number is not None]


async def remove(session: AsyncSession, subscriber_id: int) -> None:
    """Delete a subscriber, what they chose, and the proof of it."""
    await session.execute(delete(Subscription).where(col(Subscription.subscriber_id) == subscriber_id))
    await session.execute(delete(ConsentEvent).where(col(ConsentEvent.subscriber_id) == subscriber_id))
    await session.execute(delete(Subscriber).where(col(Subscriber.id) == subscriber_id))


async def totals(session: AsyncSession) -> dict[str, int]:
    """Return how many subscribers there are in each state."""
    found = select(col(Subscriber.state), func.count()).group_by(col(Subscriber.state))
    rows = dict((await session.execute(found)).all())
    return {state.value: rows.get(state.value, 0) for state in State}


async def by_keys(session: AsyncSession, keys: Sequence[str]) -> dict[str, Subscriber]:
    """Return the subscribers whose addresses have these keys."""
    which = select_model(Subscriber).where(col(Subscriber.address_key).in_(keys))
    return {one.address_key: one for one in await session.scalars(which)}


async def choices_of(session: AsyncSession, subscriber_ids: Sequence[int]) -> dict[int, set[int]]:
    """Return the ids of the editions that each of these subscribers has chosen."""
    which = select_model(Subscription).where(col(Subscription.subscriber_id).in_(subscriber_ids))
    found: dict[int, set[int]] = {}
    for row in await session.scalars(which):
        found.setdefault(row.subscriber_id, set()).add(row.edition_id)
    return found

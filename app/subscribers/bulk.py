"""Many readers at once: three look-ups for a batch, and one INSERT for each table, whatever its size."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Table, literal, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.core.db import upsert
from app.subscribers.consent import WORDING, State
from app.subscribers.imports.candidate import Plan
from app.subscribers.imports.decide import LASTING, Known, Ready
from app.subscribers.models import ConsentEvent, ImportSeen, Subscriber, Subscription, Suppression
from app.subscribers.store import chosen_by

subscriber: Table = Subscriber.__table__  # type: ignore[attr-defined]
subscription: Table = Subscription.__table__  # type: ignore[attr-defined]
consent_event: Table = ConsentEvent.__table__  # type: ignore[attr-defined]
suppression: Table = Suppression.__table__  # type: ignore[attr-defined]
import_seen: Table = ImportSeen.__table__  # type: ignore[attr-defined]


async def known(session: AsyncSession, keys: Sequence[str]) -> dict[str, Known]:
    """Return who is here already, by the keys of their addresses."""
    columns = (subscriber.c.address_key, subscriber.c.id, subscriber.c.state, subscriber.c.reason)
    found = await session.execute(select(*columns).where(subscriber.c.address_key.in_(keys)))
    return {row[0]: Known(*row[1:]) for row in found}


async def barred(session: AsyncSession, hashes: Sequence[bytes]) -> set[bytes]:
    """Return those of the hashes that are suppressed."""
    which = select(suppression.c.address_hash).where(suppression.c.address_hash.in_(hashes))
    return set((await session.execute(which)).scalars())


async def seen(session: AsyncSession, job_id: int, digests: Sequence[int]) -> set[int]:
    """Return those of the digests that stood in the file before, and keep them all."""
    which = select(import_seen.c.digest).where(
        import_seen.c.job_id == job_id, import_seen.c.digest.in_(digests)
    )
    before = set((await session.execute(which)).scalars())
    rows = [{"job_id": job_id, "digest": each} for each in dict.fromkeys(digests) if each not in before]
    if rows:
        await session.execute(import_seen.insert(), rows)
    return before


async def admit(
    session: AsyncSession, rows: Sequence[Ready], plan: Plan, editions: Mapping[str, int], now: datetime
) -> None:
    """Add readers with their choices, the proof of their consent, and the suppressions that their end brings.

    `editions` are ids by slug. With `plan.confirm` who would be active is pending; their letter is another's task.
    """
    if not rows:
        return
    await session.execute(subscriber.insert(), [_reader(one, plan, now) for one in rows])
    found = await known(session, [one.address.key for one in rows])
    groups: dict[tuple[tuple[str, ...], bool], list[int]] = {}
    for one in rows:
        which = tuple(sorted(choice(one, plan))), _is_admitted(one, plan)
        groups.setdefault(which, []).append(found[one.address.key].id)
    for (slugs, is_admitted), ids in groups.items():
        for slug in slugs:
            await _choose(session, ids, editions[slug], now)
        if is_admitted:
            await _prove(session, ids, slugs, now)
    await bar(session, ((one.hashed, one.row.reason) for one in rows if one.row.reason in LASTING), now)


async def bar(session: AsyncSession, which: Iterable[tuple[bytes, str | None]], now: datetime) -> None:
    """Suppress addresses by their hashes; one that is suppressed already keeps its first reason."""
    rows = [{"address_hash": each, "reason": reason, "note": "", "since": now} for each, reason in which]
    if rows:
        await session.execute(upsert(session, suppression).on_conflict_do_nothing(), rows)


def choice(one: Ready, plan: Plan) -> tuple[str, ...]:
    """Return the editions of a row; the plan's count where it names none, but not for who has ended."""
    if one.slugs is not None:
        return one.slugs
    return () if one.row.status == State.ENDED else plan.editions


def _is_admitted(one: Ready, plan: Plan) -> bool:
    return one.row.status in (State.ACTIVE, State.PAUSED) and not plan.confirm


def _reader(one: Ready, plan: Plan, now: datetime) -> dict[str, Any]:
    row = one.row
    asked = plan.confirm and row.status in (State.ACTIVE, State.PAUSED)
    return {
        "address": one.address.typed,
        "address_key": one.address.key,
        "address_hash": one.hashed,
        "provider": one.address.provider,
        "name": row.name,
        "language": row.language or plan.language,
        "timezone": row.timezone,
        "hour": row.hour,
        "state": State.PENDING if asked else row.status,
        "reason": row.reason,
        "paused_until": None if asked else row.paused_until,
        "source": row.source or plan.source,
        "created_at": row.created_at or now,
        "confirmed_at": None if asked else row.confirmed_at or (now if _is_admitted(one, plan) else None),
    }


async def _choose(session: AsyncSession, ids: Sequence[int], edition_id: int, now: datetime) -> None:
    """Let these readers choose an edition."""
    rows = select(subscriber.c.id, literal(edition_id), literal(now, subscription.c.since.type)).where(
        subscriber.c.id.in_(ids)
    )
    await session.execute(subscription.insert().from_select(["subscriber_id", "edition_id", "since"], rows))


async def _prove(session: AsyncSession, ids: Sequence[int], slugs: Sequence[str], now: datetime) -> None:
    """Keep the proof of consent that these readers came with: their source."""
    rows = select(
        subscriber.c.id, literal("imported"), literal(now, consent_event.c.at.type), literal(WORDING),
        subscriber.c.language, subscriber.c.source, literal(" ".join(slugs)[:400]),
    ).where(subscriber.c.id.in_(ids))  # fmt: skip
    columns = ["subscriber_id", "kind", "at", "wording", "language", "source", "editions"]
    await session.execute(consent_event.insert().from_select(columns, rows))


async def page(
    session: AsyncSession, after: int, limit: int, state: str | None, edition_id: int | None
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the rows of readers with an id above `after`, in order, without the weight of objects."""
    which = select(subscriber).where(subscriber.c.id > after).order_by(subscriber.c.id).limit(limit)
    if state is not None:
        which = which.where(subscriber.c.state == state)
    if edition_id is not None:
        which = which.where(chosen_by(edition_id))
    return (await session.execute(which)).all()


async def choices(session: AsyncSession, subscriber_ids: Sequence[int]) -> dict[int, list[int]]:
    """Return the ids of the editions that each of these subscribers has chosen."""
    which = select(subscription.c.subscriber_id, subscription.c.edition_id).where(
        subscription.c.subscriber_id.in_(subscriber_ids)
    )
    found: dict[int, list[int]] = {}
    for subscriber_id, edition_id in await session.execute(which):
        found.setdefault(subscriber_id, []).append(edition_id)
    return found

"""What delivery stories share: many readers at once, a clock that is turned while all wait, and the accounts after."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import insert, select

from app.delivery.models import Delivery
from app.issues import store
from app.subscribers.models import Subscriber, Subscription
from tests.world import World

delivery = Delivery.__table__  # type: ignore[attr-defined]


async def gather(world: World, addresses: Sequence[str], edition: str = "daily") -> list[int]:
    """Add active readers of an edition in two statements, and return their ids; nobody checks the addresses."""
    now = world.clock()
    async with world.db.transaction() as session:
        edition_id = (await store.edition(session, edition)).id
        people = [
            {
                "address": address, "address_key": address, "address_hash": address.encode(), "provider": "",
                "name": "", "language": "zh", "state": "active", "source": "test", "created_at": now,
            }
            for address in addresses
        ]  # fmt: skip
        await session.execute(insert(Subscriber), people)
        table = Subscriber.__table__  # type: ignore[attr-defined]
        found = select(table.c.address, table.c.id).where(table.c.address.in_(addresses))
        known: dict[str, int] = dict((await session.execute(found)).all())
        ids = [known[address] for address in addresses]
        rows = [{"subscriber_id": who, "edition_id": edition_id, "since": now} for who in ids]
        await session.execute(insert(Subscription), rows)
    return ids


async def crowd(world: World, count: int, edition: str = "daily", prefix: str = "r") -> list[str]:
    """Add so many active readers of an edition and return their addresses."""
    addresses = [f"{prefix}{number}@example.com" for number in range(count)]
    await gather(world, addresses, edition)
    return addresses


async def patiently(world: World, mailing_id: int, minutes: float = 6, turns: int = 40) -> dict[str, Any]:
    """Turn the clock whenever nothing is left but mails that wait for a later try; return the finished mailing."""
    async with asyncio.timeout(60):
        while (shown := await world.mailing(mailing_id))["state"] != "finished":
            at_rest = shown["state"] == "sending" and not shown["in_flight"]
            if at_rest and (shown["deferred"] or shown["owed"]) and not await due_now(world, mailing_id):
                assert (turns := turns - 1), f"they wait for ever: {shown}"
                world.clock.forward(minutes=minutes)
                world.house.wake.call()
            await asyncio.sleep(0.02)
    return shown


async def due_now(world: World, mailing_id: int) -> int:
    """Return how many deliveries wait that could be claimed at once."""
    return sum(
        row.state in ("owed", "deferred") and row.due_at <= world.clock()
        for row in await rows(world, mailing_id)
    )


async def rows(world: World, mailing_id: int) -> Sequence[Any]:
    """Return a mailing's deliveries as the database has them."""
    async with world.db.reading() as session:
        found = select(delivery).where(delivery.c.mailing_id == mailing_id)
        return (await session.execute(found.order_by(delivery.c.subscriber_id))).all()


async def accounts(world: World, mailing_id: int, readers: Sequence[str]) -> tuple[int, int]:
    """Assert that the books balance and that nobody foreign got anything; return (lost, duplicates).

    Lost is whoever the books call sent without a mail at the sink, or still owe something when all is over.
    """
    counts = await world.books_balance(mailing_id)
    got = Counter(world.sink.recipients())
    assert not set(got) - set(readers)
    missing = [reader for reader in readers if reader not in got]
    excused = sum(many for state, many in counts.items() if state not in ("sent", "uncertain"))
    return max(0, len(missing) - excused), sum(many - 1 for many in got.values())

"""Who is due an edition: those who wanted it before the cutoff, still do, and may be mailed."""

from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlmodel import col

from app.core.db import run
from app.core.tokens import Purpose
from app.subscribers import audience
from app.subscribers.consent import Reason, State
from app.subscribers.models import Subscriber
from tests.web import reading
from tests.world import World

DAILY, WEEKLY = 1, 2


async def due(world: World, edition: int, cutoff: datetime | None = None) -> list[int]:
    """Return the ids of who is due an edition, by default of a cutoff a moment from now."""
    moment = cutoff or world.clock() + timedelta(seconds=1)
    async with world.db.reading() as session:
        rows = await session.execute(audience.readers_of(edition, moment))
        return sorted(row.subscriber_id for row in rows)


async def standing(world: World, edition: int, moment: datetime | None = None) -> dict[int, str]:
    """Return how everybody stands to an edition that they may be owed."""
    async with world.db.reading() as session:
        everybody = list((await session.scalars(select(col(Subscriber.id)))).all())
        who = audience.addressees(edition)
        rows = await run(session, who.run, who=everybody, now=moment or world.clock())
        return {row[0]: row[-1] for row in rows}


async def put(world: World, reader: int, **values: object) -> None:
    async with world.db.transaction() as session:
        await session.execute(update(Subscriber).where(col(Subscriber.id) == reader).values(values))


async def test_each_edition_has_its_own_readers(world: World) -> None:
    daily = await world.reader("d@example.com", "daily")
    weekly = await world.reader("w@example.com", "weekly")
    both = await world.reader("b@example.com", "daily", "weekly")
    assert await due(world, DAILY) == [daily, both]
    assert await due(world, WEEKLY) == [weekly, both]
    assert await due(world, 99) == []


async def test_only_who_is_active_is_due(world: World) -> None:
    readers = {state: await world.reader(f"{state}@example.com") for state in State}
    for state, reader in readers.items():
        await put(world, reader, state=state)
    assert await due(world, DAILY) == [readers[State.ACTIVE]]
    found = await standing(world, DAILY)
    assert {state: found[reader] for state, reader in readers.items()} == {
        State.ACTIVE: "due",
        State.PENDING: "left",
        State.PAUSED: "left",
        State.ENDED: "left",
    }


async def test_a_pause_is_over_when_its_time_has_come(world: World) -> None:
    reader = await world.reader("r@example.com")
    until = world.clock() + timedelta(days=7)
    await put(world, reader, state=State.PAUSED, paused_until=until)
    assert await due(world, DAILY, until - timedelta(seconds=1)) == []
    assert await due(world, DAILY, until) == [reader]
    assert (await standing(world, DAILY, until))[reader] == "due"


async def test_who_chose_after_the_cutoff_gets_the_next_issue(world: World) -> None:
    cutoff = world.clock()
    world.clock.forward(seconds=1)
    reader = await world.reader("late@example.com")
    assert await due(world, DAILY, cutoff) == []
    assert await due(world, DAILY) == [reader]


async def test_a_suppression_outranks_every_subscription(world: World) -> None:
    readers = [await world.reader(f"{reason}@example.com", "daily", "weekly") for reason in Reason]
    free = await world.reader("free@example.com")
    for reason in Reason:
        await reading.suppress(world, f"{reason}@EXAMPLE.com", reason)
    assert await due(world, DAILY) == [free]
    assert await due(world, WEEKLY) == []
    found = await standing(world, DAILY)
    assert {found[reader] for reader in readers} == {"suppressed"}
    assert found[free] == "due"


async def test_a_switch_moves_a_reader_from_one_audience_to_the_other(world: World) -> None:
    reader = await world.reader("r@example.com", "daily")
    before = world.clock()
    world.clock.forward(seconds=1)
    url = world.house.composer.link(Purpose.PREFERENCES, reader)
    await world.web.post(url, data={"editions": "weekly", "language": "zh"})
    assert await due(world, DAILY) == []
    assert await due(world, WEEKLY, before) == []
    assert await due(world, WEEKLY) == [reader]
    assert (await standing(world, DAILY))[reader] == "left"


async def test_saving_the_same_choice_again_moves_nobody(world: World) -> None:
    reader = await world.reader("r@example.com", "daily")
    cutoff = world.clock()
    world.clock.forward(seconds=1)
    url = world.house.composer.link(Purpose.PREFERENCES, reader)
    await world.web.post(url, data={"editions": "daily", "language": "zh"})
    assert await due(world, DAILY, cutoff) == [reader]

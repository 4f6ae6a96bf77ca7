"""A reader gets an issue at the hour they chose, where they are, and never behind the next issue."""

import asyncio
from datetime import date, datetime, timedelta
from email import message_from_bytes
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update
from sqlmodel import col

from app.delivery import mailings
from app.delivery.models import Delivery
from app.sending import deliver
from app.subscribers.models import Subscriber
from tests.sink import Mail, Sink, accept_then, at
from tests.world import DAY, START, World, house_at, recipients

SATURDAY, SUNDAY, MONDAY = (date(2026, 10, day) for day in (24, 25, 26))
WAITING = 6  # hours until 14:00 in Shanghai, from 08:00


async def reader_at(world: World, address: str, hour: int | None, zone: str | None = "Asia/Shanghai") -> int:
    number = await world.reader(address)
    async with world.db.transaction() as session:
        which = update(Subscriber).where(col(Subscriber.id) == number)
        await session.execute(which.values(hour=hour, timezone=zone))
    return number


async def owed(world: World, mailing: int) -> None:
    """Let the audience be put together without sending."""
    async with world.db.transaction() as session:
        for _ in range(2):
            await world.enlist(session, mailing)
    async with world.db.transaction() as session:
        await deliver.look_after(session, world.clock())


async def rows(world: World) -> dict[int, Any]:
    async with world.db.reading() as session:
        return {row.subscriber_id: row for row in await session.execute(select(Delivery.__table__))}  # type: ignore[attr-defined]


async def test_some_get_it_at_once_and_some_at_their_hour(world: World) -> None:
    await send_at_hours(world)


async def test_postgresql_keeps_their_hours_too(
    postgres_url: str, tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    async with house_at(tmp_path, empty_database, sink, database_url=postgres_url) as world:
        await send_at_hours(world)


async def send_at_hours(world: World) -> None:
    """Send to readers with and without an hour, and see each mail at its own."""
    for address, hour, zone in (
        ("any@example.com", None, None),
        ("just@example.com", 7, "Asia/Shanghai"),
        ("home@example.com", 14, None),  # the edition's own zone
        ("noon@example.com", 14, "Asia/Shanghai"),
    ):
        await reader_at(world, address, hour, zone)
    mailing = await world.send(await world.issue())
    async with world.working():
        await world.until(mailing, "sending")
        while len(world.sink.mails) < 2:
            await world.until(mailing, "sending")
        assert recipients(world.sink.mails) == ["any@example.com", "just@example.com"]
        world.clock.forward(hours=WAITING)
        await world.until(mailing)
    assert [mail.recipient for mail in world.sink.mails][2:] in (
        ["home@example.com", "noon@example.com"],
        ["noon@example.com", "home@example.com"],
    )
    await world.books_balance(mailing)


async def test_a_mail_for_their_hour_is_dated_with_it_and_a_retry_has_the_same_bytes(world: World) -> None:
    await reader_at(world, "any@example.com", None)
    await reader_at(world, "noon@example.com", 14)
    mailing = await world.send(await world.issue())
    async with world.working():
        while not world.sink.mails:
            await world.until(mailing, "sending")
        world.sink.script = at("dot", accept_then("close"), times=1)
        world.clock.forward(hours=WAITING)
        while len(world.sink.mails) < 2 or (await world.mailing(mailing))["in_flight"]:
            await asyncio.sleep(0.01)
        world.clock.forward(hours=1)
        await world.until(mailing)
    soon, noon, again = world.sink.mails
    started = (await mailing_row(world, mailing)).started_at
    assert dated(soon) == started.replace(microsecond=0)
    assert dated(noon) == START + timedelta(hours=WAITING)
    assert (noon.recipient, noon.data) == ("noon@example.com", again.data)


async def test_who_waits_is_told_so_to_an_editor_who_asks_why(world: World) -> None:
    await reader_at(world, "noon@example.com", 14)
    issue = await world.issue()
    await owed(world, await world.send(issue))
    answer = await world.api.post(f"/issues/{issue}/why", json={"address": "noon@example.com"})
    assert (
        answer.json()["sentence"]
        == "They are owed this issue at the hour they chose: 2026-10-26 at 06:00 UTC."
    )


async def test_the_time_to_live_counts_from_the_hour(world: World) -> None:
    early, noon = (
        await reader_at(world, "early@example.com", None),
        await reader_at(world, "noon@example.com", 14),
    )
    mailing = await world.send(await world.issue())
    await owed(world, mailing)
    life = (await mailing_row(world, mailing)).time_to_live
    world.clock.forward(seconds=life + 60)
    await settle(world)
    assert [(await rows(world))[who].state for who in (early, noon)] == ["expired", "owed"]
    world.clock.forward(hours=WAITING)
    await settle(world)
    assert (await rows(world))[noon].state == "expired"
    assert (await world.mailing(mailing))["state"] == "finished"
    await world.books_balance(mailing)


async def test_nobody_waits_past_the_next_issue(world: World) -> None:
    noon = await reader_at(world, "noon@example.com", 14)
    first = await world.send(await world.issue(day=DAY))
    await owed(world, first)
    assert (await rows(world))[noon].due_at == START + timedelta(hours=WAITING)
    await world.send(await world.issue(day=DAY + timedelta(days=1)))
    assert (await rows(world))[noon].due_at < START + timedelta(minutes=5)


async def test_a_cancelled_and_reopened_mailing_still_waits_for_the_hour(world: World) -> None:
    noon = await reader_at(world, "noon@example.com", 14)
    issue = await world.issue()
    mailing = await world.send(issue)
    await owed(world, mailing)
    await world.api.post(f"/mailings/{mailing}/cancel")
    assert (await rows(world))[noon].state == "withdrawn"
    await world.send(issue)
    again = (await rows(world))[noon]
    assert (again.state, again.due_at) == ("owed", START + timedelta(hours=WAITING))


@pytest.mark.parametrize(("edition", "day", "comes"), [
    ("daily", SATURDAY, False), ("daily", SUNDAY, False), ("daily", MONDAY, True), ("weekly", SUNDAY, True),
])  # fmt: skip
async def test_weekdays_only_is_silence_on_weekends_for_what_comes_on_weekdays_too(
    world: World, edition: str, day: date, comes: bool
) -> None:
    quiet = await world.reader("quiet@example.com", edition)
    async with world.db.transaction() as session:
        await session.execute(
            update(Subscriber).where(col(Subscriber.id) == quiet).values(weekdays_only=True)
        )
    await world.reader("all@example.com", edition)
    issue = await world.issue(edition, day)
    await world.deliver(await world.send(issue))
    assert ("quiet@example.com" in world.sink.recipients()) == comes
    if not comes:
        answer = await world.api.post(f"/issues/{issue}/why", json={"address": "quiet@example.com"})
        assert answer.json()["verdict"] == "weekend"


def dated(mail: Mail) -> datetime:
    """Return a mail's Date."""
    return parsedate_to_datetime(message_from_bytes(mail.data)["Date"])


async def mailing_row(world: World, mailing: int) -> Any:
    async with world.db.reading() as session:
        return await mailings.get(session, mailing)


async def settle(world: World) -> None:
    async with world.db.transaction() as session:
        await deliver.look_after(session, world.clock())

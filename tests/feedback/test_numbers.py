"""Editors see what came back in numbers, are warned before a limit is reached, and a storm stops its mailing."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from app.feedback import policy
from app.feedback.policy import Level
from app.flows import numbers
from tests import sink as sinking
from tests.crowd import crowd
from tests.feedback import desk
from tests.feedback.desk import BOUNCES
from tests.sink import Sink
from tests.sink_session import Action, Event
from tests.world import World, house_at


@pytest.fixture
async def hearing(tmp_path: Path, empty_database: Path, sink: Sink) -> AsyncIterator[World]:
    """A world whose mails have a return path of their own."""
    async with house_at(tmp_path, empty_database, sink, bounce_domain=BOUNCES) as world:
        yield world


def path_to(world: World, address: str) -> str:
    """Return the return path of the last mail to a reader."""
    return next(mail.sender for mail in reversed(world.sink.mails) if mail.recipient == address)


async def hand_in(world: World, address: str, mail: bytes) -> None:
    """Let a mail come to the return path of the last mail to a reader."""
    answer = await world.api.post("/hooks/mail", content=mail, params={"to": path_to(world, address)})
    assert answer.status_code == 202, answer.text


async def bounces(world: World, *addresses: str, **how: str) -> None:
    for address in addresses:
        await hand_in(world, address, desk.returned(path_to(world, address), **how))


async def complains(world: World, *addresses: str) -> None:
    for address in addresses:
        await hand_in(world, address, desk.complaint(path_to(world, address)))


async def told(world: World) -> dict[str, Any]:
    """Return the numbers as an editor is told them."""
    answer = await world.api.get("/numbers")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def row(rows: list[dict[str, Any]], **named: str) -> dict[str, Any]:
    (found,) = [one for one in rows if named.items() <= one.items()]
    return found


# -- the limits


@pytest.mark.parametrize(
    ("sent", "complained", "level"),
    [
        (0, 0, Level.FEW),
        (999, 999, Level.FEW),
        (1_000, 0, Level.FINE),
        (10_000, 7, Level.FINE),
        (10_000, 8, Level.NEAR),
        (10_000, 9, Level.NEAR),
        (10_000, 10, Level.OVER),
        (1_000, 1, Level.OVER),
        (10_000, 29, Level.OVER),
        (10_000, 30, Level.TOO_HIGH),
        (1_000, 3, Level.TOO_HIGH),
    ],
)
def test_a_share_of_complaints_stands_to_the_limits_of_gmail_and_yahoo(
    sent: int, complained: int, level: Level
) -> None:
    assert policy.level(sent, complained) is level


@pytest.mark.parametrize(
    ("sent", "bounced", "complained", "kind"),
    [
        (199, 199, 0, None),
        (200, 10, 0, None),
        (200, 11, 0, "bounces"),
        (999, 0, 999, None),
        (1_000, 50, 3, None),
        (1_000, 0, 4, "complaints"),
        (1_000, 51, 4, "bounces"),
    ],
)
def test_what_a_storm_is(sent: int, bounced: int, complained: int, kind: str | None) -> None:
    problem = policy.storm(sent, bounced, complained)
    assert (problem and problem.partition(":")[0]) == kind


# -- by mailing, edition and provider


async def test_what_came_back_is_counted_by_mailing_edition_and_provider(hearing: World) -> None:
    here = ["a@gmail.com", "b@gmail.com", "c@gmail.com", "d@qq.com", "e@example.com"]
    for address in here:
        await hearing.reader(address, "daily", "weekly")
    daily = await hearing.send(await hearing.issue())
    await hearing.deliver(daily)
    await bounces(hearing, "a@gmail.com")
    await bounces(hearing, "a@gmail.com", "b@gmail.com", "d@qq.com", status="4.2.2", said="452 4.2.2 full")
    await complains(hearing, "e@example.com")
    await hand_in(hearing, "c@gmail.com", b"From: c@gmail.com\r\nSubject: unsubscribe\r\n\r\n")
    await desk.act(hearing)
    weekly = await hearing.send(await hearing.issue("weekly"))
    await hearing.deliver(weekly)
    await bounces(hearing, "d@qq.com")
    await desk.act(hearing)
    await numbers.count_reach(hearing.db)

    first, second = await hearing.mailing(daily), await hearing.mailing(weekly)
    names = ("sent", "bounced_hard", "bounced_soft", "complained", "left")
    assert [first[name] for name in names] == [5, 1, 2, 1, 1]
    assert [second[name] for name in names] == [3, 1, 0, 0, 0]

    found = await told(hearing)
    rates = ("sent", "bounced_hard", "bounced_soft", "complained", "bounce_rate", "complaint_rate", "level")
    few = Level.FEW.value
    assert [row(found["editions"], edition="daily")[name] for name in (*rates, "left")] == [
        5, 1, 2, 1, 0.2, 0.2, few, 1,
    ]  # fmt: skip
    assert [row(found["editions"], edition="weekly")[name] for name in rates] == [3, 1, 0, 0, 0.33333, 0, few]
    assert [one["provider"] for one in found["providers"]] == ["gmail", "qq", "other"]
    assert [row(found["providers"], provider="gmail")[name] for name in rates[:4]] == [5, 1, 1, 0]
    assert [row(found["providers"], provider="qq")[name] for name in rates[:4]] == [2, 1, 1, 0]
    assert [row(found["providers"], provider="other")[name] for name in rates[:4]] == [1, 0, 0, 1]
    assert found["warnings"] == []


async def test_numbers_look_back_as_far_as_they_are_asked_to(hearing: World) -> None:
    await desk.sent(hearing, "a@gmail.com")
    hearing.clock.forward(days=40)
    assert (await told(hearing))["editions"] == []
    answer = await hearing.api.get("/numbers?days=60")
    assert [one["edition"] for one in answer.json()["editions"]] == ["daily"]
    assert (await hearing.api.get("/numbers?days=366")).status_code == 422


# -- storms, with a mailing that is under way, since its last reader is to be tried later


async def begun(world: World, count: int) -> tuple[int, list[str]]:
    """Send to so many readers but for one who is asked to wait; return the mailing and those who have it."""
    people = await crowd(world, count + 1)

    def script(event: Event) -> Action | None:
        late = event.stage == "rcpt" and event.recipient == people[-1]
        return sinking.reply("450 4.2.0 the server is not ready, come again") if late else None

    world.sink.script = script
    mailing = await world.send(await world.issue())
    async with world.working(), asyncio.timeout(60):
        while (await world.mailing(mailing))["sent"] < count:
            await asyncio.sleep(0.05)
    return mailing, people[:-1]


async def heard(world: World) -> None:
    """Let a worker hear what came back."""
    async with world.working(), asyncio.timeout(60):
        while "waiting" in await desk.states(world):
            await asyncio.sleep(0.02)


async def test_a_mailing_with_a_storm_of_bounces_pauses_itself_and_says_why(hearing: World) -> None:
    mailing, people = await begun(hearing, 200)
    await bounces(hearing, *people[:10])
    await heard(hearing)
    assert (await hearing.mailing(mailing))["state"] == "sending"
    await bounces(hearing, people[10])
    async with hearing.working():
        shown = await hearing.until(mailing, "paused")
    assert shown["problem"].startswith("bounces: 11 of 200 mails came back for good")
    assert (await hearing.api.post(f"/mailings/{mailing}/resume")).status_code == 200
    await bounces(hearing, *people[11:13])
    await heard(hearing)
    shown = await hearing.mailing(mailing)
    assert (shown["state"], shown["bounced_hard"]) == ("sending", 13)
    await hearing.books_balance(mailing)


async def test_complaints_are_warned_of_before_the_limits_and_a_storm_of_them_stops_the_mailing(
    hearing: World,
) -> None:
    mailing, people = await begun(hearing, 1_100)
    said = []
    for one in people[:4]:
        await complains(hearing, one)
        await heard(hearing)
        (warning,) = (await told(hearing))["warnings"]
        said.append((warning, (await hearing.mailing(mailing))["state"]))
    want = "Gmail and Yahoo want less than 0.1 %."
    assert said == [
        ("daily: 0.09% of the readers complain, which is near 0.1 %.", "sending"),
        (f"daily: 0.18% of the readers complain; {want}", "sending"),
        (f"daily: 0.27% of the readers complain; {want}", "sending"),
        ("daily: 0.36% of the readers complain; from 0.3 % on, Gmail and Yahoo block senders.", "paused"),
    ]
    assert (await hearing.mailing(mailing))["problem"].startswith("complaints: 4 of 1,100 readers")

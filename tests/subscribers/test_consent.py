"""Consent moves along written lines, and every move of a reader's leaves proof without telling where they live."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import httpx
import pytest

from app import main
from app.subscribers import consent
from app.subscribers.consent import MOVES, WORDING, State
from app.subscribers.models import ConsentEvent
from app.web import origin as door
from tests.web import reading
from tests.web.reading import ask, ask_and_confirm, events
from tests.world import START, World

ALLOWED = {
    ("pending", "active"),
    ("pending", "ended"),
    ("active", "paused"),
    ("active", "ended"),
    ("paused", "active"),
    ("paused", "ended"),
    ("ended", "active"),
    ("ended", "pending"),
}


@pytest.mark.parametrize(("current", "wanted"), list(product(State, State)))
def test_only_the_moves_that_are_written_down_may_be_made(current: State, wanted: State) -> None:
    assert consent.may_move(current, wanted) == (current == wanted or (current, wanted) in ALLOWED)


def test_every_state_has_its_moves() -> None:
    assert set(MOVES) == set(State)


async def test_every_word_of_a_reader_is_proved_by_time_wording_language_source_and_network(
    world: World,
) -> None:
    preferences = await ask_and_confirm(world, "r@example.com", "daily", language="en")
    await world.web.post(preferences, data={"editions": ["daily", "weekly"], "language": "zh"})
    out = reading.link((await _issue(world)).data, "u")
    await world.web.post(out, data={"List-Unsubscribe": "One-Click"})
    await world.web.post(f"{preferences}/leave")

    found = await events(world, "r@example.com")
    told = [(event.kind, event.source, event.language, event.editions) for event in found]
    assert told == [
        ("asked", "form", "en", "daily"),
        ("confirmed", "form", "en", "daily"),
        ("changed", "preferences", "zh", "daily weekly"),
        ("left", "unsubscribe", "zh", "daily"),
        ("left", "preferences", "zh", "weekly"),
    ]
    for event in found:
        assert event.wording == WORDING
        assert event.network is not None
        assert len(event.network) == 32
        assert timedelta() <= event.at - START < timedelta(hours=1)
        assert event.at.tzinfo == UTC


async def _issue(world: World) -> Any:
    world.sink.forget()
    await world.deliver(await world.send(await world.issue("daily")))
    return world.sink.mails[0]


async def _asked_from(world: World, address: str, host: str) -> ConsentEvent:
    transport = httpx.ASGITransport(main.build(world.house), client=(host, 4711))
    async with httpx.AsyncClient(transport=transport, base_url=reading.BASE) as browser:
        form = {"email": address, "editions": "daily", "language": "zh", "stamp": reading.stamp(world)}
        await browser.post("/subscribe", data=form)
    await reading.answered(world)
    return (await events(world, address))[-1]


async def test_the_network_itself_is_nowhere_and_neighbours_have_the_same_hash(world: World) -> None:
    hosts = [
        "203.0.113.7",
        "203.0.113.200",
        "203.0.114.7",
        "2001:db8:1:2::3",
        "2001:db8:1:2:f::9",
        "2001:db8:1:3::3",
    ]
    found = [await _asked_from(world, f"r{at}@example.com", host) for at, host in enumerate(hosts)]
    networks = [event.network for event in found]
    assert networks[0] == networks[1] != networks[2]
    assert networks[3] == networks[4] != networks[5]
    dump = repr(await reading.everything(world))
    assert "203.0" not in dump
    assert "2001:db8" not in dump


@pytest.mark.parametrize(
    ("host", "same"),
    [("::ffff:203.0.113.9", "203.0.113.7"), ("fe80::1%eth0", "fe80::2"), ("unix", ""), ("", "testclient")],
)
async def test_a_network_written_otherwise_is_the_same_one(world: World, host: str, same: str) -> None:
    assert door.network_hash(host, world.house) == door.network_hash(same, world.house)
    assert (await _asked_from(world, "r@example.com", host)).kind == "asked"


async def test_the_hash_of_a_network_cannot_be_made_without_the_key(world: World) -> None:
    event = await _asked_from(world, "r@example.com", "203.0.113.7")
    assert event.network == door.network_hash("203.0.113.1", world.house)
    other = world.house.settings.model_copy(update={"suppression_key": "o" * 40})
    assert door.network_hash("203.0.113.1", replace(world.house, settings=other)) != event.network


async def test_asking_twice_is_proved_twice_and_confirming_once(world: World) -> None:
    await ask(world, "r@example.com", "daily")
    await world.letters(1)
    await ask_and_confirm(world, "other@example.com")
    await ask(world, "r@example.com", "weekly")
    assert [(event.kind, event.editions) for event in await events(world, "r@example.com")] == [
        ("asked", "daily"),
        ("asked", "weekly"),
    ]
    moments = [event.at for event in await events(world, "r@example.com")]
    assert moments == sorted(moments)
    assert isinstance(moments[0], datetime)

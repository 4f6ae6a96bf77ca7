"""Whoever abuses the form gets little mail sent, learns nothing, and keeps nobody out for long."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine, event

from app import main
from app.core.tokens import Purpose, day_number
from app.subscribers.consent import Reason, State
from tests.sink import Sink
from tests.web import reading
from tests.web.reading import link, who_is
from tests.world import World, house_at

PRODUCT = {"signups_a_network": 5, "form_seconds": 2}
PUBLIC = "93.184.216.34"


@pytest.fixture
async def strict(tmp_path: Path, empty_database: Path, sink: Sink) -> AsyncIterator[World]:
    """A house with the product's own limits."""
    async with house_at(tmp_path, empty_database, sink, **PRODUCT) as world:
        yield world


@asynccontextmanager
async def coming_from(world: World, host: str, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
    """Give a browser whose network is that of `host`."""
    transport = httpx.ASGITransport(main.build(world.house), client=(host, 4711))
    async with httpx.AsyncClient(transport=transport, base_url=reading.BASE, headers=headers) as browser:
        yield browser


def filled(world: World, address: str, **more: str) -> dict[str, str]:
    return {"email": address, "editions": "daily", "language": "zh", "stamp": reading.stamp(world)} | more


def owed(rows: dict[str, list[str]]) -> int:
    return len(rows["letter"])


@contextmanager
def statements() -> Iterator[list[str]]:
    """Collect every statement that the database is asked to run."""
    seen: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)  # whichever connection of ours it is
    yield seen
    event.remove(Engine, "before_cursor_execute", note)


async def test_a_thousand_requests_for_one_address_are_one_letter_and_one_answer(strict: World) -> None:
    answers = set()
    async with coming_from(strict, PUBLIC) as browser:
        for _ in range(1_000):
            answer = await browser.post("/subscribe", data=filled(strict, "victim@example.com"))
            answers.add((answer.status_code, answer.content))
    assert len(answers) == 1
    await reading.answered(strict)
    assert owed(await reading.everything(strict)) == 1


async def test_a_thousand_addresses_from_one_network_are_five_letters(strict: World) -> None:
    async with coming_from(strict, PUBLIC) as browser:
        answers = [
            await browser.post("/subscribe", data=filled(strict, f"r{number}@example.com"))
            for number in range(1_000)
        ]
        assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 995
        assert "请稍慢一点" in answers[-1].text
        strict.clock.forward(minutes=11)
        answer = await browser.post("/subscribe", data=filled(strict, "later@example.com"))
        assert answer.status_code == 200
    async with coming_from(strict, "93.184.217.1") as neighbour:
        assert (await neighbour.post("/subscribe", data=filled(strict, "n@example.com"))).status_code == 200
    await reading.answered(strict)
    assert owed(await reading.everything(strict)) == 7


async def test_an_address_is_known_by_every_spelling_that_reaches_the_same_mailbox(strict: World) -> None:
    spellings = [f"a+{number}@example.com" for number in range(50)] + ["A@example.com", "a@EXAMPLE.com"]
    spellings += ["b.c.d@gmail.com", "bcd@gmail.com", "bcd+x@googlemail.com"]
    for spelling in spellings:
        async with coming_from(strict, f"93.184.{spellings.index(spelling)}.1") as browser:
            answer = await browser.post("/subscribe", data=filled(strict, spelling))
            assert answer.status_code == 200
    await reading.answered(strict)
    rows = await reading.everything(strict)
    assert owed(rows) == 2
    assert (await who_is(strict, "a+0@example.com")).address == "a+0@example.com", "kept as it was typed"


async def test_one_mailbox_gets_three_letters_in_thirty_days(strict: World) -> None:
    for _ in range(29):
        await reading.ask(strict, "victim@example.com")
        strict.clock.forward(hours=25)
    assert owed(await reading.everything(strict)) == 3
    strict.clock.forward(days=30)
    await reading.ask(strict, "victim@example.com")
    assert owed(await reading.everything(strict)) == 4


async def test_what_is_too_much_for_a_minute_waits_and_is_not_lost(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    async with house_at(tmp_path, empty_database, sink, letters_a_minute=3) as world:
        for number in range(7):
            await reading.send_form(world, f"r{number}@example.com")
        for expected in (3, 6, 7):
            await reading.answered(world)
            assert owed(await reading.everything(world)) == expected
            world.clock.forward(seconds=61)


async def test_a_form_filled_in_faster_than_a_person_is_shown_once_more_and_then_taken(strict: World) -> None:
    page = (await strict.web.get("/")).text
    stamp = page.partition('name="stamp" value="')[2].partition('"')[0]
    quick = await strict.web.post("/subscribe", data=filled(strict, "r@example.com", stamp=stamp))
    assert quick.status_code == 200
    assert "就差一步" in quick.text
    assert 'value="r@example.com"' in quick.text
    assert f'name="stamp" value="{stamp}"' in quick.text, "the same one, so that nobody waits twice"
    assert not (await reading.everything(strict))["ask"]
    strict.clock.forward(seconds=3)
    again = await strict.web.post("/subscribe", data=filled(strict, "r@example.com", stamp=stamp))
    assert "请查收邮件" in again.text


@pytest.mark.parametrize("stamp", ["", "A" * 24, "读" * 24, "x", "yesterday"])
async def test_a_form_of_another_site_is_shown_with_the_address_and_one_button(
    strict: World, stamp: str
) -> None:
    if stamp == "yesterday":
        stamp = reading.stamp(strict)
        strict.clock.forward(hours=25)
    async with reading.unchanged(strict):
        answer = await strict.web.post("/subscribe", data=filled(strict, "r@example.com", stamp=stamp))
    assert answer.status_code == 200
    assert 'value="r@example.com"' in answer.text
    assert answer.text.count('<button class="button"') == 1


async def test_a_forged_header_opens_no_door_from_the_open_internet(strict: World) -> None:
    statuses = []
    for number in range(8):
        async with coming_from(strict, PUBLIC, **{"X-Forwarded-For": f"198.51.{number}.1"}) as browser:
            form = filled(strict, f"r{number}@example.com")
            statuses.append((await browser.post("/subscribe", data=form)).status_code)
    assert statuses == [200] * 5 + [429] * 3


async def test_a_proxy_nobody_named_is_warned_of_and_shuts_nobody_out(
    strict: World, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(8):
        async with coming_from(strict, "10.1.2.3", **{"X-Forwarded-For": f"93.184.{number}.1"}) as browser:
            form = filled(strict, f"r{number}@example.com")
            assert (await browser.post("/subscribe", data=form)).status_code == 200
    assert sum("BROADSHEET_TRUSTED_PROXIES" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("language", ["zh", "en"])
async def test_the_answer_and_the_work_for_it_are_the_same_whoever_has_the_address(
    world: World, language: str
) -> None:
    await world.reader("active@example.com")
    await reading.ask(world, "pending@example.com")
    gone = await world.reader("left@example.com")
    await world.web.post(world.house.composer.link(Purpose.PREFERENCES, gone) + "/leave")
    for reason in Reason:
        await reading.suppress(world, f"{reason}@example.com", reason)
    told = []
    for standing in ["new", "active", "pending", "left", *Reason]:
        with statements() as ran:
            answer = await reading.send_form(world, f"{standing}@example.com", language=language)
        told.append((answer.status_code, answer.content, str(answer.headers), tuple(ran)))
    assert told == [told[0]] * len(told)
    assert told[0][0] == 200
    assert told[0][3]


async def test_it_was_not_me_takes_the_request_away_and_is_believed_for_ninety_days(world: World) -> None:
    await reading.ask(world, "victim@example.com")
    letter = (await world.letters(1))[0]
    url = link(letter.data, "c")
    assert f'action="{url}/refuse"' in (await world.web.get(url)).text
    answer = await world.web.post(f"{url}/refuse")
    assert answer.status_code == 200
    assert "90 天" in answer.text
    assert not (await reading.everything(world))["subscriber"]
    for method in (world.web.get, world.web.post):
        assert (await method(url)).status_code == 410
    assert (await world.web.post(f"{url}/refuse")).status_code == 410
    world.clock.forward(days=89)
    await reading.ask(world, "victim@example.com")
    assert not (await reading.everything(world))["subscriber"]
    world.clock.forward(days=2)
    await reading.ask(world, "victim@example.com")
    again = (await world.letters(2))[1]
    assert (await world.web.post(link(again.data, "c"))).status_code == 303
    assert (await who_is(world, "victim@example.com")).state == State.ACTIVE


async def test_it_was_not_me_ends_no_reader(world: World) -> None:
    reader = await world.reader("r@example.com")
    url = world.house.composer.link(Purpose.CONFIRM, reader, day_number(world.clock()))
    async with reading.unchanged(world):
        assert (await world.web.post(f"{url}/refuse")).status_code == 409
    assert "/refuse" not in (await world.web.get(url)).text


async def test_one_who_had_left_and_was_asked_by_a_stranger_stays_gone(world: World) -> None:
    reader = await world.reader("r@example.com")
    await world.web.post(world.house.composer.link(Purpose.PREFERENCES, reader) + "/leave")
    await reading.ask(world, "r@example.com")
    url = link((await world.letters(1))[0].data, "c")
    assert (await world.web.post(f"{url}/refuse")).status_code == 200
    who = await who_is(world, "r@example.com")
    assert (who.state, who.reason) == (State.ENDED, Reason.LEFT)


async def test_an_aged_link_offers_a_new_one_within_the_limits(world: World) -> None:
    await reading.ask(world, "late@example.com")
    old = link((await world.letters(1))[0].data, "c")
    world.clock.forward(days=8)
    for _ in range(3):
        answer = await world.web.post(f"{old}/again")
        assert "请查收邮件" in answer.text
    new = [link(mail.data, "c") for mail in await world.letters(2)]
    assert len(new) == 2
    assert (await world.web.post(new[1])).status_code == 303

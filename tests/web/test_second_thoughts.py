"""A reader thinks again: undoes leaving for a day, says why, takes a pause, and hears once what they have missed."""

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from app.core.tokens import Purpose
from app.flows.rounds import Rounds
from app.subscribers.consent import State
from tests.web import reading
from tests.web.reading import link, who_is
from tests.world import DAY, World

SHANGHAI = ZoneInfo("Asia/Shanghai")


async def reader(world: World, *editions: str) -> tuple[str, str]:
    """Return a new reader's links to their preferences and out of the daily."""
    number = await world.reader("r@example.com", *(editions or ("daily",)))
    make = world.house.composer.link
    return make(Purpose.PREFERENCES, number), make(Purpose.UNSUBSCRIBE, number, 1)


async def rounds(world: World) -> None:
    await Rounds(world.db, world.house.composer).work(world.clock())


async def test_leaving_can_be_undone_for_a_day(world: World) -> None:
    preferences, out = await reader(world, "daily", "weekly")
    await world.web.post(f"{preferences}/leave")
    world.clock.forward(hours=23)
    page = await world.web.get(out)
    assert f'action="{out}/undo"' in page.text
    assert (await world.web.post(f"{out}/undo")).status_code == 303
    assert await reading.chosen(world, "r@example.com") == {"daily", "weekly"}
    assert (await who_is(world, "r@example.com")).state == State.ACTIVE
    assert (await reading.events(world, "r@example.com"))[-1].kind == "undone"
    async with reading.unchanged(world):
        assert (await world.web.post(f"{out}/undo")).status_code == 409


async def test_after_a_day_it_takes_a_new_confirmation(world: World) -> None:
    preferences, out = await reader(world)
    await world.web.post(out, data={"List-Unsubscribe": "One-Click"})
    world.clock.forward(hours=24, minutes=1)
    async with reading.unchanged(world):
        for url in (preferences, out):
            assert "/undo" not in (await world.web.get(url)).text
            assert (await world.web.post(f"{url}/undo")).status_code == 409


async def test_an_undo_brings_back_the_last_step_only_and_nobody_who_was_stopped(world: World) -> None:
    preferences, out = await reader(world, "daily", "weekly")
    await world.web.post(preferences, data={"editions": "weekly", "language": "zh"})
    await world.web.post(f"{preferences}/leave")
    await world.web.post(f"{preferences}/undo")
    assert await reading.chosen(world, "r@example.com") == {"weekly"}
    await world.web.post(f"{preferences}/leave")
    await world.api.post("/suppressions", json={"address": "r@example.com"})
    async with reading.unchanged(world):
        assert (await world.web.post(f"{out}/undo")).status_code == 409


async def test_one_tap_says_why_and_the_last_word_counts(world: World) -> None:
    preferences, out = await reader(world)
    await world.web.post(out)
    for reason in ("often", "asked"):
        answer = await world.web.post(f"{out}/why", data={"reason": reason})
        assert "谢谢" in answer.text
        assert f'action="{out}/undo"' in answer.text
    assert [event.detail for event in await reading.events(world, "r@example.com")] == ["", "asked"]
    async with reading.unchanged(world):
        for url, reason in ((out, "<b>"), (preferences, "")):
            assert (await world.web.post(f"{url}/why", data={"reason": reason})).status_code == 422


async def test_editors_see_how_often_each_reason_was_given(world: World) -> None:
    readers = [await world.reader(f"r{number}@example.com", "daily") for number in range(4)]
    await world.deliver(await world.send(await world.issue("daily")))
    for number, reason in zip(readers, ("often", "often", "content", None), strict=True):
        out = world.house.composer.link(Purpose.UNSUBSCRIBE, number, 1)
        await world.web.post(out)
        if reason:
            await world.web.post(f"{out}/why", data={"reason": reason})
    (edition,) = (await world.api.get("/numbers")).json()["editions"]
    assert (edition["edition"], edition["left"]) == ("daily", 4)
    assert edition["reasons"] == {"content": 1, "often": 2}


async def test_who_never_left_is_not_asked_why(world: World) -> None:
    preferences, out = await reader(world)
    async with reading.unchanged(world):
        for url in (preferences, out):
            assert (await world.web.post(f"{url}/why", data={"reason": "often"})).status_code == 422
            assert (await world.web.post(f"{url}/undo")).status_code == 409


@pytest.mark.parametrize(
    ("form", "end"),
    [
        ({"pause": "week"}, date(2026, 11, 2)),
        ({"pause": "month"}, date(2026, 11, 25)),
        ({"pause": "until", "until": "2026-12-24"}, date(2026, 12, 24)),
        ({"pause": "none", "until": "2026-12-24"}, date(2026, 12, 24)),
    ],
)
async def test_a_pause_ends_as_a_day_begins_where_the_reader_is(
    world: World, form: dict[str, str], end: date
) -> None:
    preferences, _ = await reader(world)
    await world.reader("other@example.com")
    choice = {"editions": "daily", "language": "zh", "timezone": "Asia/Shanghai"}
    assert (await world.web.post(preferences, data=choice | form)).status_code == 303
    who = await who_is(world, "r@example.com")
    midnight = datetime.combine(end, time(), SHANGHAI)
    assert (who.state, who.paused_until) == (State.PAUSED, midnight)
    assert "已暂停" in (await world.web.get(preferences)).text
    await world.deliver(await world.send(await world.issue()))
    assert world.sink.recipients() == ["other@example.com"]


@pytest.mark.parametrize("until", ["", "2026-10-26", "2020-01-01", "2028-01-01", "soon", "2026-02-30"])
async def test_a_pause_that_cannot_be_is_said_to_be_so_beside_the_field(world: World, until: str) -> None:
    preferences, _ = await reader(world)
    form = {"editions": "daily", "language": "zh", "pause": "until", "until": until}
    async with reading.unchanged(world):
        answer = await world.web.post(preferences, data=form)
    assert answer.status_code == 422
    assert "一年之内" in answer.text


async def test_who_comes_back_from_a_pause_gets_one_letter_that_lists_what_they_missed(world: World) -> None:
    _, out = await reader(world, "daily")
    await world.reader("other@example.com", "weekly")
    await world.deliver(await world.send(await world.issue("daily", DAY - timedelta(days=1))))
    world.sink.forget()
    answer = await world.web.post(f"{out}/pause")
    assert "已暂停" in answer.text
    for edition, day in (("daily", DAY), ("daily", DAY + timedelta(days=1)), ("weekly", DAY)):
        world.clock.forward(hours=2)
        await world.deliver(await world.send(await world.issue(edition, day)))
    assert world.sink.recipients() == ["other@example.com"]
    world.clock.forward(days=31)
    for _ in range(3):
        await rounds(world)
    letter = (await world.letters(2))[1]
    assert letter.recipient == "r@example.com"
    found = [url for url in reading.links(letter.data) if "/archive/" in url]
    assert found == [f"{reading.BASE}/archive/daily/{DAY + timedelta(days=days)}" for days in (1, 0)]
    text, html = reading.parts(letter.data)
    assert "欢迎回来" in text
    assert "欢迎回来" in html
    who = await who_is(world, "r@example.com")
    assert (who.state, who.paused_at, who.paused_until) == (State.ACTIVE, None, None)
    assert len((await reading.everything(world))["letter"]) == 1
    assert (await world.web.get(link(letter.data, "p"))).status_code == 200


async def test_who_missed_nothing_is_written_nothing(world: World) -> None:
    _, out = await reader(world)
    await world.web.post(f"{out}/pause")
    world.clock.forward(days=31)
    await rounds(world)
    assert (await who_is(world, "r@example.com")).state == State.ACTIVE
    assert not (await reading.everything(world))["letter"]


async def test_a_pause_takes_back_what_is_owed_and_can_be_ended_at_once(world: World) -> None:
    preferences, out = await reader(world)
    await world.web.post(f"{out}/pause")
    form = {"editions": "daily", "language": "zh", "pause": "keep"}
    await world.web.post(preferences, data=form)
    assert (await who_is(world, "r@example.com")).state == State.PAUSED
    await world.web.post(preferences, data=form | {"pause": "none"})
    assert (await who_is(world, "r@example.com")).state == State.ACTIVE
    await world.deliver(await world.send(await world.issue()))
    assert world.sink.recipients() == ["r@example.com"]


async def test_a_reader_says_how_they_want_it(world: World) -> None:
    preferences, _ = await reader(world)
    form = {
        "editions": "daily",
        "language": "en",
        "hour": "8",
        "timezone": "America/New_York",
        "pause": "none",
    }
    await world.web.post(preferences, data=form | {"weekdays_only": "true"})
    who = await who_is(world, "r@example.com")
    assert (who.hour, who.timezone, who.weekdays_only) == (8, "America/New_York", True)
    page = (await world.web.get(preferences)).text
    assert '<option value="8" selected>08:00</option>' in page
    assert '<option value="America/New_York" selected>New York (UTC-4)</option>' in page
    assert 'name="weekdays_only" value="true" checked' in page
    await world.web.post(preferences, data=form | {"hour": "", "timezone": "Mars/Olympus"})
    who = await who_is(world, "r@example.com")
    assert (who.hour, who.timezone, who.weekdays_only) == (None, "America/New_York", False)

"""What a reader gets is theirs to say: daily, weekly, both, none; and it counts from the next issue."""

from datetime import date

import pytest

from app.core.tokens import Purpose, day_number
from app.subscribers.consent import State
from tests.web import reading
from tests.web.reading import who_is
from tests.world import World


def preferences_of(world: World, reader: int) -> str:
    return world.house.composer.link(Purpose.PREFERENCES, reader)


@pytest.mark.parametrize("wish", [["daily"], ["weekly"], ["daily", "weekly"]])
async def test_a_reader_gets_the_editions_they_tick(world: World, wish: list[str]) -> None:
    url = preferences_of(world, await world.reader("r@example.com", "daily"))
    answer = await world.web.post(url, data={"editions": wish, "language": "zh"})
    assert answer.status_code == 303
    page = await world.web.get(answer.headers["location"])
    assert "已保存" in page.text
    for slug in ("daily", "weekly"):
        assert (f'value="{slug}" checked' in page.text) == (slug in wish)
    mailings = [await world.send(await world.issue(slug)) for slug in ("daily", "weekly")]
    await world.deliver(*mailings)
    assert len(world.sink.mails) == len(wish)


async def test_who_ticks_nothing_has_left(world: World) -> None:
    url = preferences_of(world, await world.reader("r@example.com", "daily", "weekly"))
    answer = await world.web.post(url, data={"language": "zh"})
    assert answer.status_code == 200
    assert "已经退订" in answer.text
    assert (await who_is(world, "r@example.com")).state == State.ENDED
    proof = (await reading.events(world, "r@example.com"))[-1]
    assert (proof.kind, set(proof.editions.split())) == ("left", {"daily", "weekly"})
    page = await world.web.get(url)
    assert page.status_code == 200
    assert "目前没有订阅" in page.text
    assert "<form" not in page.text


async def test_a_switch_counts_from_the_next_issue(world: World) -> None:
    url = preferences_of(world, await world.reader("r@example.com", "daily"))
    await world.reader("other@example.com", "daily", "weekly")
    started = [await world.send(await world.issue(slug)) for slug in ("daily", "weekly")]
    world.clock.forward(seconds=1)
    await world.web.post(url, data={"editions": "weekly", "language": "zh"})
    await world.deliver(*started)
    assert world.sink.recipients() == ["other@example.com"] * 2, "the old one withdrawn, the new one not yet"

    world.sink.forget()
    later = [await world.send(await world.issue(slug, date(2026, 11, 1))) for slug in ("daily", "weekly")]
    await world.deliver(*later)
    lists = sorted(str(mail["List-Id"]) for mail in world.sink.parsed() if mail["To"] == "r@example.com")
    assert ["weekly" in each for each in lists] == [True]


async def test_an_edition_that_is_kept_goes_on_without_a_gap(world: World) -> None:
    url = preferences_of(world, await world.reader("r@example.com", "daily"))
    started = await world.send(await world.issue("daily"))
    world.clock.forward(seconds=1)
    await world.web.post(url, data={"editions": ["daily", "weekly"], "language": "zh"})
    await world.deliver(started)
    assert world.sink.recipients() == ["r@example.com"]


async def test_the_language_of_pages_and_letters_is_the_readers(world: World) -> None:
    url = preferences_of(world, await world.reader("r@example.com", "daily"))
    answer = await world.web.post(url, data={"editions": "daily", "language": "en"})
    page = await world.web.get(answer.headers["location"], headers={"Accept-Language": "zh"})
    assert '<html lang="en"' in page.text
    assert "Saved." in page.text
    assert (await who_is(world, "r@example.com")).language == "en"
    await world.web.post(url, data={"editions": "daily", "language": "xx"})
    assert (await who_is(world, "r@example.com")).language == "en"


async def test_an_edition_that_is_not_ours_changes_nothing(world: World) -> None:
    url = preferences_of(world, await world.reader("r@example.com", "daily"))
    async with reading.unchanged(world):
        answer = await world.web.post(url, data={"editions": ["daily", "hourly"], "language": "zh"})
    assert answer.status_code == 422


async def test_who_has_left_cannot_be_brought_back_by_an_old_link(world: World) -> None:
    url = preferences_of(world, await world.reader("r@example.com", "daily"))
    await world.web.post(f"{url}/leave")
    async with reading.unchanged(world):
        answer = await world.web.post(url, data={"editions": "daily", "language": "zh"})
        assert answer.status_code == 409
        assert "目前没有订阅" in answer.text
        assert (await world.web.post(f"{url}/leave")).status_code == 200


async def test_a_link_opens_the_choices_of_its_reader_only(world: World) -> None:
    mine = preferences_of(world, await world.reader("me@example.com", "daily"))
    await world.reader("you@example.com", "daily")
    await world.web.post(mine, data={"editions": "weekly", "language": "en"})
    assert await reading.chosen(world, "you@example.com") == {"daily"}
    page = (await world.web.get(mine)).text
    assert "m***@example.com" in page
    assert "me@example.com" not in page


async def test_a_token_for_another_page_opens_nothing(world: World) -> None:
    reader = await world.reader("r@example.com", "daily")
    link = world.house.composer.link
    others = [
        link(Purpose.CONFIRM, reader, day_number(world.clock())),
        link(Purpose.UNSUBSCRIBE, reader, 1),
    ]
    async with reading.unchanged(world):
        for token in [url.rpartition("/")[2] for url in others]:
            for answer in (
                await world.web.get(f"/p/{token}"),
                await world.web.post(f"/p/{token}", data={"editions": "weekly"}),
                await world.web.post(f"/p/{token}/leave"),
            ):
                assert answer.status_code == 404


async def test_the_page_after_leaving_can_be_had_in_the_other_language(world: World) -> None:
    url = preferences_of(world, await world.reader("r@example.com", "daily"))
    answer = await world.web.post(f"{url}/leave")
    assert f'href="{url}?language=en"' in answer.text
    assert (await world.web.get(f"{url}?language=en")).status_code == 200
    answer = await reading.ask(world, "new@example.com")
    assert 'href="http://127.0.0.1:8000/?language=en"' in answer.text


async def test_a_language_chosen_in_the_address_stays_through_a_save(world: World) -> None:
    url = preferences_of(world, await world.reader("r@example.com", "daily"))
    page = await world.web.get(f"{url}?language=en")
    assert f'action="{url}?language=en"' in page.text
    answer = await world.web.post(f"{url}?language=en", data={"editions": "daily", "language": "zh"})
    assert "Saved." in (await world.web.get(answer.headers["location"])).text


async def test_a_post_without_the_form_is_not_taken_for_leaving(world: World) -> None:
    url = preferences_of(world, await world.reader("r@example.com", "daily", "weekly"))
    async with reading.unchanged(world):
        assert (await world.web.post(url)).status_code == 422

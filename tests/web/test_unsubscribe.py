"""The way out: one button for a person, one POST for a mail program, and nothing at all for a link scanner."""

from pathlib import Path

import pytest

from app.core.tokens import Purpose, Signer, day_number
from app.subscribers.consent import State
from tests.sink import Sink
from tests.web import reading
from tests.web.reading import link, links, who_is
from tests.world import World, house_at

ONE_CLICK = {"List-Unsubscribe": "One-Click"}


def way_out(world: World, reader: int, edition: int = 1) -> str:
    return world.house.composer.link(Purpose.UNSUBSCRIBE, reader, edition)


async def test_looking_shows_a_button_and_the_button_stops_that_edition(world: World) -> None:
    url = way_out(world, await world.reader("r@example.com", "daily", "weekly"))
    page = await world.web.get(url)
    assert page.status_code == 200
    assert f'<form method="post" action="{url}">' in page.text
    assert await reading.chosen(world, "r@example.com") == {"daily", "weekly"}
    assert (await world.web.post(url)).status_code == 200
    assert await reading.chosen(world, "r@example.com") == {"weekly"}
    assert (await who_is(world, "r@example.com")).state == State.ACTIVE
    page = await world.web.get(url)
    assert f'action="{url}/undo"' in page.text
    assert f'<form method="post" action="{url}">' not in page.text
    assert "已退订《" in page.text


@pytest.mark.parametrize("kind", ["form", "multipart"])
async def test_one_click_answers_200_without_cookie_or_redirect_twice(world: World, kind: str) -> None:
    url = way_out(world, await world.reader("r@example.com", "daily"))
    for _ in range(2):
        if kind == "form":
            answer = await world.web.post(url, data=ONE_CLICK)
        else:
            parts = {name: (None, value) for name, value in ONE_CLICK.items()}
            answer = await world.web.post(url, files=parts)
            assert answer.request.headers["content-type"].startswith("multipart/form-data")
        assert answer.status_code == 200
        assert "set-cookie" not in answer.headers
    who = await who_is(world, "r@example.com")
    assert (who.state, who.reason) == (State.ENDED, "left")


async def test_what_is_still_owed_is_taken_back_at_once(world: World) -> None:
    url = way_out(world, await world.reader("r@example.com", "daily"))
    await world.reader("stays@example.com", "daily")
    mailing = await world.send(await world.issue("daily"))
    async with world.db.transaction() as session:
        await world.enlist(session, mailing)
    await world.web.post(url, data=ONE_CLICK)
    await world.deliver(mailing)
    assert world.sink.recipients() == ["stays@example.com"]
    counts = await world.books_balance(mailing)
    assert (counts["sent"], counts["withdrawn"]) == (1, 1)


async def test_a_link_to_leave_never_ages(world: World) -> None:
    url = way_out(world, await world.reader("r@example.com", "daily"))
    world.clock.forward(days=400)
    assert (await world.web.post(url, data=ONE_CLICK)).status_code == 200
    assert (await who_is(world, "r@example.com")).state == State.ENDED


async def test_a_link_signed_with_an_older_key_still_leads_out(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    old, new = "o" * 40, "n" * 40
    async with house_at(tmp_path, empty_database, sink, secret_key=f"{new} {old}") as world:
        reader = await world.reader("r@example.com", "daily")
        token = Signer([old]).sign(Purpose.UNSUBSCRIBE, reader, 1)
        assert token not in way_out(world, reader)
        assert (await world.web.post(f"/u/{token}", data=ONE_CLICK)).status_code == 200
        assert (await who_is(world, "r@example.com")).state == State.ENDED
        forged = Signer(["f" * 40]).sign(Purpose.UNSUBSCRIBE, reader, 1)
        assert (await world.web.post(f"/u/{forged}", data=ONE_CLICK)).status_code == 404


async def test_a_token_for_another_page_or_with_a_byte_changed_is_refused_alike(world: World) -> None:
    reader = await world.reader("r@example.com", "daily")
    composer = world.house.composer
    token = way_out(world, reader).rpartition("/")[2]
    wrong = [
        composer.signer.sign(Purpose.CONFIRM, reader, day_number(world.clock())),
        composer.signer.sign(Purpose.PREFERENCES, reader),
        composer.signer.sign(Purpose.MESSAGE, reader, 1),
        token[:-1] + ("A" if token[-1] != "A" else "B"),
        token[:-1],
        token + "A",
        "A" * 32,
        "%00" * 32,
        "读" * 32,
    ]
    pages = set()
    async with reading.unchanged(world):
        for each in wrong:
            for answer in (await world.web.get(f"/u/{each}"), await world.web.post(f"/u/{each}")):
                assert answer.status_code == 404
                pages.add(answer.text.replace(str(answer.request.url), "").partition("<footer")[0])
    assert len(pages) == 1


async def test_leaving_one_edition_offers_the_other_instead(world: World) -> None:
    url = way_out(world, await world.reader("r@example.com", "daily"))
    page = await world.web.get(url)
    assert f'action="{url}?instead=weekly"' in page.text
    for _ in range(2):
        answer = await world.web.post(f"{url}?instead=weekly")
        assert answer.status_code == 200
        assert "已改收" in answer.text
        assert await reading.chosen(world, "r@example.com") == {"weekly"}
    assert (await world.web.post(f"{url}?instead=hourly")).status_code == 404


async def test_who_has_left_cannot_switch(world: World) -> None:
    url = way_out(world, await world.reader("r@example.com", "daily"))
    await world.web.post(url)
    async with reading.unchanged(world):
        answer = await world.web.post(f"{url}?instead=weekly")
    assert answer.status_code == 409
    assert "目前没有订阅" in answer.text


async def test_get_and_head_over_every_link_of_every_mail_change_nothing(world: World) -> None:
    await world.reader("active@example.com", "daily", "weekly")
    await reading.ask(world, "new@example.com", "daily", "weekly")
    await reading.ask(world, "active@example.com")
    for edition in ("daily", "weekly"):
        await world.deliver(await world.send(await world.issue(edition)))
    assert len(world.sink.mails) == 4
    ours = [url for mail in world.sink.mails for url in links(mail.data) if url.startswith(reading.BASE)]
    assert len({url.split("/")[3] for url in ours}) >= 5, "confirm, preferences, unsubscribe, archive, front"
    assert link(world.sink.mails[-1].data, "u") in ours
    async with reading.unchanged(world):
        for url in dict.fromkeys(ours):
            for method in ("HEAD", "GET", "OPTIONS"):
                answer = await world.web.request(method, url)
                assert answer.status_code == (405 if method == "OPTIONS" else 200), f"{method} {url}"

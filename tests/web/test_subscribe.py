"""From the form to a reader: one letter, one button, and nothing that tells who else is here."""

import asyncio
from html import escape
from pathlib import Path

import pytest

from app.core.tokens import Purpose, day_number
from app.subscribers.consent import Reason, State
from tests.sink import Sink
from tests.web import reading
from tests.web.reading import ask, ask_and_confirm, link, who_is
from tests.world import World, house_at

BAD = (
    "",
    "reader",
    "reader@",
    "@example.com",
    "r@exa mple.org",
    "r\n@example.org",
    "r@example.org\nBcc: x@example.org",
    "r@example.org, s@example.org",
    "Reader <r@example.org>",
    '"r s"@example.org',
    "r@[127.0.0.1]",
    "r@localhost",
    "r@exam\u00adple.org",
    "r@-example.org",
    "读者@example.org",
    "r\x00@example.org",
    f"{'r' * 65}@example.org",
    f"r@{'e' * 64}.org",
    f"r@{'e' * 2000}.org",
)


async def test_the_form_leads_to_a_letter_and_its_button_to_a_reader(world: World) -> None:
    answer = await ask(world, "New.Reader@example.com", "daily", "weekly")
    assert answer.status_code == 200
    assert "请查收邮件" in answer.text
    letter = (await world.letters(1))[0]
    assert letter.recipient == "New.Reader@example.com"
    assert (await who_is(world, "new.reader@example.com")).state == State.PENDING

    page = await world.web.get(link(letter.data, "c"))
    assert page.status_code == 200
    assert '<form method="post"' in page.text
    assert "Ne***r@example.com" in page.text
    assert "New.Reader@example.com" not in page.text
    assert (await who_is(world, "new.reader@example.com")).state == State.PENDING

    answer = await world.web.post(link(letter.data, "c"))
    assert answer.status_code == 303
    assert (await world.web.get(answer.headers["location"])).status_code == 200
    assert (await who_is(world, "new.reader@example.com")).state == State.ACTIVE
    assert await reading.chosen(world, "new.reader@example.com") == {"daily", "weekly"}


@pytest.mark.parametrize("language", ["zh", "en"])
async def test_the_answer_is_the_same_whoever_has_the_address(world: World, language: str) -> None:
    await world.reader("active@example.com")
    await ask(world, "pending@example.com")
    gone = await world.reader("left@example.com")
    await world.web.post(world.house.composer.link(Purpose.PREFERENCES, gone) + "/leave")
    for reason in Reason:
        await reading.suppress(world, f"{reason}@example.com", reason)
    standings = ["new", "active", "pending", "left", *Reason]
    answers = [await ask(world, f"{standing}@example.com", language=language) for standing in standings]
    assert {(each.status_code, each.content, str(each.headers)) for each in answers} == {
        (200, answers[0].content, str(answers[0].headers))
    }


async def test_an_address_that_an_editor_suppressed_gets_no_letter_and_no_issue(world: World) -> None:
    await world.reader("stopped@example.com", "daily")
    await world.reader("going@example.com", "daily")
    await reading.suppress(world, "stopped@example.com")
    await reading.suppress(world, "never@example.com")
    assert (await ask(world, "never@example.com")).status_code == 200
    assert (await ask(world, "STOPPED@example.com")).status_code == 200
    await world.deliver(await world.send(await world.issue("daily")))
    assert world.sink.recipients() == ["going@example.com"]


async def test_a_letter_already_owed_does_not_leave_once_an_editor_suppressed_the_address(
    world: World,
) -> None:
    await ask(world, "stopped@example.com")
    answer = await world.api.post("/suppressions", json={"address": "stopped@example.com"})
    assert answer.status_code == 201, answer.text
    await ask(world, "other@example.com")
    assert [mail.recipient for mail in await world.letters(1)] == ["other@example.com"]


async def test_a_bad_address_is_refused_at_the_door_and_the_form_keeps_the_rest(world: World) -> None:
    async with reading.unchanged(world):
        for address in BAD:
            answer = await ask(world, address, "weekly")
            assert answer.status_code == 422, address
            assert "这个地址无法收信" in answer.text
            assert 'value="weekly" checked' in answer.text
            assert 'value="daily" checked' not in answer.text
            if address.isprintable():
                assert f'value="{escape(address)}"' in answer.text.replace("&#34;", "&quot;")


async def test_without_an_edition_of_ours_the_form_comes_back_with_the_address(world: World) -> None:
    async with reading.unchanged(world):
        for editions in ([], ["monthly"], ["daily", "nothing"]):
            form = {"email": "r@example.com", "editions": editions, "language": "en"}
            answer = await world.web.post("/subscribe", data=form)
            assert answer.status_code == 422
            assert "Choose at least one edition." in answer.text
            assert 'value="r@example.com"' in answer.text


async def test_what_only_a_robot_fills_in_changes_nothing(world: World) -> None:
    honest = await ask(world, "r@example.com")
    async with reading.unchanged(world):
        form = {"email": "robot@example.com", "editions": "daily", "language": "zh", "website": "x"}
        answer = await world.web.post("/subscribe", data=form)
    assert (answer.status_code, answer.text) == (200, honest.text)


async def test_asking_again_sends_one_letter_a_day(world: World) -> None:
    for _ in range(3):
        await ask(world, "r@example.com")
    await ask(world, "other@example.com")
    assert sorted(mail.recipient for mail in await world.letters(2)) == ["other@example.com", "r@example.com"]
    world.clock.forward(hours=25)
    await ask(world, "r@example.com")
    assert [mail.recipient for mail in await world.letters(3)][2:] == ["r@example.com"]


async def test_a_reader_who_asks_again_gets_the_link_to_their_choices_which_stay(world: World) -> None:
    await world.reader("r@example.com", "daily", language="en")
    await ask(world, "R@EXAMPLE.com", "weekly", language="zh")
    letter = (await world.letters(1))[0]
    assert letter.recipient == "r@example.com"
    assert await reading.chosen(world, "r@example.com") == {"daily"}
    page = await world.web.get(link(letter.data, "p"))
    assert page.status_code == 200
    assert '<html lang="en"' in page.text


async def test_what_the_form_was_sent_besides_the_address_is_not_in_the_letter(world: World) -> None:
    await reading.send_form(world, "r@example.com", name="http://evil.example", language="en")
    text, html = reading.parts((await world.letters(1))[0].data)
    assert "evil.example" not in text + html


async def test_a_confirmation_link_is_good_for_seven_days_and_no_more(world: World) -> None:
    await ask(world, "early@example.com")
    await ask(world, "late@example.com")
    found = {mail.recipient: link(mail.data, "c") for mail in await world.letters(2)}
    world.clock.forward(days=7)
    assert (await world.web.post(found["early@example.com"])).status_code == 303
    world.clock.forward(days=1)
    async with reading.unchanged(world):
        for answer in (
            await world.web.get(found["late@example.com"]),
            await world.web.post(found["late@example.com"]),
        ):
            assert answer.status_code == 410
            assert "链接已经失效" in answer.text
            assert 'href="http://127.0.0.1:8000/"' in answer.text
            assert f'action="{found["late@example.com"]}/again"' in answer.text


async def test_confirming_twice_is_harmless(world: World) -> None:
    await ask_and_confirm(world, "r@example.com")
    confirmation = link(world.sink.mails[0].data, "c")
    async with reading.unchanged(world):
        assert (await world.web.post(confirmation)).status_code == 303


async def test_one_who_left_comes_back_by_a_new_letter_and_not_by_the_old_one(world: World) -> None:
    preferences = await ask_and_confirm(world, "r@example.com")
    confirmation = link(world.sink.mails[0].data, "c")
    assert (await world.web.post(f"{preferences}/leave")).status_code == 200
    async with reading.unchanged(world):
        assert (await world.web.post(confirmation)).status_code == 409
    world.clock.forward(hours=25)
    await ask_and_confirm(world, "r@example.com", "weekly")
    assert (await who_is(world, "r@example.com")).state == State.ACTIVE
    assert await reading.chosen(world, "r@example.com") == {"weekly"}


async def test_a_confirmation_lifts_every_suppression_but_an_editors(world: World) -> None:
    for reason in Reason:
        address = f"{reason}@example.com"
        await ask(world, address)
        who = await who_is(world, address)
        confirmation = world.house.composer.link(Purpose.CONFIRM, who.id or 0, day_number(world.clock()))
        await reading.suppress(world, address, reason)
        answer = await world.web.post(confirmation)
        assert answer.status_code == (409 if reason == Reason.EDITOR else 303)
        assert (await who_is(world, address)).state == (
            State.PENDING if reason == Reason.EDITOR else State.ACTIVE
        )
    assert len((await reading.everything(world))["suppression"]) == 1


async def test_one_address_asked_for_many_times_at_once_is_one_subscriber_with_one_letter(
    postgres_url: str, tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    async with house_at(tmp_path, empty_database, sink, database_url=postgres_url) as world:
        answers = await asyncio.gather(*[ask(world, "r@example.com") for _ in range(8)])
        assert {answer.status_code for answer in answers} == {200}
        rows = await reading.everything(world)
        assert len(rows["subscriber"]) == 1
        assert len(rows["letter"]) == 1

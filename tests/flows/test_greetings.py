"""An edition may welcome a reader who has confirmed and say goodbye to one who has left; none does so unasked."""

import asyncio
from typing import Any

import pytest

from tests.web import reading
from tests.world import World


async def edit(world: World, slug: str, **given: Any) -> None:
    answer = await world.api.patch(f"/editions/{slug}", json=given)
    assert answer.status_code == 200, answer.text


async def letter(world: World, count: int) -> tuple[str, str, bytes]:
    """Return text, HTML and bytes of the last of `count` mails."""
    raw = (await world.letters(count))[-1].data
    text, html = reading.parts(raw)
    return text.replace("\r\n", "\n"), html, raw


async def no_more_than(world: World, count: int) -> None:
    async with world.working():
        await asyncio.sleep(0)
    assert len(world.sink.mails) == count


async def test_a_confirmed_reader_is_told_when_the_next_issue_comes_and_what_to_read_until_then(
    world: World,
) -> None:
    await edit(world, "daily", letters=["welcome"], sender="desk@example.com")
    await world.deliver(await world.send(await world.issue()))
    await reading.ask_and_confirm(world, "new@example.com", "daily")
    text, html, raw = await letter(world, 2)
    assert b"\r\nFrom: =?utf-8?" in b"\r\n" + raw
    assert b"<desk@example.com>" in raw
    assert b"\r\nAuto-Submitted: auto-generated\r\n" in raw
    assert "从下一期起，《AI 技术日报》会寄到 new@example.com。" in text
    assert "日报：2026-10-27 星期二" in text
    assert f"\n{reading.BASE}/archive/daily/2026-10-26\n" in text
    for said in ("2026-10-27 星期二", "缓存：先看瓶颈，再谈提速", "desk@example.com", "new@example.com"):
        assert said in html
    assert (await world.web.get(reading.link(raw, "p"))).status_code == 200


@pytest.mark.parametrize("language", ["zh", "en"])
async def test_a_reader_who_leaves_is_told_so_once_and_shown_the_way_back(
    world: World, language: str
) -> None:
    await edit(world, "daily", letters=["goodbye"])
    page = await reading.ask_and_confirm(world, "new@example.com", "daily", language=language)
    for _ in range(2):
        await world.web.post(f"{page}/leave")
    assert (await reading.who_is(world, "new@example.com")).state == "ended"
    text, html, _ = await letter(world, 2)
    wanted = {"zh": "这是最后一封信", "en": "This is the last letter"}[language]
    assert wanted in text
    assert wanted in html
    assert f"\n{reading.BASE}/\n" in text
    await no_more_than(world, 2)


async def test_who_leaves_one_of_two_is_told_what_goes_on(world: World) -> None:
    await edit(world, "daily", letters=["goodbye"])
    await world.reader("r@example.com", "daily", "weekly")
    await world.deliver(await world.send(await world.issue()))
    answer = await world.web.post(reading.link(world.sink.mails[0].data, "u"))
    assert answer.status_code == 200
    text, html, raw = await letter(world, 2)
    assert "从现在起，《AI 技术日报》不再寄到 r@example.com。\n\n其他订阅照旧：《AI 技术周报》。" in text
    assert "其他订阅照旧：《AI 技术周报》。" in html
    assert b"List-Unsubscribe" not in raw


async def test_no_edition_sends_a_letter_that_it_was_not_asked_for(world: World) -> None:
    page = await reading.ask_and_confirm(world, "new@example.com", "daily", "weekly")
    await world.web.post(f"{page}/leave")
    assert (await reading.who_is(world, "new@example.com")).state == "ended"
    await no_more_than(world, 1)


async def test_the_foot_of_a_mail_says_what_its_edition_has_it_say(world: World) -> None:
    await edit(world, "daily", footer="沪 ICP 备 0 号\nCC BY 4.0 <b>")
    await world.reader("r@example.com", "daily")
    await world.deliver(await world.send(await world.issue()))
    text, html = reading.parts(world.sink.mails[0].data)
    assert "\n沪 ICP 备 0 号\nCC BY 4.0 <b>\n" in text.replace("\r\n", "\n")
    assert "CC BY 4.0 &lt;b&gt;</p>" in html


@pytest.mark.parametrize(
    "given", [{"letters": ["birthday"]}, {"footer": "a\u2028b"}, {"footer": "x" * 501}, {"footer": "a\x00"}]
)
async def test_what_no_edition_can_have_is_refused(world: World, given: dict[str, Any]) -> None:
    assert (await world.api.patch("/editions/daily", json=given)).status_code == 422

"""The form in its other places, a slip of the finger, and the page that says what is kept."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.subscribers import typos
from tests.web import reading
from tests.web.reading import who_is
from tests.world import World

SLIPS = {
    "r@gmial.com": "r@gmail.com",
    "r@gmail.con": "r@gmail.com",
    "r@gmail.co": "r@gmail.com",
    "r@gmaill.com": "r@gmail.com",
    "r@GNAIL.com": "r@gmail.com",
    "r@qq.con": "r@qq.com",
    "r@163.cm": "r@163.com",
    "r@hotmial.com": "r@hotmail.com",
    "r@outlok.com": "r@outlook.com",
}


@pytest.mark.parametrize("written", SLIPS)
def test_a_slip_in_a_common_domain_is_seen(written: str) -> None:
    assert typos.suggestion(written) == SLIPS[written]


@pytest.mark.parametrize(
    "address",
    [*(f"r@{domain}" for domain in (*typos.COMMON, *typos.SOUND)), "r@example.com", "r@qq.cn", "r@a.b"],
)
def test_nobody_is_corrected_who_is_right(address: str) -> None:
    assert typos.suggestion(address) is None


@given(st.text(max_size=12), st.text(max_size=12))
def test_one_slip_goes_both_ways_and_is_never_none(one: str, other: str) -> None:
    assert typos.is_one_slip(one, other) == typos.is_one_slip(other, one)
    assert not typos.is_one_slip(one, one)


async def test_a_slip_is_asked_about_and_either_answer_is_taken(world: World) -> None:
    async with reading.unchanged(world):
        answer = await reading.send_form(world, "r@gmial.com", "weekly", language="en")
    assert answer.status_code == 200
    for wish in ("r@gmail.com", "r@gmial.com"):
        assert f'name="email" value="{wish}"' in answer.text
        hidden = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', answer.text))
        sent = await world.web.post("/subscribe", data=hidden | {"email": wish})
        assert "Look into your inbox" in sent.text
        await reading.answered(world)
        assert await reading.chosen(world, wish) == {"weekly"}
        assert (await who_is(world, wish)).language == "en"


async def test_any_site_may_frame_the_form_and_no_other_page(world: World) -> None:
    answer = await world.web.get("/embed?language=en")
    assert "frame-ancestors *" in answer.headers["content-security-policy"]
    assert "x-frame-options" not in answer.headers
    assert 'target="_blank"' in answer.text
    for path in ("/", "/embed/code", "/privacy"):
        answer = await world.web.get(path)
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


async def test_the_snippet_for_another_site_works_as_it_stands(world: World) -> None:
    from html import unescape

    page = (await world.web.get("/embed/code?language=en")).text
    frame, form = (unescape(each) for each in re.findall(r"<pre[^>]*>(.*?)</pre>", page, re.DOTALL))
    source = re.search(r'src="([^"]+)"', frame)
    assert source is not None
    assert (await world.web.get(source[1])).status_code == 200
    action = re.search(r'action="([^"]+)"', form)
    assert action is not None
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"(?: checked|>)', form))
    assert fields.keys() == {"editions", "language"}
    answer = await world.web.post(
        action[1], data={"email": "r@example.com", "editions": "daily", "language": "en"}
    )
    assert "One more step" in answer.text
    assert 'value="r@example.com"' in answer.text


@pytest.mark.parametrize("language", ["zh", "en"])
async def test_the_privacy_page_says_what_the_program_does(world: World, language: str) -> None:
    answer = await world.web.get(f"/privacy?language={language}")
    for figure in ("30", "90", "24"):
        assert figure in answer.text
    front = (await world.web.get(f"/?language={language}")).text
    assert f'href="{reading.BASE}/privacy?language={language}"' in front

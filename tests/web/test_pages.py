"""What all pages share: headers, two languages, HEAD, errors that help, and links that no Host header bends."""

import re
from pathlib import Path

import httpx
import pytest
from babel.messages.pofile import read_po

from app.core import i18n
from app.core.tokens import Purpose, day_number
from tests.sink import Sink
from tests.web import reading
from tests.world import World, house_at

PUBLIC = ("/", "/archive", "/archive/daily", "/archive/daily/2026-10-26")
FILES = ("/style.css", "/source/daily/2026-10-26.txt", "/feeds/daily.atom", "/feeds/daily.json")


async def private(world: World) -> list[str]:
    """Return the addresses of the pages that come by mail, for a reader and for one who asked."""
    reader = await world.reader("r@example.com", "daily", "weekly")
    await reading.ask(world, "new@example.com")
    asked = (await reading.who_is(world, "new@example.com")).id or 0
    link = world.house.composer.link
    return [
        link(Purpose.CONFIRM, asked, day_number(world.clock())),
        link(Purpose.PREFERENCES, reader),
        link(Purpose.UNSUBSCRIBE, reader, 1),
    ]


async def all_pages(world: World) -> list[str]:
    await world.send(await world.issue("daily"))
    return [*PUBLIC, *await private(world)]


async def test_every_page_carries_the_headers_that_keep_it_safe(world: World) -> None:
    for path in [*await all_pages(world), *FILES, "/nowhere", "/p/" + "A" * 32]:
        answer = await world.web.get(path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "set-cookie" not in answer.headers


async def test_pages_that_come_by_mail_are_kept_nowhere_and_named_nowhere(world: World) -> None:
    for path in await private(world):
        answer = await world.web.get(path)
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert '<meta name="robots" content="noindex">' in answer.text


async def test_https_is_held_on_to_where_pages_are_served_by_it(
    tmp_path: Path, empty_database: Path, sink: Sink
) -> None:
    keys = {"secret_key": "s" * 40, "suppression_key": "p" * 40}
    base = {"base_url": "https://news.example.com"}
    async with house_at(tmp_path, empty_database, sink, **keys, **base) as world:
        answer = await world.web.get("/")
        assert answer.headers["strict-transport-security"] == "max-age=31536000"
        assert "https://news.example.com/archive" in answer.text
        assert "127.0.0.1" not in answer.text


async def test_the_one_stylesheet_has_at_most_seven_kilobytes_on_its_way(world: World) -> None:
    found = re.search(r'href="([^"]+/style\.css[^"]*)"', (await world.web.get("/")).text)
    assert found
    css = (await world.web.get(found[1])).content
    assert len(css) <= 7 * 1024
    assert b"\n" not in css
    assert b"/*" not in css


async def test_head_answers_as_get_does_and_changes_nothing(world: World) -> None:
    paths = [*await all_pages(world), *FILES]
    async with reading.unchanged(world):
        for path in paths:
            shown, head = await world.web.get(path), await world.web.head(path)
            assert head.status_code == shown.status_code == 200, path
            assert head.headers == shown.headers


async def test_a_page_asks_nobody_else_for_anything_and_runs_no_script(world: World) -> None:
    for path in await all_pages(world):
        text = (await world.web.get(path)).text
        assert "<script" not in text
        assert not re.search(r"\son\w+=", text)
        assert "style=" not in text
        for tag in re.findall(r"<(?:link|img|iframe|form)\b[^>]*>", text):
            for url in re.findall(r'(?:src|href|action)="([^"]*)"', tag):
                assert url == "" or url.startswith("http://127.0.0.1:8000/"), tag


async def test_every_link_of_ours_on_a_page_leads_somewhere(world: World) -> None:
    for path in await all_pages(world):
        found = re.findall(
            r'<a [^>]*href="(http://127\.0\.0\.1:8000[^"]*)"', (await world.web.get(path)).text
        )
        assert found
        for url in set(found):
            assert (await world.web.get(url.replace("&amp;", "&"))).status_code == 200, f"{path}: {url}"


async def test_an_evil_host_header_changes_no_link(world: World) -> None:
    hosts = ("evil.example", "evil.example/a?b", "evil.example:80#", "a b", "")
    for path in await all_pages(world):
        plain = reading.unstamped(await world.web.get(path))
        for host in hosts:
            evil = await world.web.get(path, headers={"Host": host})
            assert reading.unstamped(evil) == plain
    form = {"email": "x", "editions": "daily"}
    answer = await world.web.post("/subscribe", data=form, headers={"Host": hosts[0]})
    assert "evil" not in answer.text


async def test_a_letter_asked_for_with_an_evil_host_has_our_links(world: World) -> None:
    form = {"email": "r@example.com", "editions": "daily", "language": "zh", "stamp": reading.stamp(world)}
    await world.web.post("/subscribe", data=form, headers={"Host": "evil.example"})
    letter = (await world.letters(1))[0]
    assert b"evil" not in letter.data
    assert all(url.startswith("http://127.0.0.1:8000/") for url in reading.links(letter.data))


async def test_a_page_speaks_the_language_asked_for(world: World) -> None:
    for accepts, query, tag in (
        ("", "", "zh-CN"),
        ("en-GB,en;q=0.8,zh;q=0.5", "", "en"),
        ("zh-TW,en;q=0.8", "", "zh-CN"),
        ("fr", "", "zh-CN"),
        ("zh", "?language=en", "en"),
        ("en", "?language=zh", "zh-CN"),
        ("en", "?language=xx", "en"),
    ):
        for path in ("/", "/archive", "/nowhere"):
            answer = await world.web.get(path + query, headers={"Accept-Language": accepts})
            assert f'<html lang="{tag}"' in answer.text
            assert "Accept-Language" in answer.headers["vary"]


async def test_a_language_chosen_on_a_page_goes_with_the_reader(world: World) -> None:
    await world.send(await world.issue("daily"))
    for path in PUBLIC:
        text = (await world.web.get(f"{path}?language=en")).text
        ours = re.findall(r'<a [^>]*href="http://127\.0\.0\.1:8000(/[^"]*)"', text)
        lost = [url for url in ours if "language=" not in url and not url.startswith(("/feeds", "/source"))]
        assert not lost, path
        assert f"{path}?language=zh" in ours


def said_in(language: str) -> set[str]:
    """Return the messages of the pages in a language that are long enough to be known again."""
    with (i18n.LOCALES / f"{language}.po").open("rb") as file:
        found = {str(message.string) for message in read_po(file) if str(message.id).startswith("web.")}
    return {words for words in found if len(words) > 3 and "%(" not in words and "|" not in words}


async def test_no_page_says_a_word_of_ours_in_the_other_language(world: World) -> None:
    own_texts = {"Atom", "HTML"}
    for path in await all_pages(world):
        for language, other in (("zh", "en"), ("en", "zh")):
            text = (await world.web.get(f"{path}?language={language}")).text
            assert not [
                words for words in said_in(other) - said_in(language) - own_texts if f">{words}<" in text
            ]
            assert [words for words in said_in(language) if f">{words}<" in text]


async def test_an_error_is_a_page_that_says_where_to_go(world: World) -> None:
    for method, path, status in (
        ("GET", "/nowhere", 404),
        ("GET", "/p/short", 404),
        ("POST", "/", 405),
        ("GET", "/subscribe", 405),
        ("DELETE", "/archive", 405),
    ):
        answer = await world.web.request(method, f"{path}?language=en")
        assert answer.status_code == status
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "There is no such page" in answer.text
        assert 'href="http://127.0.0.1:8000/?language=en"' in answer.text


@pytest.mark.parametrize(
    "body",
    [
        b"email=%ff%fe&editions=daily",
        b"email=a&" + b"editions=daily&" * 60,
        b"\x00\x01\x02",
        b"email=r@example.com&editions=daily&language=" + b"z" * 100,
    ],
)
async def test_a_form_that_cannot_be_read_is_refused_politely(world: World, body: bytes) -> None:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    async with reading.unchanged(world):
        answer = await world.web.post("/subscribe?language=en", content=body, headers=kind)
    assert answer.status_code in (400, 422)
    assert "<html" in answer.text


async def test_a_bug_is_shown_by_a_number_and_not_by_its_words(world: World) -> None:
    async with world.db.engine.begin() as connection:
        await connection.exec_driver_sql("UPDATE edition SET language = 'unheard'")
    answer: httpx.Response = await world.web.get("/feeds/daily.atom?language=en")
    assert answer.status_code == 500
    assert "Something broke on our side" in answer.text
    assert re.search(r"name the number [0-9a-f]{8}", answer.text)
    assert "unheard" not in answer.text


async def test_a_database_that_is_away_gives_a_page_that_says_so(world: World) -> None:
    async with world.db.engine.begin() as connection:
        await connection.exec_driver_sql("ALTER TABLE edition RENAME TO gone")
    answer = await world.web.get("/?language=en")
    assert answer.status_code == 503
    assert "Back in a moment" in answer.text

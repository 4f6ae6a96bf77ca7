"""The embedded mailbox of a first run takes what the worker hands over and shows it, on this machine only."""

import smtplib
from asyncio import to_thread
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from app import mailbox, main
from app.core import config
from app.mailbox import KEPT, Mail, Mailbox
from tests.sink import Sink
from tests.web.reading import ask, link
from tests.world import World, house_at

AT = datetime(2026, 10, 26, tzinfo=UTC)
ABROAD = {"base_url": "https://news.example.com", "secret_key": "s" * 40, "suppression_key": "p" * 40}


@pytest.fixture
async def box() -> AsyncIterator[Mailbox]:
    """A mailbox; its port is `box.port`."""
    one = Mailbox()
    one.port = await one.open()  # type: ignore[attr-defined]
    yield one
    await one.close()


@pytest.fixture
async def home(
    tmp_path: Path, empty_database: Path, sink: Sink, box: Mailbox
) -> AsyncIterator[tuple[World, httpx.AsyncClient]]:
    """A house whose relay is the mailbox, and a browser on this machine."""
    relay = f"smtp+plain://127.0.0.1:{box.port}?connections=2"  # type: ignore[attr-defined]
    async with house_at(tmp_path, empty_database, sink, relays=relay) as world:
        app = main.build(world.house)
        app.include_router(mailbox.router(box))
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as browser:
            yield world, browser


def fill(box: Mailbox, count: int) -> None:
    for number in range(1, count + 1):
        raw = f"From: a@example.com\r\nSubject: number {number}\r\n\r\nbody {number}\r\n".encode()
        box.mails.append(Mail(number, f"r{number}@example.com", AT, raw))


async def test_what_is_sent_is_shown_as_html_text_headers_and_source(
    home: tuple[World, httpx.AsyncClient], box: Mailbox
) -> None:
    world, browser = home
    await world.reader("r@example.com", "daily")
    await world.deliver(await world.send(await world.issue("daily")))
    assert len(box.mails) == 1
    listed = (await browser.get("/mailbox?language=en")).text
    assert "r@example.com" in listed
    assert "1 message<" in listed
    seen = {
        part: (await browser.get(f"/mailbox/1?part={part}")).text for part in ("text", "headers", "source")
    }
    assert "缓存为何没有变快" in seen["text"]
    assert "List-Unsubscribe-Post" in seen["headers"]
    assert "Content-Transfer-Encoding: base64" in seen["source"]
    page = (await browser.get("/mailbox/1")).text
    assert 'src="/mailbox/1/html"' in page
    assert 'sandbox="allow-popups allow-popups-to-escape-sandbox"' in page
    html = await browser.get("/mailbox/1/html")
    assert "缓存为何没有变快" in html.text
    assert "sandbox" in html.headers["content-security-policy"]
    assert "default-src 'none'" in html.headers["content-security-policy"]
    assert html.headers["x-content-type-options"] == "nosniff"


async def test_a_first_reader_confirms_by_the_letter_in_the_mailbox(
    home: tuple[World, httpx.AsyncClient], box: Mailbox
) -> None:
    world, browser = home
    await ask(world, "r@example.com", "daily")
    async with world.working():
        while not box.mails:
            await to_thread(lambda: None)
    answer = await browser.post(link(box.mails[0].raw, "c"))
    assert answer.status_code == 303


async def test_nobody_else_sees_the_mailbox(home: tuple[World, httpx.AsyncClient], box: Mailbox) -> None:
    world, _ = home
    fill(box, 1)
    app = main.build(world.house)
    app.include_router(mailbox.router(box))
    for host in ("203.0.113.7", "10.0.0.1", "2001:db8::1", ""):
        transport = httpx.ASGITransport(app, client=(host, 4711))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as stranger:
            for path in ("/mailbox", "/mailbox/1", "/mailbox/1/html"):
                answer = await stranger.get(
                    path, headers={"X-Forwarded-For": "127.0.0.1", "Host": "localhost"}
                )
                assert answer.status_code == 404
                assert "number 1" not in answer.text


async def test_a_visitor_whom_a_proxy_on_this_machine_passes_on_does_not_see_the_mailbox(
    home: tuple[World, httpx.AsyncClient], box: Mailbox
) -> None:
    _, here = home
    fill(box, 1)
    for header in ("X-Forwarded-For", "Forwarded"):
        assert (await here.get("/mailbox", headers={header: "for=203.0.113.7"})).status_code == 404
    assert (await here.get("/mailbox")).status_code == 200


async def test_another_site_whose_name_leads_here_does_not_see_the_mailbox(
    home: tuple[World, httpx.AsyncClient], box: Mailbox
) -> None:
    _, here = home
    fill(box, 1)
    for host in ("evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", ""):
        for path in ("/mailbox", "/mailbox/1", "/mailbox/1/html"):
            assert (await here.get(path, headers={"Host": host})).status_code == 404
    for host in ("localhost", "LOCALHOST:9", "127.0.0.1:8000", "[::1]", "[::1]:8000"):
        assert (await here.get("/mailbox", headers={"Host": host})).status_code == 200


async def test_a_house_whose_pages_are_not_on_this_machine_shows_no_mailbox(
    tmp_path: Path, empty_database: Path, sink: Sink, box: Mailbox
) -> None:
    async with house_at(tmp_path, empty_database, sink, **ABROAD) as world:
        app = main.build(world.house)
        app.include_router(mailbox.router(box))
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8000"
        ) as browser:
            assert (await browser.get("/mailbox")).status_code == 404


async def test_without_the_embedded_relay_there_is_no_mailbox(world: World) -> None:
    assert not mailbox.wanted(world.house.settings)
    assert (await world.web.get("/mailbox")).status_code == 404


async def test_the_last_five_hundred_mails_are_kept(
    home: tuple[World, httpx.AsyncClient], box: Mailbox
) -> None:
    _, browser = home
    fill(box, KEPT + 3)
    text = (await browser.get("/mailbox")).text
    assert text.count('<a href="http://127.0.0.1:8000/mailbox/') == KEPT
    assert text.index(f"number {KEPT + 3}<") < text.index("number 4<"), "the newest first"
    assert (await browser.get("/mailbox/3")).status_code == 404
    assert (await browser.get("/mailbox/4")).status_code == 200
    assert (await browser.get("/mailbox/none")).status_code in (404, 422)


async def test_mails_are_found_by_recipient_and_subject(
    home: tuple[World, httpx.AsyncClient], box: Mailbox
) -> None:
    _, browser = home
    fill(box, 30)
    for words, count in (("R7@EXAMPLE", 1), ("number 2", 11), ("nothing", 0), ("<script>", 0)):
        text = (await browser.get("/mailbox", params={"q": words})).text
        assert text.count("/mailbox/") - text.count('action="http://127.0.0.1:8000/mailbox/') == count
        assert "<script>" not in text


async def test_head_works_on_the_mailbox_too(home: tuple[World, httpx.AsyncClient], box: Mailbox) -> None:
    _, browser = home
    fill(box, 1)
    for path in ("/mailbox", "/mailbox/1", "/mailbox/1/html"):
        assert (await browser.head(path)).status_code == 200


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\r\n",
        b"no header at all",
        b"Subject: =?utf-8?b?////?=\r\n\r\n\xff\xfe",
        b"Content-Type: text/html; charset=no-such\r\n\r\n<b>x</b>",
        b"Content-Type: multipart/alternative; boundary=x\r\n\r\n--x\r\n\r\n",
        b"Subject: <script>alert(1)</script>\r\nContent-Type: text/html\r\n\r\n<script>alert(1)</script>",
    ],
)
async def test_a_mail_that_is_not_ours_is_shown_as_far_as_it_goes(
    home: tuple[World, httpx.AsyncClient], box: Mailbox, raw: bytes
) -> None:
    _, browser = home
    box.mails.append(Mail(1, "r@example.com", AT, raw))
    for path in ("/mailbox", *(f"/mailbox/1?part={part}" for part in ("html", "text", "headers", "source"))):
        answer = await browser.get(path)
        assert answer.status_code == 200
        assert "<script" not in answer.text
    assert (await browser.get("/mailbox/1/html")).status_code == 200


async def test_the_mailbox_takes_mail_from_any_program(box: Mailbox) -> None:
    def send() -> None:
        with smtplib.SMTP("127.0.0.1", box.port) as relay:  # type: ignore[attr-defined]
            relay.sendmail(
                "a@example.com", ["r@example.com", "s@example.com"], "Subject: hello\r\n\r\n.\r\nbody\r\n"
            )

    await to_thread(send)
    mail = box.mails[0]
    assert (mail.to, mail.subject, mail.number) == ("r@example.com, s@example.com", "hello", 1)
    assert mail.raw.endswith(b"\r\n.\r\nbody\r\n")


def test_the_settings_point_at_the_mailbox_and_keep_what_was_said_of_it() -> None:
    keys: dict[str, object] = {"secret_key": "s" * 40, "suppression_key": "p" * 40, "_env_file": None}
    settings = config.load(relays="mailbox:?connections=3&lane=letters smtp+plain://127.0.0.1:2525", **keys)
    assert mailbox.wanted(settings)
    first, second = mailbox.pointed_at(settings, 4025).relay_urls
    assert (first.name, first.connections, first.lane) == ("127.0.0.1:4025", 3, "letters")
    assert second.name == "127.0.0.1:2525"

"""What the tests stand on: a database of one's own, a real browser, and no network but the loopback."""

import asyncio
import re
import socket
from urllib.parse import urlsplit

import psycopg
import pytest
from playwright.sync_api import Browser
from pytest_socket import SocketConnectBlockedError

from tests import needs, postgres
from tests.ports import free_port


def test_each_test_has_an_empty_database_of_its_own(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE reader (name text)")
        name = connection.execute("SELECT current_database()").fetchone()
        encoding = connection.execute("SHOW server_encoding").fetchone()
    assert name == (urlsplit(postgres_url).path.removeprefix("/"),)
    assert encoding == ("UTF8",)


def test_and_the_next_finds_nothing_of_the_last(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert tables == []


def test_a_server_of_our_own_starts_as_nobody_in_particular_and_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(postgres.NAMED, raising=False)
    if postgres.find_programs() is None:
        pytest.skip("There is no initdb on this machine; a server elsewhere is used instead.")
    started = postgres.start()
    assert isinstance(started, postgres.Server), started
    with psycopg.connect(started.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    started.stop()
    assert postgres.log_in(started.url) is None


def test_a_server_that_is_named_but_not_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(postgres.NAMED, "postgresql://nobody@127.0.0.1:1/none")
    found = postgres.find_or_start()
    assert isinstance(found, postgres.Missing)
    assert postgres.NAMED in found.reason


def test_where_nothing_may_skip_a_missing_thing_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(needs.STRICT, raising=False)
    with pytest.raises(pytest.skip.Exception, match="No PostgreSQL"):
        needs.give_up("No PostgreSQL here.")
    monkeypatch.setenv(needs.STRICT, "1")
    with pytest.raises(pytest.fail.Exception, match="must not be skipped"):
        needs.give_up("No PostgreSQL here.")


def test_a_browser_shows_a_page(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 320, "height": 600})
    page.set_content("<title>早报</title><p>你好，<a href='#'>读者</a></p>")
    assert page.title() == "早报"
    assert [link.text_content() for link in page.locator("a").all()] == ["读者"]
    assert page.evaluate("() => document.documentElement.scrollWidth") == 320
    page.close()


async def test_an_asyncio_test_uses_the_same_browser(browser: Browser) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<title>from the loop</title>")
        await writer.drain()
        writer.close()

    def visit(port: int) -> str:
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        title = page.title()
        page.close()
        return title

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        assert await asyncio.to_thread(visit, server.sockets[0].getsockname()[1]) == "from the loop"


def test_what_goes_wrong_in_the_browser_is_raised_in_the_test(browser: Browser) -> None:
    page = browser.new_page()
    with pytest.raises(Exception, match=re.escape("net::ERR_CONNECTION_REFUSED")):
        page.goto(f"http://127.0.0.1:{free_port()}/")
    page.close()


@pytest.mark.filterwarnings("ignore:A test tried to use socket")
def test_nothing_beyond_the_loopback_can_be_reached() -> None:
    with pytest.raises(SocketConnectBlockedError):
        socket.create_connection(("192.0.2.1", 80), timeout=1)

"""The whole life of a reader in a real browser with JavaScript off, and what a link scanner's browser may do."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, Page

from app import mailbox, main
from app.core.tokens import Purpose, day_number
from app.subscribers.consent import State
from tests.ports import free_port
from tests.sink import Sink
from tests.web import reading
from tests.web.reading import link, links, who_is
from tests.world import World, house_at

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SAID = {
    "zh": ["请查收邮件", "确认订阅", "已保存", "已退订", "已经退订"],
    "en": ["Look into your inbox", "Confirm your", "Saved", "Unsubscribed from", "You are unsubscribed"],
}


@pytest.fixture
def box() -> mailbox.Mailbox:
    """The mailbox that `served` shows."""
    return mailbox.Mailbox()


@pytest.fixture
async def served(
    tmp_path: Path, empty_database: Path, sink: Sink, box: mailbox.Mailbox
) -> AsyncIterator[World]:
    """A whole house whose pages and mailbox a browser can open."""
    port = free_port()
    async with house_at(tmp_path, empty_database, sink, base_url=f"http://127.0.0.1:{port}") as world:
        app = main.build(world.house)
        app.include_router(mailbox.router(box))
        server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None, ws="none"))
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        yield world
        server.should_exit = True
        await serving


def fits(page: Page) -> bool:
    """Tell whether nothing on the page is wider than the window."""
    return bool(page.evaluate(OVERFLOW) <= 0)


@pytest.mark.parametrize(("language", "width"), [("zh", 1000), ("en", 360)])
async def test_a_reader_comes_chooses_and_leaves_without_javascript(
    served: World, browser: Browser, language: str, width: int
) -> None:
    base, said = served.house.settings.base_url, SAID[language]
    locale = {"zh": "zh-CN", "en": "en-GB"}[language]
    context = await asyncio.to_thread(
        browser.new_context,
        java_script_enabled=False,
        locale=locale,
        viewport={"width": width, "height": 800},
    )
    page: Any = await asyncio.to_thread(context.new_page)

    def subscribe() -> None:
        page.goto(base)
        assert fits(page)
        page.fill("#email", "reader@example.com")
        page.check("input[value=weekly]")
        page.click("form button")
        assert said[0] in page.inner_text("h1")
        assert fits(page)

    def confirm(url: str) -> None:
        page.goto(url)
        assert said[1] in page.inner_text("h1")
        assert fits(page)
        page.click("main form button")
        assert "/p/" in page.url
        assert said[2] in page.inner_text(".banner")
        assert fits(page)

    def choose(daily: bool, weekly: bool) -> None:
        page.set_checked("input[value=daily]", daily)
        page.set_checked("input[value=weekly]", weekly)
        page.click("main form button >> nth=0")

    def leave(url: str, last: str) -> None:
        page.goto(url)
        assert fits(page)
        page.click("main form button >> nth=0")
        assert last in page.inner_text("h1")
        assert fits(page)

    async def has(*editions: str) -> bool:
        return await reading.chosen(served, "reader@example.com") == set(editions)

    await asyncio.to_thread(subscribe)
    letter = (await served.letters(1))[0]
    await asyncio.to_thread(confirm, link(letter.data, "c"))
    assert (await who_is(served, "reader@example.com")).language == language
    for wish in (("daily",), ("weekly",), ("daily", "weekly")):
        await asyncio.to_thread(choose, "daily" in wish, "weekly" in wish)
        assert await has(*wish)
    await served.deliver(await served.send(await served.issue("daily")))
    mail = served.sink.mails[-1]
    await asyncio.to_thread(leave, link(mail.data, "u"), said[3])
    assert await has("weekly")
    await asyncio.to_thread(page.goto, link(mail.data, "p"))
    await asyncio.to_thread(choose, False, False)
    assert said[4] in await asyncio.to_thread(page.inner_text, "h1")
    assert (await who_is(served, "reader@example.com")).state == State.ENDED
    await asyncio.to_thread(context.close)

    answer = await served.web.post(link(mail.data, "u"), data={"List-Unsubscribe": "One-Click"})
    assert answer.status_code == 200


async def test_no_page_is_wider_than_a_narrow_screen(served: World, browser: Browser) -> None:
    await served.send(await served.issue("daily"))
    await served.send(await served.issue("weekly"))
    reader = await served.reader("a.reader.with.a.very.long.name.indeed@mail.subdomain.example.com", "daily")
    composer = served.house.composer
    pages = [
        *(
            f"{served.house.settings.base_url}{path}"
            for path in ("/", "/archive", "/archive/daily", "/nowhere")
        ),
        *(f"{served.house.settings.base_url}/archive/{slug}/2026-10-26" for slug in ("daily", "weekly")),
        composer.link(Purpose.PREFERENCES, reader),
        composer.link(Purpose.UNSUBSCRIBE, reader, 1),
        composer.link(Purpose.CONFIRM, reader, day_number(served.clock())),
    ]

    def look() -> list[str]:
        page: Any = browser.new_page(viewport={"width": 320, "height": 700})
        wide, faults = [], []
        page.on("console", lambda message: faults.append(message.text))
        for url in pages:
            for language in ("zh", "en"):
                page.goto(f"{url}?language={language}")
                if page.evaluate(OVERFLOW) > 0:
                    wide.append(url)
        page.close()
        return wide + [fault for fault in faults if "404" not in fault]

    assert await asyncio.to_thread(look) == []


async def test_a_scanner_that_opens_every_link_and_runs_scripts_changes_no_row(
    served: World, browser: Browser
) -> None:
    await served.reader("active@example.com", "daily", "weekly")
    await reading.ask(served, "new@example.com", "daily", "weekly")
    await reading.ask(served, "active@example.com")
    await served.deliver(await served.send(await served.issue("daily")))
    base = served.house.settings.base_url
    ours = {url for mail in served.sink.mails for url in links(mail.data) if url.startswith(base)}

    def open_all() -> list[str]:
        page: Any = browser.new_page()
        seen = []
        for url in ours:
            page.goto(url)
            page.hover("a >> nth=1")
            seen.append(page.url)
        page.close()
        return seen

    async with reading.unchanged(served):
        assert set(await asyncio.to_thread(open_all)) == ours


async def test_a_link_in_the_mailbox_opens_a_page_whose_button_works(
    served: World, box: mailbox.Mailbox, browser: Browser
) -> None:
    await reading.ask(served, "new@example.com", "daily")
    letter = (await served.letters(1))[0]
    box.mails.append(mailbox.Mail(1, letter.recipient, served.clock(), letter.data))

    def click_through() -> str:
        context: Any = browser.new_context(viewport={"width": 1300, "height": 900})
        page = context.new_page()
        page.goto(f"{served.house.settings.base_url}/mailbox")
        page.click(".mails a")
        with page.expect_popup() as opened:
            page.frame_locator("iframe >> nth=0").locator("a[href*='/c/'] >> nth=0").click()
        popup = opened.value
        popup.click("main form button")
        popup.wait_for_url("**/p/**")
        heading: str = popup.inner_text("h1")
        context.close()
        return heading

    assert await asyncio.to_thread(click_through)
    assert (await who_is(served, "new@example.com")).state == State.ACTIVE


async def test_the_page_works_by_the_other_name_of_this_machine(served: World, browser: Browser) -> None:
    port = served.house.settings.base_url.rpartition(":")[2]

    def subscribe() -> tuple[str, str]:
        page: Any = browser.new_page()
        page.goto(f"http://localhost:{port}/")
        painted: str = page.evaluate("getComputedStyle(document.querySelector('main')).borderTopWidth")
        page.fill("#email", "reader@example.com")
        page.click("form button")
        page.wait_for_url("**/subscribe")
        heading: str = page.inner_text("h1")
        page.close()
        return painted, heading

    painted, heading = await asyncio.to_thread(subscribe)
    assert painted == "4px"
    assert heading in (SAID["zh"][0], SAID["en"][0])

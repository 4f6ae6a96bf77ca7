"""A reader's whole life in a real browser without JavaScript, and every page by axe, by keyboard, at 320 pixels."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from playwright.sync_api import Browser

from app.core.tokens import Purpose, day_number
from app.flows import second_thoughts, subscribe
from app.subscribers import errands, store
from app.subscribers.consent import State
from app.subscribers.errands import Kind
from app.subscribers.store import Origin
from tests.sink import Sink
from tests.web import reading
from tests.web.reading import link, who_is
from tests.web.served import serving
from tests.world import World

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
LOCALES = {"zh": "zh-CN", "en": "en-GB"}
SAID = {
    "zh": {
        "inbox": "请查收邮件", "confirm": "确认订阅", "saved": "已保存", "paused": "已暂停", "named": "请到新邮箱查收",
        "left": "已经退订", "erased": "已经删除", "once": "地址写对了吗",
    },
    "en": {
        "inbox": "Look into your inbox", "confirm": "Confirm your subscription", "saved": "Saved.",
        "paused": "You are paused", "named": "Look into your new inbox", "left": "You are unsubscribed",
        "erased": "Everything is erased", "once": "Is the address right",
    },
}  # fmt: skip


@pytest.fixture
async def served(tmp_path: Path, empty_database: Path, sink: Sink) -> AsyncIterator[World]:
    async with serving(tmp_path, empty_database, sink) as world:
        yield world


class Visitor:
    """Somebody with a browser: what they open, press and read; every page must fit the window."""

    def __init__(self, page: Any, said: dict[str, str]) -> None:
        self.page, self.said = page, said

    async def open(self, url: str, words: str | None = None) -> None:
        await asyncio.to_thread(self.page.goto, url)
        await self._read(words)

    async def press(self, what: str, words: str | None = None) -> None:
        def go() -> None:
            with self.page.expect_navigation():
                self.page.click(what)

        await asyncio.to_thread(go)
        await self._read(words)

    async def fill(self, what: str, value: str) -> None:
        await asyncio.to_thread(self.page.fill, what, value)

    async def choose(self, what: str, value: str) -> None:
        await asyncio.to_thread(self.page.select_option, what, value)

    async def tick(self, what: str, wanted: bool) -> None:
        await asyncio.to_thread(self.page.set_checked, what, wanted)

    async def _read(self, words: str | None) -> None:
        assert await asyncio.to_thread(self.page.evaluate, OVERFLOW) <= 0, self.page.url
        if words is not None:
            assert self.said[words] in await asyncio.to_thread(self.page.inner_text, "main")


async def newest(world: World, count: int, page: str) -> str:
    """Return the link to a page in the last of so many mails."""
    return link((await world.letters(count))[count - 1].data, page)


@pytest.mark.parametrize("width", [360, 1000])
@pytest.mark.parametrize("language", ["zh", "en"])
async def test_a_reader_comes_chooses_pauses_moves_leaves_comes_back_and_is_erased(
    served: World, browser: Browser, language: str, width: int
) -> None:
    context: Any = await asyncio.to_thread(
        browser.new_context, java_script_enabled=False, locale=LOCALES[language],
        viewport={"width": width, "height": 800},
    )  # fmt: skip
    visitor = Visitor(await asyncio.to_thread(context.new_page), SAID[language])
    await visitor.open(served.house.settings.base_url)
    await visitor.fill("#email", "old@gmial.com")
    await visitor.press("#subscribe .button", "once")
    await visitor.press(".quiet", "inbox")
    await visitor.open(await newest(served, 1, "c"), "confirm")
    await visitor.press("main form .button >> nth=0", "saved")
    preferences: str = visitor.page.url.split("?")[0]

    await visitor.tick("input[value=daily]", False)
    await visitor.tick("input[value=weekly]", True)
    await visitor.tick("input[name=weekdays_only]", True)
    await visitor.choose("#hour", "8")
    await visitor.choose("#timezone", "Europe/Berlin")
    await visitor.press("main form .button >> nth=0", "saved")
    who = await who_is(served, "old@gmial.com")
    assert (who.hour, who.timezone, who.weekdays_only, who.language) == (8, "Europe/Berlin", True, language)
    assert await reading.chosen(served, "old@gmial.com") == {"weekly"}

    await visitor.choose("#pause", "week")
    await visitor.press("main form .button >> nth=0", "saved")
    await visitor.open(preferences, "paused")
    await visitor.choose("#pause", "none")
    await visitor.press("main form .button >> nth=0", "saved")

    await visitor.press("button[value=address]", "inbox")
    await visitor.open(await newest(served, 2, "e"))
    await visitor.fill("#email", "new@example.com")
    await visitor.press("main form .button", "named")
    await visitor.open(await newest(served, 3, "e"))
    await visitor.press("main form .button", "saved")
    await served.letters(4)
    assert (await who_is(served, "new@example.com")).state == State.ACTIVE

    out = served.house.composer.link(
        Purpose.UNSUBSCRIBE, (await who_is(served, "new@example.com")).id or 0, 2
    )
    await visitor.open(out)
    await visitor.press("main form .button >> nth=0", "left")
    await visitor.press("button[value=often]", "left")
    await visitor.press(".quiet", "saved")
    assert await reading.chosen(served, "new@example.com") == {"weekly"}
    await visitor.open(out)
    await visitor.press("main form .button >> nth=0", "left")
    served.clock.forward(hours=25)
    await visitor.open(served.house.settings.base_url)
    await visitor.fill("#email", "new@example.com")
    await visitor.press("#subscribe .button", "inbox")
    await visitor.open(await newest(served, 5, "c"), "confirm")
    await visitor.press("main form .button >> nth=0", "saved")

    await visitor.press("button[value=erase]", "inbox")
    await visitor.open(await newest(served, 6, "e"))
    await visitor.press("main form .button", "erased")
    assert not (await reading.everything(served))["subscriber"]
    await asyncio.to_thread(context.close)


async def every_page(world: World) -> list[str]:
    """Return every page that a reader may come to."""
    await world.send(await world.issue("daily"))
    make, now = world.house.composer.link, world.clock()
    reader, gone, resting = [
        await world.reader(f"{name}@example.com") for name in ("reader", "gone", "resting")
    ]
    asked = await world.reader("asked@example.com")
    errand = []
    async with world.db.transaction() as session:
        (await store.get(session, asked)).state = State.PENDING
        await subscribe.leave(session, await store.get(session, gone), None, Origin("test"), now)
        pausing = await store.get(session, resting)
        await second_thoughts.pause(session, pausing, now + second_thoughts.UNDO, Origin("test"), now)
        for kind in Kind:
            number = await errands.add(
                session, reader, kind, now, "n@example.com" if kind == Kind.MOVE else ""
            )
            errand.append(make(Purpose.ERRAND, number))
    base = world.house.settings.base_url
    return [
        *(f"{base}{path}" for path in ("/", "/embed", "/embed/code", "/privacy", "/archive", "/nowhere")),
        f"{base}/archive/daily/2026-10-26",
        make(Purpose.CONFIRM, asked, day_number(now)),
        make(Purpose.CONFIRM, asked, day_number(now) - 9),
        make(Purpose.PREFERENCES, reader),
        make(Purpose.PREFERENCES, gone),
        make(Purpose.PREFERENCES, resting),
        make(Purpose.UNSUBSCRIBE, reader, 1),
        make(Purpose.UNSUBSCRIBE, gone, 1),
        *errand,
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_wrong_with_any_page_and_none_is_wider_than_320(
    served: World, browser: Browser, scheme: Any
) -> None:
    pages, axe = await every_page(served), AXE_FILE_PATH.read_text(encoding="utf-8")

    def look() -> list[str]:
        page: Any = browser.new_page(viewport={"width": 320, "height": 700}, color_scheme=scheme)
        faults = []
        for url in pages:
            for language in ("zh", "en"):
                page.goto(f"{url}?language={language}")
                page.evaluate(axe)
                found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
                faults += [f"{url} {language}: {one['id']} {one['nodes'][0]['html'][:90]}" for one in found]
                if page.evaluate(OVERFLOW) > 0:
                    faults.append(f"{url} {language}: too wide")
        page.close()
        return faults

    assert await asyncio.to_thread(look) == []


async def test_the_keyboard_alone_fills_in_the_form_and_the_preferences(
    served: World, browser: Browser
) -> None:
    reader = await served.reader("r@example.com")
    url = served.house.composer.link(Purpose.PREFERENCES, reader)

    def type_through() -> tuple[str, str]:
        page: Any = browser.new_page()
        page.goto(served.house.settings.base_url)
        reach(page, "email")
        page.keyboard.type("keys@example.com")
        page.keyboard.press("Enter")
        page.wait_for_url("**/subscribe")
        heading: str = page.inner_text("h1")
        page.goto(url)
        reach(page, "weekdays_only")
        page.keyboard.press("Space")
        reach(page, "hour")
        page.keyboard.press("ArrowDown")
        reach(page, "language")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url("**saved=1**")
        saved: str = page.inner_text(".banner")
        page.close()
        return heading, saved

    heading, saved = await asyncio.to_thread(type_through)
    assert heading in (SAID["zh"]["inbox"], SAID["en"]["inbox"])
    assert saved.startswith((SAID["zh"]["saved"], SAID["en"]["saved"]))
    who = await who_is(served, "r@example.com")
    assert (who.weekdays_only, who.hour) == (True, 0)


def reach(page: Any, name: str) -> None:
    """Press Tab until the field of this name has the focus, which must be seen."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == name:
            return
    raise AssertionError(f"no way by keyboard to {name}")

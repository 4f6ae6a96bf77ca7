"""Every page for readers in a real browser: nobody is shut out, nothing runs off, paper shows what counts."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from tests import axe
from tests.gallery import place, sheets
from tests.gallery.readers import Visit

ISSUES = ("/archive/daily/2026-10-26", "/archive/weekly/2026-10-25", "/archive/daily/2026-10-23")
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
VISIBLE = "s => [...document.querySelectorAll(s)].filter(e => e.offsetParent).length"


async def test_no_page_shuts_anybody_out(tmp_path: Path, browser: Browser) -> None:
    def look(base: str, visits: dict[str, Visit]) -> list[str]:
        pages = visits | {path: Visit(path) for path in ("/archive/daily", *ISSUES)}
        found = []
        looks: tuple[tuple[Any, str], ...] = (("light", "zh"), ("dark", "en"))
        for scheme, language in looks:
            page: Any = browser.new_page(viewport={"width": 320, "height": 800}, color_scheme=scheme)
            for name, visit in pages.items():
                sheets.arrive(page, f"{base}{visit.path}?language={language}", visit.steps)
                found += [f"{name} {language} {scheme}: {each}" for each in axe.violations(page)]
                found += [f"{name}: {each}" for each in axe.faults(page.content())]
                found += [f"{name} is too wide"] * (page.evaluate(OVERFLOW) > 0)
            page.close()
        return found

    assert await place.opened(tmp_path, None, look) == []


async def test_an_issue_on_paper_is_the_issue_alone(tmp_path: Path, browser: Browser) -> None:
    def look(base: str, _: dict[str, Visit]) -> dict[str, int]:
        page: Any = browser.new_page()
        page.goto(f"{base}{ISSUES[1]}")
        page.emulate_media(media="print")
        seen = {
            name: page.evaluate(VISIBLE, name) for name in ("h1", "article", "header.top", ".web", ".foot")
        }
        page.close()
        return seen

    printed = await place.opened(tmp_path, None, look)
    assert printed == {"h1": 1, "article": 3, "header.top": 0, ".web": 0, ".foot": 0}

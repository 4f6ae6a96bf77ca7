"""Sheets of pictures: one thing, by day and by night, wide and narrow, side by side."""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw
from playwright.sync_api import Browser, sync_playwright

from app.core.i18n import LANGUAGES
from tests import browser
from tests.gallery import mails, readers
from tests.gallery.readers import Steps, Visit

LARGEST = 4_000_000  # bytes, of all sheets
GROUNDS, OTHERS = 12, 24  # colours of a sheet
DESK, GAP = "#9a9a9a", 16
STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
SCHEMES = re.compile(r'<meta name="(?:supported-)?color-schemes?"[^>]*>')
WIDE, NARROW = (1000, 360), (600, 360)  # of pages, of mails


@dataclass(frozen=True, slots=True)
class View:
    """What is looked at, and how: HTML or a URL; `look` is light, dark, forced (dark) or bare (no styles)."""

    shown: str
    width: int
    look: str = "light"
    end: bool = False  # its foot rather than its head
    steps: Steps = ()


@dataclass(frozen=True, slots=True)
class Sheet:
    """Rows of views, none of them higher than `height`, made smaller by `scale`."""

    height: int
    rows: Sequence[Sequence[View]]
    scale: float = 1


def take(base: str, visits: dict[str, Visit], texts: Path | None, into: Path) -> dict[str, int]:
    """Take every sheet and return the size of each file, in bytes."""
    shown = {name: mails.html(raw) for name, raw in mails.every(texts).items()}
    sheets = _of_mails(shown) | _of_pages(base, visits)
    with _chromium() as chromium:
        return {name: _taken(chromium, sheet, into / f"{name}.png") for name, sheet in sheets.items()}


def _of_mails(shown: dict[str, str]) -> dict[str, Sheet]:
    bare = [
        View(shown["daily-zh"], 360, "forced"), View(shown["weekly-zh"], 360, "forced"),
        View(shown["daily-zh"], 360, "bare"), View(shown["weekly-zh"], 700, "bare"),
    ]  # fmt: skip
    made = {
        "ends": Sheet(1100, [[replace(view, end=True) for view in _four(shown["daily-zh"], NARROW)]]),
        "degraded": Sheet(1400, [bare]),
    }
    for language in LANGUAGES:
        for kind, height in (("daily", 1400), ("weekly", 1400), ("markdown", 2600)):
            made[f"{kind}-{language}"] = Sheet(height, [_four(shown[f"{kind}-{language}"], NARROW)])
        for name, kinds in (("letters", mails.LETTERS), ("notices", mails.NOTICES)):
            rows = [_four(shown[f"{kind}-{language}"], NARROW) for kind in kinds]
            made[f"{name}-{language}"] = Sheet(1200, rows, 0.5)
    return made


def _of_pages(base: str, visits: dict[str, Visit]) -> dict[str, Sheet]:
    issue = f"{base}/archive/weekly/2026-10-25?language=zh"
    made = {"page-issue": Sheet(1500, [_four(issue, WIDE)])}
    for language in LANGUAGES:
        for name, pages in readers.NAMES.items():
            rows = [
                _four(f"{base}{visits[page].path}?language={language}", WIDE, visits[page].steps)
                for page in pages
            ]
            made[f"{name}-{language}"] = Sheet(2400, rows, 0.5)
    return made


def _four(shown: str, widths: tuple[int, int], steps: Steps = ()) -> list[View]:
    return [View(shown, width, look, steps=steps) for width in widths for look in ("light", "dark")]


@contextmanager
def _chromium() -> Iterator[Browser]:
    program = browser.find()
    if program is None:
        raise SystemExit(f"No Chromium: {browser.NAMED} names none, and none is in PATH.")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=list(browser.FLAGS))
        yield chromium
        chromium.close()


def _taken(chromium: Browser, sheet: Sheet, file: Path) -> int:
    rows = [[_seen(chromium, view, sheet.height) for view in row] for row in sheet.rows]
    width = max(sum(one.width + GAP for one in row) for row in rows) + GAP
    height = sum(max(one.height for one in row) + GAP for row in rows) + GAP
    desk = Image.new("RGB", (width, height), DESK)
    top = GAP
    for row in rows:
        left = GAP
        for one in row:
            desk.paste(one, (left, top))
            left += one.width + GAP
        top += max(one.height for one in row) + GAP
    if sheet.scale != 1:
        desk = desk.resize(
            (round(width * sheet.scale), round(height * sheet.scale)), Image.Resampling.LANCZOS
        )
    _in_few_colours(desk).save(file, optimize=True)
    return file.stat().st_size


def _in_few_colours(desk: Image.Image) -> Image.Image:
    """Return a sheet whose commonest colours are as they were, so that no pale ground becomes white."""
    found: Any = desk.getcolors(desk.width * desk.height)
    grounds = [value for _, colour in sorted(found, reverse=True)[:GROUNDS] for value in colour]
    others = desk.quantize(OTHERS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette(grounds + others[: 3 * OTHERS])
    return desk.quantize(palette=palette, dither=Image.Dither.NONE)


def _seen(chromium: Browser, view: View, height: int) -> Image.Image:
    scheme: Any = "dark" if view.look == "dark" else "light"
    page = chromium.new_page(viewport={"width": view.width, "height": 100}, color_scheme=scheme)
    page.route("https://**/*.png", lambda route: route.fulfill(body=_curves(), content_type="image/png"))
    try:
        if view.look == "forced":
            session = page.context.new_cdp_session(page)
            session.send("Emulation.setAutoDarkModeOverride", {"enabled": True})
        if view.shown.startswith("http"):
            arrive(page, view.shown, view.steps)
        else:
            page.set_content(changed(view))
        whole = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({"width": view.width, "height": min(whole, height)})
        if view.end:
            page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        return Image.open(io.BytesIO(page.screenshot()))
    finally:
        page.close()


def arrive(page: Any, url: str, steps: Steps) -> None:
    """Open a page and take the steps from there: write, or press."""
    page.goto(url)
    for selector, words in steps:
        if words:
            page.fill(selector, words)
        else:
            page.locator(selector).first.click()
    page.wait_for_load_state()


@cache
def _curves() -> bytes:
    """Return the picture that the Markdown issue shows."""
    drawn = Image.new("RGB", (1040, 420), "#eef1f4")
    pen = ImageDraw.Draw(drawn)
    pen.line([(40, 380), (1000, 380)], "#9aa3ad", 3)
    pen.line([(40 + 9.6 * x, 360 - 32 * sqrt(x)) for x in range(101)], "#1d5785", 8)
    pen.line([(40 + 9.6 * x, 350 - (max(0, x - 60) ** 2) / 6) for x in range(101)], "#b4371e", 8)
    file = io.BytesIO()
    drawn.save(file, "PNG")
    return file.getvalue()


def changed(view: View) -> str:
    """Return the HTML as a client leaves it that drops styles, or that knows nothing of dark ones."""
    if view.look in ("forced", "bare"):
        return SCHEMES.sub("", STYLE.sub("", view.shown))
    return view.shown

"""Sheets of pictures: one thing, by day and by night, wide and narrow, side by side."""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from tests import browser
from tests.gallery import mails

LARGEST = 2_500_000  # bytes, of all sheets
COLOURS = 96
DESK, GAP = "#9a9a9a", 16
STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
SCHEMES = re.compile(r'<meta name="(?:supported-)?color-schemes?"[^>]*>')


@dataclass(frozen=True, slots=True)
class View:
    """What is looked at, and how: HTML or a URL; `look` is light, dark, forced (dark) or bare (no styles)."""

    shown: str
    width: int
    look: str = "light"
    end: bool = False  # its foot rather than its head


def take(base: str, texts: Path | None, into: Path) -> dict[str, int]:
    """Take every sheet and return the size of each file, in bytes."""
    shown = {name: mails.html(raw) for name, raw in mails.every(texts).items()}
    with _chromium() as chromium:
        return {
            name: _sheet(chromium, views, height, into / f"{name}.png")
            for name, (height, views) in _sheets(shown, base).items()
        }


def _sheets(shown: dict[str, str], base: str) -> dict[str, tuple[int, list[View]]]:
    issues = [(slug, language) for slug in ("daily", "weekly") for language in ("zh", "en")]
    made = {f"{slug}-{language}": (1400, _four(shown[f"{slug}-{language}"])) for slug, language in issues}
    made["ends"] = (1100, [_ending(view) for view in _four(shown["daily-zh"])])
    made["degraded"] = (
        1400,
        [
            View(shown["daily-zh"], 360, "forced"), View(shown["weekly-zh"], 360, "forced"),
            View(shown["daily-zh"], 360, "bare"), View(shown["weekly-zh"], 700, "bare"),
        ],
    )  # fmt: skip
    for language in ("zh", "en"):
        letters = [shown[f"{kind}-{language}"] for kind in mails.LETTERS]
        night = [View(letters[1], 360, "dark"), View(letters[0], 360, "dark")]
        made[f"letters-{language}"] = (820, [*(View(letter, 560) for letter in letters), *night])
    page = f"{base}/archive/weekly/2026-10-25"
    made["page-issue"] = (1500, _four(f"{page}?language=zh", wide=1000))
    made["page-archive"] = (1000, _four(f"{base}/archive?language=zh", wide=1000))
    made["page-form"] = (1000, _four(f"{base}/?language=zh", wide=1000))
    return made


def _four(shown: str, wide: int = 600) -> list[View]:
    return [View(shown, width, look) for width in (wide, 360) for look in ("light", "dark")]


def _ending(view: View) -> View:
    return View(view.shown, view.width, view.look, end=True)


@contextmanager
def _chromium() -> Iterator[Browser]:
    program = browser.find()
    if program is None:
        raise SystemExit(f"No Chromium: {browser.NAMED} names none, and none is in PATH.")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=list(browser.FLAGS))
        yield chromium
        chromium.close()


def _sheet(chromium: Browser, views: Sequence[View], height: int, file: Path) -> int:
    pictures = [Image.open(io.BytesIO(_seen(chromium, view, height))) for view in views]
    width = sum(picture.width for picture in pictures) + GAP * (len(pictures) + 1)
    tallest = max(picture.height for picture in pictures)
    sheet = Image.new("RGB", (width, tallest + 2 * GAP), DESK)
    left = GAP
    for picture in pictures:
        sheet.paste(picture, (left, GAP))
        left += picture.width + GAP
    sheet.quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)
    return file.stat().st_size


def _seen(chromium: Browser, view: View, height: int) -> bytes:
    scheme: Any = "dark" if view.look == "dark" else "light"
    page = chromium.new_page(viewport={"width": view.width, "height": height}, color_scheme=scheme)
    try:
        if view.look == "forced":
            session = page.context.new_cdp_session(page)
            session.send("Emulation.setAutoDarkModeOverride", {"enabled": True})
        if view.shown.startswith("http"):
            page.goto(view.shown)
        else:
            page.set_content(changed(view))
        if view.end:
            page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        return page.screenshot()
    finally:
        page.close()


def changed(view: View) -> str:
    """Return the HTML as a client leaves it that drops styles, or that knows nothing of dark ones."""
    if view.look in ("forced", "bare"):
        return SCHEMES.sub("", STYLE.sub("", view.shown))
    return view.shown

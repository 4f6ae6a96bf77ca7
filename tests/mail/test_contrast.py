"""Every word can be read against what lies behind it, by day and by night: WCAG 2.2, 1.4.3, by computation."""

import re
from itertools import product
from typing import Any

import pytest
from jinja2 import FileSystemLoader
from sqlalchemy import text

from app.core import i18n, paths, templates
from app.mail import typeset
from tests.world import World

LEAST = 4.5
WORDS, GROUNDS = ("ink", "text", "mute"), ("paper", "card", "tint")


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2.2, definitions)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The ratio of two colours, from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def palettes() -> dict[str, dict[str, str]]:
    """The colours of the mails."""
    spoken = i18n.catalogue("zh")
    made = templates.environment(
        FileSystemLoader(templates.folders("email", None)), spoken, typeset.filters(spoken)
    )
    module: Any = made.get_template("_parts/palette.html").module
    return {"light": module.light, "dark": module.dark}


async def accents(world: World) -> list[tuple[str, str]]:
    async with world.db.reading() as session:
        return [
            (row[0], row[1]) for row in await session.execute(text("SELECT accent, accent_dark FROM edition"))
        ]


def test_the_ratio_is_that_of_the_standard() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=0.001)


@pytest.mark.parametrize("night", ["light", "dark"])
def test_every_word_can_be_read_on_every_ground(night: str) -> None:
    colours = palettes()[night]
    faint = {
        (word, ground): round(contrast(colours[word], colours[ground]), 2)
        for word, ground in product(WORDS, GROUNDS)
    }
    assert min(faint.values()) >= LEAST, faint


async def test_every_accent_can_be_read_and_be_written_on(world: World) -> None:
    for pair in await accents(world):
        for colours, accent in zip(palettes().values(), pair, strict=True):
            assert all(contrast(accent, colours[ground]) >= LEAST for ground in GROUNDS), accent
            assert contrast(colours["press"], accent) >= LEAST, accent


def test_pages_have_the_colours_of_the_mails() -> None:
    css = (paths.templates() / "web" / "style.css").read_text("utf-8")
    roots = re.findall(r":root\{(?:color-scheme[^;]*;)?\s*((?:--[a-z]+:#[0-9a-f]+;?)+)", css)
    assert len(roots) == 2
    for written, colours in zip(roots, palettes().values(), strict=True):
        found = dict(re.findall(r"--([a-z]+):(#[0-9a-f]+)", written))
        wanted = {name: colours[name] for name in (*WORDS, *GROUNDS, "hair")}
        assert {name: _long(found[name]) for name in wanted} == wanted


def _long(colour: str) -> str:
    return colour if len(colour) == 7 else "#" + "".join(2 * digit for digit in colour[1:])

"""Whether words can be told from their ground, in the light palette and in the dark one (WCAG 2.2, 1.4.3)."""

import re
from collections.abc import Mapping, Sequence

from app.core.errors import Fault
from app.issues.checks.page import Element, Page, dark_rules

LEAST = 4.5
_HEX = re.compile(r"#(?:[0-9a-f]{3}){1,2}")
_WHITE, _BLACK = "#ffffff", "#000000"


def findings(page: Page) -> list[Fault]:
    """An error for each pair of colours that is too close, with the first words that are set in it."""
    seen: dict[tuple[str, str, str], str] = {}
    dark = dark_rules(page.styles)
    palettes: dict[str, Mapping[str, Mapping[str, str]]] = (
        {"light": {}, "dark": dark} if dark else {"light": {}}
    )
    for palette, rules in palettes.items():
        for text, within in page.texts:
            ink = _found(within, rules, "color") or _BLACK
            ground = _found(within, rules, "background-color") or _WHITE
            if ratio(ink, ground) < LEAST:
                seen.setdefault((palette, ink, ground), text)
    return [
        Fault(
            f"“{text[:20]}” is {ink} on {ground} in the {palette} palette, a contrast of {ratio(ink, ground):.1f}; "
            f"{LEAST} is the least, so change the template's or the edition's colour.",
            field="html",
        )
        for (palette, ink, ground), text in seen.items()
    ]


def ratio(one: str, other: str) -> float:
    """The contrast of two colours #rrggbb or #rgb, from 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    channels = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _found(within: Sequence[Element], rules: Mapping[str, Mapping[str, str]], name: str) -> str | None:
    """The value of a colour that the innermost element with one gives, where it can be computed."""
    for element in within:
        given = [rules[each][name] for each in element.classes if name in rules.get(each, {})]
        given += [
            element.style.get(name, ""),
            element.attributes.get("bgcolor", "") if name != "color" else "",
        ]
        for value in given:
            if _HEX.fullmatch(value.lower()):
                return value.lower()
    return None

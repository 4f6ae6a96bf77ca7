"""Whether the mail programs that most readers have can show what a mail is set with, by the data of caniemail."""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

from app.core.errors import Fault
from app.issues.checks.page import Element, Page

# Where these are not known, the mail is still whole: a little less even, or the narrow sheet.
GRACEFUL = frozenset(
    {
        "css-border-radius",
        "css-display",
        "css-height",
        "css-max-width",
        "css-white-space",
        "css-word-break",
        "css-word-wrap",
        "html-aria-label",
        "html-role",
    }
)
# The page around the mail, whose style sheets are enhancements.
_FRAME = frozenset(("html", "head", "body", "meta", "title", "style"))
_VALUES = {
    "css-unit-rem": r"\d(?:rem)\b",
    "css-unit-vw": r"\dvw\b",
    "css-unit-vh": r"\dvh\b",
    "css-unit-calc": r"calc\(",
    "css-variables": r"var\(",
    "css-rgba": r"rgba\(",
    "css-modern-color": r"\b(?:lch|lab|hwb|oklch|oklab|color)\(",
    "css-linear-gradient": r"linear-gradient\(",
    "css-display-flex": r"\bflex\b",
    "css-display-grid": r"\bgrid\b",
}
_TAGS = {f"h{level}": "html-h1-h6" for level in range(1, 7)} | {"ul": "html-lists", "ol": "html-lists"}


@cache
def data() -> dict[str, Any]:
    """The vendored data: `date`, `source`, and `features` by caniemail's name, each with whom it is `lacking` at."""
    text = resources.files("app.issues.checks").joinpath("caniemail.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def findings(page: Page) -> list[Fault]:
    """An error for each feature, used in an element, that a big mail program lacks; style sheets are enhancements."""
    used: dict[str, str] = {}
    for element in page.elements:
        for feature, where in _features(element) if element.tag not in _FRAME else ():
            used.setdefault(feature, where)
    features = data()["features"]
    return [
        Fault(
            f"{where} asks for {features[name]['title']}, which {_listed(features[name]['lacking'])} "
            f"cannot show (caniemail, tested {features[name]['tested']}); set it another way in the template.",
            field="html",
        )
        for name, where in used.items()
        if name in features and features[name]["lacking"] and name not in GRACEFUL
    ]


def _features(element: Element) -> Iterator[tuple[str, str]]:
    """The names of the features that an element uses, and where."""
    where = f"<{element.tag}>"
    yield _TAGS.get(element.tag, f"html-{element.tag}"), where
    for name in element.attributes.keys() - {"style", "title"}:
        yield f"html-{name}", where
    for name, value in element.style.items():
        yield f"css-{name}", f"{where} with {name}"
        for feature, pattern in _VALUES.items():
            if re.search(pattern, value):
                yield feature, f"{where} with {name}:{value}"


def _listed(names: list[str]) -> str:
    shown, more = names[:3], len(names) - 3
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")

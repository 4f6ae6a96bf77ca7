"""The HTML of a mail as a list of elements and texts, with what each stands in and how it is set."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser

_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)
_UNSEEN = frozenset(("head", "style", "title", "script"))


@dataclass(frozen=True, slots=True)
class Element:
    """A start tag; `within` are the elements around it, the innermost first."""

    tag: str
    attributes: dict[str, str]
    within: tuple["Element", ...]

    @property
    def style(self) -> dict[str, str]:
        """The properties of the style attribute, values in lower case."""
        return properties(self.attributes.get("style", ""))

    @property
    def classes(self) -> tuple[str, ...]:
        """The names in the class attribute."""
        return tuple(self.attributes.get("class", "").split())


class Page(HTMLParser):
    """Reads a page; `elements`, `texts` (with the elements around each) and the contents of `styles`."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.texts: list[tuple[str, tuple[Element, ...]]] = []
        self.styles: list[str] = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        element = Element(tag, given, tuple(reversed(self._open)))
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        for at in range(len(self._open) - 1, -1, -1):
            if self._open[at].tag == tag:
                del self._open[at:]
                return

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1].tag == "style":
            self.styles.append(data)
        elif data.strip() and not any(element.tag in _UNSEEN for element in self._open):
            self.texts.append((data.strip(), tuple(reversed(self._open))))

    def named(self, *tags: str) -> Iterator[Element]:
        """The elements of these names in their order."""
        return (element for element in self.elements if element.tag in tags)


def properties(declarations: str) -> dict[str, str]:
    """The properties of `name:value;name:value` in lower case, without !important."""
    pairs = (each.partition(":") for each in declarations.lower().split(";") if ":" in each)
    return {name.strip(): value.replace("!important", "").strip() for name, _, value in pairs}


def dark_rules(styles: list[str]) -> dict[str, dict[str, str]]:
    """What `prefers-color-scheme:dark` sets, by class; of two rules for a class the later one stands."""
    rules: dict[str, dict[str, str]] = {}
    for style in styles:
        for start in re.finditer(r"@media[^{]*prefers-color-scheme:\s*dark[^{]*\{", style):
            block = _block(style[start.end() :])
            for selectors, declarations in re.findall(r"([^{}]+)\{([^{}]*)\}", block):
                for name in re.findall(r"(?:^|,)\s*\.([\w-]+)\s*(?=,|$)", selectors.strip()):
                    rules.setdefault(name, {}).update(properties(declarations))
    return rules


def _block(text: str) -> str:
    """What stands before the brace that closes the one before the text."""
    depth = 1
    for at, char in enumerate(text):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if depth == 0:
            return text[:at]
    return text

"""Reads the manual: its pages, their headings, sections and blocks of code."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], key=lambda path: str(path.relative_to(ROOT))
)
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code: its language, the word behind it (`run`, `serve`, `test`), and where it stands."""

    language: str
    word: str
    code: str
    line: int


def page(name: str) -> str:
    """Return the text of a page."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str) -> list[Block]:
    """Return the blocks of code of a page, in order."""
    text = page(name)
    found = []
    for match in FENCE.finditer(text):
        language, _, word = match["info"].partition(" ")
        found.append(Block(language, word, match["code"], text.count("\n", 0, match.start()) + 1))
    return found


def prose(text: str) -> str:
    """Return a text without its blocks of code."""
    return FENCE.sub("", text)


def headings(name: str) -> list[tuple[int, str]]:
    """Return the headings of a page with their levels."""
    return [(len(marks), words) for marks, words in HEADING.findall(prose(page(name)))]


def section(name: str, heading: str) -> str:
    """Return what stands under a heading, up to the next of its level or above."""
    text = page(name)
    found = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#{{1,6}} |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"{name} has no heading “{heading}”"
    return found[2]


def anchors(path: Path) -> set[str]:
    """Return the anchors that a page offers, as GitHub makes them of its headings."""
    text = prose(path.read_text(encoding="utf-8"))
    return {anchor(words) for _, words in HEADING.findall(text)}


def anchor(heading: str) -> str:
    """Return a heading's anchor: small letters, no marks, hyphens for spaces."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")

"""Blocks and runs set down in CommonMark, so that reading them gives the same again."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from app.issues.blocks import Block, Code, Image, Listing, Mark, Passage, Quote, Run
from app.issues.commonmark.dialect import flanking

_ALWAYS = frozenset("\\`*[]<~")
_FIRST = re.compile(r"(?:[#>+=|-]|\d{1,9}(?=[.)]))")
_BACKTICKS = re.compile("`+")
_ENTITY = re.compile(r"&(?=#?[A-Za-z0-9]+;)")


@dataclass(slots=True)
class _Unit:
    """A piece that is written as it is: a character, or with a `marker` what opens or closes emphasis."""

    text: str
    marker: str = ""
    char: str = ""
    opens: bool = False


def heading(level: int, text: str) -> str:
    """A heading of words."""
    return f"{'#' * level} {_plain(text).replace('#', chr(92) + '#')}"


def blocks(given: Iterable[Block]) -> str:
    """Blocks with a blank line between them; of two lists in a row, each has marks of its own."""
    written: list[str] = []
    turn = 0
    before: Block | None = None
    for block in given:
        turn = 1 - turn if isinstance(before, Listing) and isinstance(block, Listing) else 0
        written.append(_block(block, turn))
        before = block
    return "\n\n".join(written)


def _block(block: Block, turn: int) -> str:
    match block:
        case str():
            return _begun(_plain(block))
        case Passage(runs):
            return _begun(_inline(runs))
        case Listing():
            return _listing(block, turn)
        case Quote(inner):
            return _indented(blocks(inner), "> ", "> ")
        case Code(text, language):
            fence = _fence(text, 3)
            return f"{fence}{language}\n{text}\n{fence}"
        case Image(url, alt):
            return f"![{_plain(alt)}]({_destination(url)})"


def _listing(listing: Listing, turn: int) -> str:
    loose = any(len(entry) > 1 for entry in listing.entries)
    entries = []
    for number, entry in enumerate(listing.entries):
        mark = "-*"[turn] if listing.start is None else f"{listing.start + number}{'.)'[turn]}"
        entries.append(_indented(blocks(entry), f"{mark} ", " " * (len(mark) + 1)))
    return ("\n\n" if loose else "\n").join(entries)


def _indented(text: str, first: str, others: str) -> str:
    start, *rows = text.split("\n")
    return "\n".join([first + start, *((others + row).rstrip() for row in rows)])


def _begun(text: str) -> str:
    """A paragraph whose start is no mark of a heading, a list, a quote or a table."""
    found = _FIRST.match(text)
    if found is None:
        return text
    at = found.end() if found[0][0].isdigit() else 0
    return f"{text[:at]}\\{text[at:]}"


def _fence(text: str, least: int) -> str:
    return "`" * max([least, *(len(run) + 1 for run in _BACKTICKS.findall(text))])


def _plain(text: str) -> str:
    return "".join(unit.text for unit in _characters(text))


def _characters(text: str) -> Iterator[_Unit]:
    """The characters of plain words, with a backslash where one could be read as more."""
    for at, char in enumerate(text):
        near = text[max(0, at - 1) : at + 2]
        needed = char in _ALWAYS or (
            # Within a word, and not beside its ends, which may be written by their numbers.
            (char == "_" and not (1 < at < len(text) - 2 and near[0].isalnum() and near[2].isalnum()))
            or (char == "&" and (near[-1].isalnum() or near[-1] in "#&"))
            or (char == "!" and at + 1 == len(text))
            or (text[at : at + 3] == "://" and text[:at].lower().endswith(("http", "https")))
        )
        yield _Unit(f"\\{char}" if needed else char, char=char)


def _inline(runs: Sequence[Run]) -> str:
    units = list(_units(runs, frozenset()))
    for at, unit in enumerate(units):
        if unit.marker:
            _fit(units, at)
    return "".join(unit.text for unit in units)


def _units(runs: Sequence[Run], given: frozenset[str]) -> Iterator[_Unit]:
    """The pieces of runs, the longest stretch of a mark or a URL outermost; `given` are those around them."""
    at = 0
    while at < len(runs):
        kind, end = max(_stretches(runs, at, given), key=lambda each: each[1], default=("", at + 1))
        inside = runs[at:end]
        match kind:
            case Mark.STRONG | Mark.EM:
                marker = "**" if kind == Mark.STRONG else _em(runs, at, end, given)
                yield _Unit(marker, marker[0], opens=True)
                yield from _units(inside, given | {kind})
                yield _Unit(marker, marker[0])
            case "url":
                yield from _link(inside, given)
            case _ if Mark.CODE in inside[0].marks:
                yield _Unit(_code_span(inside[0].text))
            case _:
                yield from _characters(inside[0].text)
        at = end


def _stretches(runs: Sequence[Run], at: int, given: frozenset[str]) -> Iterator[tuple[str, int]]:
    """How far each thing goes that is to be opened here: `strong`, `em`, `url`."""
    for mark in (Mark.STRONG, Mark.EM):
        if mark in runs[at].marks and mark not in given:
            end = _extent(mark in run.marks for run in runs[at:]) + at
            # A link is not cut in two, of which one might have no words.
            while (
                "url" not in given and at < end < len(runs) and runs[end].url == runs[end - 1].url is not None
            ):
                end -= 1
            if end > at:
                yield mark, end
    if (url := runs[at].url) is not None and "url" not in given:
        yield "url", _extent(run.url == url for run in runs[at:]) + at


def _extent(holds: Iterable[bool]) -> int:
    return len(list(takewhile(bool, holds)))


def _em(runs: Sequence[Run], at: int, end: int, given: frozenset[str]) -> str:
    """The marker of emphasis: _ within strong words, around them and beside them, else *."""
    near = runs[max(0, at - 1) : end + 1]
    return "_" if Mark.STRONG in given or any(Mark.STRONG in run.marks for run in near) else "*"


def _link(inside: Sequence[Run], given: frozenset[str]) -> Iterator[_Unit]:
    url = inside[0].url or ""
    if len(inside) == 1 and inside[0].is_bare and set(inside[0].marks) <= set(given):
        yield _Unit(f"<{url}>")
        return
    yield _Unit("[")
    yield from _units(inside, given | {"url"})
    yield _Unit(f"]({_destination(url)})")


def _destination(url: str) -> str:
    written = _ENTITY.sub("&amp;", url)
    return f"<{written}>" if set(url) & set("()") else written


def _code_span(text: str) -> str:
    fence = _fence(text, 1)
    edged = text[0] == "`" or text[-1] == "`" or (text[0] == text[-1] == " " and text.strip(" "))
    return f"{fence} {text} {fence}" if edged else f"{fence}{text}{fence}"


def _fit(units: list[_Unit], at: int) -> None:
    """Write the characters beside a marker by their numbers where it would not be read as one otherwise."""
    opens = units[at].opens
    inside, outside = (at + 1, at - 1) if opens else (at - 1, at + 1)
    for beside in (inside, outside):
        before = units[at - 1].text[-1] if at else " "
        after = units[at + 1].text[0] if at + 1 < len(units) else " "
        if flanking(before, after, units[at].marker)[0 if opens else 1]:
            return
        if (
            0 <= beside < len(units)
            and units[beside].char
            and (beside == outside or units[beside].char.isspace())
        ):
            units[beside].text = f"&#{ord(units[beside].char)};"

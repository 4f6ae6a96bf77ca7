"""The tokens of a text become headings and blocks, each on its line; what has no place in an issue is named."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from markdown_it.token import Token

from app.core.errors import Fault
from app.issues import prose
from app.issues.blocks import Block, Code, Listing, Quote
from app.issues.commonmark import runs
from app.issues.lines import short

DEPTH = 3  # lists and quotes within each other
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{0,20}")
_START_MOST = 9_999
_REFUSED = {
    "hr": "a rule; sections part an issue, so delete it",
    "html_block": "raw HTML; write Markdown, or a code block to show it",
    "table_open": "a table; write a list",
}


class Heading(NamedTuple):
    """The words behind one or more #."""

    level: int
    text: str


class Placed(NamedTuple):
    """A heading or a block with its line; `rows` are the lines of a list's entries."""

    line: int
    what: Heading | Block
    rows: tuple[int, ...] = ()


def read(tokens: Sequence[Token], faults: list[Fault], depth: int = 0) -> list[Placed]:
    """The headings and blocks in reading order; faults are added to the list, an empty text stands for what has one."""
    return [
        _read(tokens[at:end], (tokens[at].map or [0])[0] + 1, faults, depth) for at, end in _spans(tokens)
    ]


def _spans(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Where each token that is in no other, with all that is in it, starts and ends."""
    spans, at, level = [], 0, 0
    for end, token in enumerate(tokens, 1):
        level += token.nesting
        if level == 0:
            spans.append((at, end))
            at = end
    return spans


def _read(tokens: Sequence[Token], line: int, faults: list[Fault], depth: int) -> Placed:
    first, inside = tokens[0], tokens[1:-1]
    match first.type:
        case "paragraph_open":
            return Placed(line, runs.read(inside[0], line, faults))
        case "heading_open":
            return _heading(first, inside[0], line, faults, depth)
        case "fence" | "code_block":
            return Placed(line, _code(first, line, faults))
        case "blockquote_open" | "bullet_list_open" | "ordered_list_open" if depth == DEPTH:
            faults.append(Fault(f"lists and quotes stand more than {DEPTH} deep; take some apart", line=line))
            return Placed(line, "")
        case "blockquote_open":
            return Placed(line, Quote(_blocks(inside, "quote", line, faults, depth)))
        case "bullet_list_open" | "ordered_list_open":
            return _listing(first, inside, line, faults, depth)
    faults.append(Fault(_REFUSED.get(first.type, f"“{first.type}” has no place in an issue"), line=line))
    return Placed(line, "")


def _heading(opening: Token, inline: Token, line: int, faults: list[Fault], depth: int) -> Placed:
    complaint = None
    level = int(opening.tag[1])
    if depth:
        complaint = "a heading within a list or a quote; write it as a paragraph"
    elif level > 3:
        complaint = (
            f"{opening.markup} stands too deep; write ### before an item, or make it a strong paragraph"
        )
    elif opening.markup in ("=", "-"):
        complaint = "a heading that is underlined; write # or ## before it, or a blank line above the dashes"
    elif [child.type for child in inline.children or []] != ["text"]:
        complaint = (
            f"“{short(inline.content)}” holds markup; a title has words only" if inline.content else None
        )
        complaint = complaint or "a heading without words; write some behind the #"
    if complaint and (depth or level > 3 or opening.markup[0] != "#"):
        faults.append(Fault(complaint, line=line))
        return Placed(line, "")
    text = inline.children[0].content if inline.children else ""
    if complaint := complaint or runs.complaint_about_words(text):
        faults.append(Fault(complaint, line=line))
    return Placed(line, Heading(level, text))


def _listing(opening: Token, inside: Sequence[Token], line: int, faults: list[Fault], depth: int) -> Placed:
    start = int(opening.attrs.get("start", 1)) if opening.type == "ordered_list_open" else None
    if start is not None and start > _START_MOST:
        faults.append(Fault(f"a list that starts at {start}; {_START_MOST:,} is the most", line=line))
    rows, entries = [], []
    for at, end in _spans(inside):
        rows.append((inside[at].map or [0])[0] + 1)
        entries.append(_blocks(inside[at + 1 : end - 1], "list entry", rows[-1], faults, depth))
    return Placed(line, Listing(tuple(entries), start), tuple(rows))


def _blocks(
    inside: Sequence[Token], what: str, line: int, faults: list[Fault], depth: int
) -> tuple[Block, ...]:
    before = len(faults)
    found = [placed.what for placed in read(inside, faults, depth + 1)]
    if not found and len(faults) == before:
        faults.append(Fault(f"a {what} without words; write some, or delete it", line=line))
    return tuple(block for block in found if not isinstance(block, Heading))


def _code(token: Token, line: int, faults: list[Fault]) -> Code:
    rows = [row.rstrip() for row in token.content.split("\n")]
    start = line + (token.type == "fence")
    for number, row in enumerate(rows, start):
        if complaint := prose.complaint_about_characters(row):
            faults.append(Fault(complaint, line=number))
    text = "\n".join(rows).strip("\n")
    if not text:
        faults.append(Fault("a code block without code; write some, or delete it", line=line))
    language = token.info.strip()
    if not _LANGUAGE.fullmatch(language):
        found = f"“{short(language)}” names no language"
        faults.append(Fault(f"{found}; write one word behind the ```, or nothing", line=line))
    return Code(text, language)

"""Markdown: # title, lead, ## section or item, ### item, and a last list of bare URLs → Document, and back."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.core.errors import Fault
from app.issues import blocks as kinds
from app.issues import document as values
from app.issues import lines as reading
from app.issues import prose
from app.issues.blocks import Block, Listing, Passage, Run
from app.issues.commonmark import dialect, tree, writing
from app.issues.commonmark.tree import Heading, Placed
from app.issues.document import Document, Item, Section, SourceError
from app.issues.lines import short

BYTES = 200_000  # of a whole text; its HTML would be more than any mail may have
MARKS = 10_000  # characters that could be markup, which take the longest to read

__all__ = ["SourceError", "parse", "write"]


@dataclass(slots=True)
class _Part:
    """What stands under a heading: blocks, and the headings of the next level with theirs."""

    line: int
    title: str
    blocks: list[Placed] = field(default_factory=list)
    parts: list["_Part"] = field(default_factory=list)


def parse(source: str | bytes) -> Document:
    """Read a text (bytes: UTF-8, a BOM is allowed); raises SourceError with every fault and its line."""
    rows = [row.expandtabs(4) for row in reading.rows(source, BYTES)]
    faults = _complaints_about_rows(rows)
    if faults:
        raise SourceError(faults)
    tokens, links = dialect.tokens_of("\n".join(rows))
    placed = tree.read(tokens, faults)
    faults += _complaints_about_definitions(links, placed)
    document = _compose(placed, faults, len(rows))
    if faults or document is None:
        raise SourceError(faults)
    return document


def _complaints_about_rows(rows: Sequence[str]) -> list[Fault]:
    if not any(row.strip(reading.PADDING) for row in rows):
        return [Fault("the text is empty; write a title, a lead and an item", line=1)]
    marks = Counter("\n".join(rows))
    if (count := sum(marks[mark] for mark in "\\`*_[]<>&!:~")) > MARKS:
        message = f"the text has {count:,} of the characters \\ ` * _ [ ] < > & ! : ~; {MARKS:,} are the most"
        return [Fault(message, line=len(rows))]
    return [
        Fault(complaint, line=number)
        for number, row in enumerate(rows, 1)
        if (complaint := reading.complaint_about_length(row) or prose.complaint_about_characters(row))
    ]


def _complaints_about_definitions(links: Mapping[str, Any], placed: Sequence[Placed]) -> list[Fault]:
    """What is wrong with `[label]: URL`, which stands for nothing unless a link names it, once."""
    blocks = [each.what for each in placed if not isinstance(each.what, Heading)]
    used = {url for block in blocks for url in kinds.urls_of(block)}
    unused = [
        (each, "no link uses the definition “{}”; delete it, or put [ ] around the words that are the link")
        for each in links.get("references", {}).items()
        if each[1]["href"] not in used
    ]
    twice = [
        ((each["label"], each), "the label “{}” is defined twice; give one of them another name")
        for each in links.get("duplicate_refs", [])
    ]
    return [
        Fault(message.format(short(label)), line=(found.get("map") or [0])[0] + 1)
        for (label, found), message in [*unused, *twice]
    ]


def _compose(placed: Sequence[Placed], faults: list[Fault], end: int) -> Document | None:
    """The Document of headings and blocks; None, with faults, where they do not make one."""
    title, parts = _gather(placed, faults)
    lead = [_checked_lead(block, faults) for block in title.blocks]
    if not lead:
        faults.append(Fault("the lead is missing; write a paragraph under the title", line=title.line))
    if not parts:
        faults.append(Fault("no item follows the lead; write ## and its title, and a paragraph", line=end))
    _check_parts(parts, faults)
    sections = [
        Section(part.title if part.parts else None, tuple(_item(entry) for entry in part.parts or [part]))
        for part in parts
    ]
    if parts and not parts[0].parts:
        sections = [Section(None, tuple(item for section in sections for item in section.items))]
    document = Document(title.title, tuple(lead), tuple(sections))
    _check_titles(title, parts, document.in_han, faults)
    return None if faults else values.with_question(document)


def _gather(placed: Sequence[Placed], faults: list[Fault]) -> tuple[_Part, list[_Part]]:
    """The title with the lead under it, and the parts of the second level with theirs."""
    first = placed[0] if placed else Placed(1, "")
    wish = "the first line is the newsletter's title behind one #"
    if not isinstance(first.what, Heading) or first.what.level != 1:
        faults.append(Fault(wish, line=first.line))
    title = _Part(first.line, first.what.text if isinstance(first.what, Heading) else "")
    at = title
    parts: list[_Part] = []
    for line, what, rows in placed[isinstance(first.what, Heading) :]:
        if not isinstance(what, Heading):
            at.blocks.append(Placed(line, what, rows))
        elif what.level == 1:
            message = f"“{short(what.text)}” is a second title; write ## before a section or an item"
            faults.append(Fault(message, line=line))
        else:
            at = _Part(line, what.text)
            if what.level == 3 and not parts:
                message = f"“{short(what.text)}” is in no section; write ## before it, or a section above it"
                faults.append(Fault(message, line=line))
            (parts[-1].parts if what.level == 3 and parts else parts).append(at)
    return title, parts


def _checked_lead(placed: Placed, faults: list[Fault]) -> str | Passage:
    if isinstance(placed.what, str | Passage):
        for period in values.periods_in("".join(kinds.texts_of(placed.what))):
            if period.first > period.last:
                message = f"the period {period.first} to {period.last} runs backwards; swap its dates"
                faults.append(Fault(message, line=placed.line))
        return placed.what
    faults.append(Fault("the lead has paragraphs only; put this under an item", line=placed.line))
    return ""


def _check_parts(parts: Sequence[_Part], faults: list[Fault]) -> None:
    seen: dict[str, int] = {}
    for part in parts:
        this = short(part.title)
        if bool(part.parts) != bool(parts[0].parts):
            other = f"“{short(parts[0].title)}” (line {parts[0].line})"
            kind = "a section, and {} is an item" if part.parts else "an item, and {} is a section"
            message = f"“{this}” is {kind.format(other)}; put all items under sections, or none"
            faults.append(Fault(message, line=part.line))
        if part.parts and part.blocks:
            message = f"text directly under the section “{this}”; write ### and an item's title above it"
            faults.append(Fault(message, line=part.blocks[0].line))
        if part.parts and part.title in seen:
            message = f"the section “{this}” was begun on line {seen[part.title]}; put its items there"
            faults.append(Fault(message, line=part.line))
        seen.setdefault(part.title, part.line)
        faults += [
            Fault(f"the item “{short(entry.title)}” has no paragraph; write one below it", line=entry.line)
            for entry in part.parts or [part]
            if not _without_sources(entry.blocks)
        ]


def _check_titles(title: _Part, parts: Sequence[_Part], han: bool, faults: list[Fault]) -> None:
    most = reading.limits_of(han).head
    inner = [entry for part in parts for entry in part.parts]
    for part in (title, *parts, *inner):
        if len(part.title) > most:
            message = f"the title has {len(part.title)} characters; {most} are the most"
            faults.append(Fault(message, line=part.line))


def _without_sources(blocks: Sequence[Placed]) -> Sequence[Placed]:
    return blocks[:-1] if blocks and _sources_in(blocks[-1].what) else blocks


def _sources_in(block: Block | Heading) -> tuple[str, ...]:
    """The URLs of a list with bullets that has nothing but bare URLs; empty for any other block."""
    if not isinstance(block, Listing) or block.start is not None:
        return ()
    urls = tuple(
        entry[0].text
        for entry in block.entries
        if len(entry) == 1 and isinstance(entry[0], Passage) and _is_bare(entry[0])
    )
    return urls if len(urls) == len(block.entries) else ()


def _is_bare(passage: Passage) -> bool:
    return len(passage.runs) == 1 and passage.runs[0].is_bare and not passage.runs[0].marks


def _item(entry: _Part) -> Item:
    body = _without_sources(entry.blocks)
    listed = entry.blocks[len(body) :]
    sources = tuple(url for each in listed for url in _sources_in(each.what))
    rows = (row for each in listed for row in each.rows)
    blocks = tuple(each.what for each in body if not isinstance(each.what, Heading))
    return Item(entry.title, blocks, sources, (entry.line, *(each.line for each in body), *rows))


def write(document: Document) -> str:
    """Set a Document down so that `parse` gives it back."""
    pieces = [writing.heading(1, document.title), writing.blocks(document.lead)]
    left, ending = len(document.items), values.blocks_to_the_end(document, reading.LINE)
    for section in document.sections:
        if section.name is not None:
            pieces.append(writing.heading(2, section.name))
        for item in section.items:
            left -= 1
            pieces.append(writing.heading(3 if section.name is not None else 2, item.title))
            pieces.append(writing.blocks([*(item.blocks if left else ending), *_listed(item.sources)]))
    return "\n\n".join(pieces) + "\n"


def _listed(sources: Iterable[str]) -> list[Listing]:
    entries = tuple((Passage((Run(url, url=url),)),) for url in sources)
    return [Listing(entries)] if entries else []

"""The house format: title, lead, section names, items and source URLs, one a line → Document, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from app.core.errors import Fault
from app.issues import blocks as kinds
from app.issues import document as values
from app.issues import lines as reading
from app.issues import prose
from app.issues.document import Document, Item, Section, SourceError
from app.issues.lines import Kind, Limits, Line, short

__all__ = ["SourceError", "parse", "write"]

_HEADS = (Kind.HEAD, Kind.NAME, Kind.TITLE)
_MARKS = {Kind.NAME: "# ", Kind.TITLE: "## "}


class _Role(Enum):
    """What a line is by its neighbours."""

    SECTION = auto()
    ITEM = auto()
    PARAGRAPH = auto()
    SOURCE = auto()
    STACKED = auto()  # above a title, and too long for a section name
    UNCLEAR = auto()  # a section above an item, or an item above a paragraph


@dataclass(slots=True)
class _Entry:
    title: Line
    paragraphs: list[Line] = field(default_factory=list)
    sources: list[Line] = field(default_factory=list)


@dataclass(slots=True)
class _Part:
    name: Line | None
    entries: list[_Entry] = field(default_factory=list)


def parse(source: str | bytes) -> Document:
    """Read a text (bytes: UTF-8, a BOM is allowed); raises SourceError with every fault and its line."""
    lines, han = reading.read(source)
    faults = [line.fault(line.complaint) for line in lines if line.complaint]
    start = _check_title(lines, faults)
    body = next((at for at in range(start, len(lines)) if lines[at].kind in _HEADS), len(lines))
    lead = _read_lead(lines[start:body], lines[: start + 1][-1], faults)
    parts = _gather(lines[body:], reading.limits_of(han), faults)
    _check_parts(parts, lines[-1], faults)
    if faults:
        raise SourceError(faults)
    return _document(lines[0].text, lead, parts)


def _check_title(lines: Sequence[Line], faults: list[Fault]) -> int:
    """Where the lead starts; a fault if the first line is no title."""
    first = lines[0]
    if first.kind is Kind.HEAD:
        return 1
    if not first.complaint:
        wish = "the first line is the newsletter's title: short, without a mark and without a final 。！？"
        faults.append(first.fault(f"{wish}; found “{short(first.text)}”"))
    return 0 if first.kind is Kind.PARAGRAPH and len(first.text) > reading.limits_of(True).head else 1


def _read_lead(lines: Sequence[Line], place: Line, faults: list[Fault]) -> list[Line]:
    lead = [line for line in lines if line.kind is Kind.PARAGRAPH]
    faults += [
        line.fault(f"a URL in the lead; put it under an item, found “{short(line.text)}”")
        for line in lines
        if line.kind is Kind.URL and not line.complaint
    ]
    if not lead:
        found = f"the lead is missing: “{short(place.text)}” stands in its place"
        faults.append(place.fault(f"{found}; write a paragraph under the title"))
    for line in lead:
        faults += [
            line.fault(f"the period {period.first} to {period.last} runs backwards; swap its dates")
            for period in values.periods_in(line.text)
            if period.first > period.last
        ]
    return lead


def _role(lines: Sequence[Line], at: int, limits: Limits) -> _Role:
    """What a line of the body is, by itself and by the lines around it."""
    line, after = lines[at], lines[at + 1 : at + 3]
    kinds = [near.kind for near in after]
    match line.kind:
        case Kind.NAME:
            return _Role.SECTION
        case Kind.TITLE:
            return _Role.ITEM
        case Kind.URL:
            return _Role.SOURCE
        case Kind.PARAGRAPH:
            closed = at > 0 and lines[at - 1].kind in (Kind.URL, Kind.NAME)
            titled = closed and _could_be_title(line, limits) and kinds[:1] == [Kind.PARAGRAPH]
            return _Role.ITEM if titled else _Role.PARAGRAPH
    short = len(line.text) <= limits.name
    if kinds[:1] in ([Kind.HEAD], [Kind.TITLE]):
        return _Role.SECTION if short else _Role.STACKED
    if short and kinds == [Kind.URL, Kind.HEAD]:
        return _Role.SECTION  # refused either way; this reading blames the URL
    unclear = short and kinds == [Kind.PARAGRAPH] * 2 and _could_be_title(after[0], limits)
    return _Role.UNCLEAR if unclear else _Role.ITEM


def _could_be_title(line: Line, limits: Limits) -> bool:
    return len(line.text) <= limits.head and prose.asks(line.text)


def _gather(lines: Sequence[Line], limits: Limits, faults: list[Fault]) -> list[_Part]:
    """Put the lines of the body under their section and item."""
    parts: list[_Part] = []
    for at, line in enumerate(lines):
        role = _role(lines, at, limits)
        if role is _Role.SECTION:
            parts.append(_Part(line))
        elif role in (_Role.PARAGRAPH, _Role.SOURCE):
            _attach(parts[-1], line, faults)
        else:
            if role is not _Role.ITEM and not line.complaint:
                faults.append(line.fault(_doubt(role, line, lines[at + 1], limits)))
            parts = parts or [_Part(None)]
            parts[-1].entries.append(_Entry(line))
    return parts


def _doubt(role: _Role, line: Line, below: Line, limits: Limits) -> str:
    this, that = short(line.text), short(below.text)
    if role is _Role.UNCLEAR:
        return f"“{this}” may be a section above “{that}” or an item; mark it “# {this}” or “## {this}”"
    return (
        f"“{this}” stands above the title “{that}”: end a paragraph with 。！？, or cut a section name from "
        f"{len(line.text)} to {limits.name} characters or mark it with #"
    )


def _attach(part: _Part, line: Line, faults: list[Fault]) -> None:
    """Add a paragraph or a source to the last item of a part."""
    entry = part.entries[-1] if part.entries else None
    what = "URL" if line.kind is Kind.URL else "paragraph"
    if entry is None:
        name = short(part.name.text) if part.name else ""
        wanted = "title" if line.kind is Kind.PARAGRAPH else "title and paragraph"
        message = f"a {what} directly under the section name “{name}”; write an item's {wanted} between them"
        faults.append(line.fault(message))
    elif line.kind is Kind.URL:
        entry.sources.append(line)
    else:
        if entry.sources and entry.paragraphs and entry.sources[-1].number > entry.paragraphs[-1].number:
            found = f"the paragraph “{short(line.text)}” follows a URL"
            faults.append(line.fault(f"{found}; move it above the URLs, or write an item title before it"))
        elif entry.sources and not entry.paragraphs:
            early = entry.sources[0]
            faults.append(early.fault("a URL before its paragraph; move it below the last paragraph"))
        entry.paragraphs.append(line)


def _check_parts(parts: Sequence[_Part], end: Line, faults: list[Fault]) -> None:
    if not parts:
        faults.append(end.fault("no item follows the lead; write a title, a paragraph and its URLs"))
    seen: dict[str, int] = {}
    for at, part in enumerate(parts):
        if part.name is not None:
            loose = parts[0].entries[0].title if parts[0].name is None and not seen else None
            faults += [part.name.fault(message) for message in _complaints(part.name, seen, loose)]
            if not part.entries:
                below = next((each.name for each in parts[at + 1 : at + 2]), None)
                faults.append(part.name.fault(_emptiness(part.name, below)))
            seen.setdefault(part.name.text, part.name.number)
        faults += [
            entry.title.fault(f"the item “{short(entry.title.text)}” has no paragraph; write one below it")
            for entry in part.entries
            if not entry.paragraphs and not entry.title.complaint
        ]


def _complaints(name: Line, seen: Mapping[str, int], loose: Line | None) -> list[str]:
    """What is wrong with a section after those `seen` (name → line), or after a `loose` item."""
    title, complaints = short(name.text), []
    if name.text in seen:
        complaints.append(f"the section “{title}” was begun on line {seen[name.text]}; put its items there")
    if loose:
        found = (
            f"the section “{title}” follows “{short(loose.text)}” (line {loose.number}), an item without one"
        )
        complaints.append(f"{found}; put all items under sections, or none")
    return complaints


def _emptiness(name: Line, below: Line | None) -> str:
    hint = f", for “{short(below.text)}” reads as a section name too" if below else ""
    return f"the section “{short(name.text)}” has no item{hint}; write a title and a paragraph below it"


def _document(title: str, lead: Sequence[Line], parts: Sequence[_Part]) -> Document:
    """The Document of a text without faults."""
    sections = tuple(
        Section(part.name and part.name.text, tuple(_item(entry) for entry in part.entries)) for part in parts
    )
    return values.with_question(Document(title, tuple(line.text for line in lead), sections))


def _item(entry: _Entry) -> Item:
    numbers = tuple(line.number for line in (entry.title, *entry.paragraphs, *entry.sources))
    paragraphs, sources = (tuple(line.text for line in lines) for lines in (entry.paragraphs, entry.sources))
    return Item(entry.title.text, paragraphs, sources, numbers)


def write(document: Document) -> str:
    """Set a Document of plain paragraphs down so that `parse` gives it back, with # and ## only where needed."""
    han = document.in_han
    lead = kinds.texts_of_all(document.lead)
    lines = [Line(0, document.title, Kind.HEAD), *(Line(0, text, Kind.PARAGRAPH) for text in lead)]
    left, ending = len(document.items), values.blocks_to_the_end(document, reading.LINE)
    for section in document.sections:
        if section.name is not None:
            lines.append(Line(0, section.name, Kind.NAME))
        for item in section.items:
            left -= 1
            texts = item.paragraphs if left else kinds.texts_of_all(ending)
            lines.append(Line(0, item.title, Kind.TITLE))
            lines += [Line(0, text, Kind.PARAGRAPH) for text in texts]
            lines += [Line(0, text, Kind.URL) for text in item.sources]
    for kind in (Kind.TITLE, Kind.NAME):
        _unmark(lines, kind, han)
    return "".join(f"{_MARKS.get(line.kind, '')}{line.text}\n" for line in lines)


def _unmark(lines: list[Line], kind: Kind, han: bool) -> None:
    """Take the mark off each line of a kind that is read alike without it."""
    wanted = _Role.SECTION if kind is Kind.NAME else _Role.ITEM
    for at, line in enumerate(lines):
        plain = reading.classify(line.number, line.text, han)
        if line.kind is not kind or plain.complaint or plain.kind not in (Kind.HEAD, Kind.PARAGRAPH):
            continue
        lines[at] = plain
        if _role(lines, at, reading.limits_of(han)) is not wanted:
            lines[at] = line

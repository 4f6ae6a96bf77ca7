"""What an issue says: a Document of sections and items as frozen values, with what follows from them."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from app.core.errors import Fault, Invalid
from app.issues import blocks as kinds
from app.issues import plain, prose
from app.issues.blocks import Block, Passage, Run

FAULTS_SHOWN = 100
SUBJECT_WIDTH = 40  # Han characters; what is not Han counts half

_PERIOD = re.compile(rf"{prose.DATE}\s?(?:至|到|to|through|–|—|~|～)\s?{prose.DATE}")
_CROSS_REFERENCE = re.compile(rf"{prose.DATE}\s?(日报|周报|(?:daily|weekly)(?![A-Za-z]))", re.IGNORECASE)


class SourceError(Invalid):
    """A text that is no issue; `faults` holds what is wrong in the order of lines, FAULTS_SHOWN at most."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        ordered = sorted(faults, key=lambda fault: fault.line or 0)
        first = f"line {ordered[0].line}: {ordered[0].message}"
        more = f" ({len(ordered) - 1} more)" if ordered[1:] else ""
        super().__init__(f"The text cannot be read as an issue; {first}{more}", ordered[:FAULTS_SHOWN])


@dataclass(frozen=True, slots=True)
class Item:
    """One story; `lines`, never compared, tell where title, blocks and sources stood in the text."""

    title: str
    blocks: tuple[Block, ...]
    sources: tuple[str, ...] = ()
    lines: tuple[int, ...] = field(default=(), compare=False, repr=False)

    @property
    def key(self) -> str:
        """What the story is about: the words before the first colon of the title, else the title."""
        return prose.COLON.split(self.title, maxsplit=1)[0].strip() or self.title

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The words of the blocks, paragraph by paragraph."""
        return kinds.texts_of_all(self.blocks)

    @property
    def in_plain(self) -> tuple[str, ...]:
        """The blocks as plain text, see `plain.written`."""
        return plain.written(self.blocks)

    @property
    def line(self) -> int | None:
        """The line of the title, from 1; None where the item was not read from a text."""
        return self.lines[0] if self.lines else None


@dataclass(frozen=True, slots=True)
class Section:
    """Items under one name; the name is None where an issue has no sections."""

    name: str | None
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """The question an issue closes with; it stands in no paragraph."""

    label: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Period:
    """The days an issue covers, both included."""

    first: date
    last: date


@dataclass(frozen=True, slots=True)
class CrossReference:
    """Another issue, as the text names it: `2026-10-22 日报`."""

    date: date
    word: str


@dataclass(frozen=True, slots=True)
class Document:
    """The content of one issue in one language."""

    title: str
    lead: tuple[str | Passage, ...]
    sections: tuple[Section, ...]
    question: Question | None = None

    @property
    def items(self) -> tuple[Item, ...]:
        """All items in reading order."""
        return tuple(item for section in self.sections for item in section.items)

    @property
    def keys(self) -> tuple[str, ...]:
        """The key of each item, for the preview line."""
        return tuple(item.key for item in self.items)

    @property
    def summary(self) -> str:
        """The words of the lead in one line."""
        return " ".join(kinds.texts_of_all(self.lead))

    @property
    def lead_in_plain(self) -> tuple[str, ...]:
        """The lead as plain text, see `plain.written`."""
        return plain.written(self.lead)

    @property
    def texts(self) -> Iterator[str]:
        """Every text but the sources, in reading order."""
        yield self.title
        yield from kinds.texts_of_all(self.lead)
        for section in self.sections:
            yield section.name or ""
            for item in section.items:
                yield item.title
                yield from item.paragraphs
        if self.question:
            yield from (self.question.label or "", self.question.text)

    @property
    def in_han(self) -> bool:
        """Whether the text is Chinese for the grammar, see `prose.written_in_han`."""
        return prose.written_in_han(self.texts)

    @property
    def period(self) -> Period | None:
        """The first `D1 至 D2` of the lead."""
        periods = (period for text in kinds.texts_of_all(self.lead) for period in periods_in(text))
        return next(periods, None)

    @property
    def cross_references(self) -> tuple[CrossReference, ...]:
        """The other issues that are named, each once, in reading order."""
        found = (named for text in self.texts for named in _CROSS_REFERENCE.findall(text))
        dated = ((prose.day(written), word) for written, word in dict.fromkeys(found))
        return tuple(CrossReference(day, word) for day, word in dated if day)

    @property
    def latest_date(self) -> date | None:
        """The latest date the text names, sources aside: a cross-check of the issue's own date, no more."""
        days = (prose.day(written) for text in self.texts for written in prose.DATES.findall(text))
        return max((day for day in days if day), default=None)


def subject_of(document: Document) -> str:
    """The first headline where there are sections, else the keys, as many as fit SUBJECT_WIDTH."""
    if document.sections[0].name is not None:
        return document.items[0].title
    comma, more = ("、", " 等") if document.in_han else (", ", " and more")
    keys = list(dict.fromkeys(document.keys))
    for kept in range(len(keys), 1, -1):
        subject = comma.join(keys[:kept]) + (more if kept < len(keys) else "")
        if width(subject) <= SUBJECT_WIDTH:
            return subject
    return keys[0]


def width(text: str) -> float:
    """How wide a text is in Han characters; what is not wide counts half."""
    return sum(1 if unicodedata.east_asian_width(char) in "WF" else 0.5 for char in text)


def outline(document: Document) -> list[dict[str, Any]]:
    """The tree for JSON, to look at before sending: sections; in each, items with the line of their title."""
    return [
        {
            "section": section.name,
            "items": [
                {
                    "title": item.title,
                    "paragraphs": list(item.paragraphs),
                    "sources": list(item.sources),
                    "line": item.line,
                }
                for item in section.items
            ],
        }
        for section in document.sections
    ]


def split_question(paragraph: str, han: bool) -> tuple[str, Question | None]:
    """The paragraph without its last sentence, and that sentence, if it ends in ？; the rest may be empty."""
    if not paragraph.endswith(("？", "?")):
        return paragraph, None
    end, start = prose.last_sentence(paragraph, han)
    sentence = paragraph[start:]
    if colon := prose.COLON.search(sentence):
        label, text = sentence[: colon.start()].strip(), sentence[colon.end() :].strip()
        if label and len(label) <= (12 if han else 32) and text.strip("？?"):
            return paragraph[:end], Question(label, text)
    return paragraph[:end], Question(None, sentence)


def join_question(paragraph: str, question: Question, han: bool) -> str:
    """The paragraph with the question as its last sentence; an empty paragraph gives the question alone."""
    colon = "：" if han else ": "
    sentence = question.text if question.label is None else f"{question.label}{colon}{question.text}"
    gap = " " if paragraph and prose.needs_gap(paragraph) else ""
    return f"{paragraph}{gap}{sentence}"


def with_question(document: Document) -> Document:
    """The document with the question that its last paragraph closes with set apart, if there is one."""
    item = document.items[-1]
    *before, last = item.blocks
    rest, question = _split(last, document.in_han)
    if question is None or not (before or rest):
        return document
    return _ending(document, (*before, rest) if rest else tuple(before), question)


def blocks_to_the_end(document: Document, most: int) -> tuple[Block, ...]:
    """The last item's blocks with the question as last sentence, or after them where it is not found there again.

    `most` is how many characters a paragraph may have.
    """
    blocks, question, han = document.items[-1].blocks, document.question, document.in_han
    if question is None:
        return blocks
    *before, last = blocks
    if isinstance(last, str | Passage):
        runs = kinds.runs_of(last)
        words = runs[-1].text if runs[-1].is_plain else ""
        runs = runs[:-1] if runs[-1].is_plain else runs
        joined = kinds.paragraph([*runs, Run(join_question(words, question, han))])
        if _split(joined, han) == (last, question) and len("".join(kinds.texts_of(joined))) <= most:
            return (*before, joined)
    return (*blocks, join_question("", question, han))


def _split(block: Block, han: bool) -> tuple[Block, Question | None]:
    """The block without the question that it closes with, if that is in plain words; the rest may be empty."""
    if not isinstance(block, str | Passage):
        return block, None
    runs = kinds.runs_of(block)
    words = "".join(run.text for run in runs)
    rest, question = split_question(words, han)
    if question is None or not runs[-1].is_plain or len(rest) < len(words) - len(runs[-1].text):
        return block, None
    kept = len(runs[-1].text) - (len(words) - len(rest))
    return kinds.paragraph([*runs[:-1], replace(runs[-1], text=runs[-1].text[:kept])]), question


def _ending(document: Document, blocks: tuple[Block, ...], question: Question) -> Document:
    """The document with other blocks in its last item, and a question."""
    section = document.sections[-1]
    item = replace(section.items[-1], blocks=blocks)
    sections = (*document.sections[:-1], replace(section, items=(*section.items[:-1], item)))
    return replace(document, sections=sections, question=question)


def periods_in(text: str) -> list[Period]:
    """Each `D1 至 D2` of a text, also one that runs backwards."""
    pairs = ((prose.day(first), prose.day(last)) for first, last in _PERIOD.findall(text))
    return [Period(first, last) for first, last in pairs if first and last]

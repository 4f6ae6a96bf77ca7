"""What an item is made of: paragraphs, lists, quotes, code and images as frozen values.

A paragraph in one voice is a `str`, and so is each paragraph of the house format. One with strong words, code or
links in it is a Passage of runs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar, TypeAlias


class Mark(StrEnum):
    """How a run is set off from the words around it."""

    STRONG = "strong"
    EM = "em"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Run:
    """Words of one kind; they lead to `url` if it is given."""

    text: str
    marks: frozenset[Mark] = frozenset()
    url: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether these are words and no more."""
        return not self.marks and self.url is None

    @property
    def is_bare(self) -> bool:
        """Whether this is a URL written out."""
        return self.url is not None and self.text == self.url


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph whose runs are not all plain; neighbours differ in marks or URL."""

    kind: ClassVar[str] = "passage"
    runs: tuple[Run, ...]

    @property
    def text(self) -> str:
        """The words alone."""
        return "".join(run.text for run in self.runs)


@dataclass(frozen=True, slots=True)
class Listing:
    """A list, numbered from `start` or, where that is None, with bullets; each entry is a tuple of blocks."""

    kind: ClassVar[str] = "list"
    entries: tuple[tuple["Block", ...], ...]
    start: int | None = None


@dataclass(frozen=True, slots=True)
class Quote:
    """Another's words."""

    kind: ClassVar[str] = "quote"
    blocks: tuple["Block", ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Lines of a program, in a language or in none that is named."""

    kind: ClassVar[str] = "code"
    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture at an https URL, and what is said where it is not shown."""

    kind: ClassVar[str] = "image"
    url: str
    alt: str


Block: TypeAlias = str | Passage | Listing | Quote | Code | Image


def paragraph(runs: Iterable[Run]) -> str | Passage:
    """The runs as one paragraph, neighbours of one kind joined; empty text if there are none."""
    joined: list[Run] = []
    for run in runs:
        if joined and (joined[-1].marks, joined[-1].url) == (run.marks, run.url):
            joined[-1] = replace(joined[-1], text=joined[-1].text + run.text)
        elif run.text:
            joined.append(run)
    if all(run.is_plain for run in joined):
        return "".join(run.text for run in joined)
    return Passage(tuple(joined))


def runs_of(block: str | Passage) -> tuple[Run, ...]:
    """The runs of a paragraph; a text is one plain run, an empty one none."""
    if isinstance(block, Passage):
        return block.runs
    return (Run(block),) if block else ()


def texts_of(block: Block) -> Iterator[str]:
    """The words of a block, paragraph by paragraph; code and URLs are no words."""
    match block:
        case str():
            yield block
        case Passage():
            yield block.text
        case Listing(entries):
            for entry in entries:
                for inner in entry:
                    yield from texts_of(inner)
        case Quote(blocks):
            for inner in blocks:
                yield from texts_of(inner)
        case Image():
            yield block.alt
        case Code():
            return


def texts_of_all(blocks: Iterable[Block]) -> tuple[str, ...]:
    """The words of several blocks, paragraph by paragraph."""
    return tuple(text for block in blocks for text in texts_of(block))


def parts_of(blocks: Sequence[Block]) -> Iterator[Block]:
    """The blocks and all that are in them, in reading order."""
    for block in blocks:
        yield block
        match block:
            case Listing(entries):
                for entry in entries:
                    yield from parts_of(entry)
            case Quote(inner):
                yield from parts_of(inner)


def urls_of(block: Block) -> Iterator[str]:
    """The URLs in a block, each as often as it stands there."""
    for part in parts_of([block]):
        match part:
            case Passage(runs):
                yield from dict.fromkeys(run.url for run in runs if run.url)
            case Image(url):
                yield url

"""Blocks as plain text, for the part of a mail that stands alone: every URL is whole, and alone on its line."""

from collections.abc import Iterable, Iterator, Sequence

from app.issues.blocks import Block, Code, Image, Listing, Passage, Quote, Run, urls_of
from app.mail import links


def written(blocks: Iterable[Block]) -> tuple[str, ...]:
    """The text of each block; a paragraph is one line and what follows it, never wrapped."""
    return tuple("\n".join(_rows(block)) for block in blocks)


def _rows(block: Block) -> Iterator[str]:
    match block:
        case str():
            yield block
        case Passage(runs):
            yield "".join(_said(run) for run in runs)
            yield from urls_of(block)
        case Listing(entries, start):
            for number, entry in enumerate(entries):
                yield from _hung(entry, "- " if start is None else f"{start + number}. ")
        case Quote(inner):
            yield from (f"> {row}".rstrip() for row in _parted(inner))
        case Code(text):
            yield from (f"    {row}".rstrip() for row in text.split("\n"))
        case Image(url, alt):
            yield f"[{alt}]"
            yield url


def _said(run: Run) -> str:
    return links.shown(run.text) if run.is_bare else run.text


def _hung(entry: Sequence[Block], mark: str) -> Iterator[str]:
    """The rows of a list's entry, the first behind its mark and the others as far in."""
    first, *others = (row for block in entry for row in _rows(block))
    yield mark + first
    yield from (" " * len(mark) + row for row in others)


def _parted(blocks: Sequence[Block]) -> Iterator[str]:
    for number, block in enumerate(blocks):
        if number:
            yield ""
        yield from _rows(block)

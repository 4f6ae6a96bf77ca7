"""What an editor may have overlooked in a text: dates, names, titles, sources, and what past issues had already."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from app.core.errors import Fault
from app.issues import blocks as kinds
from app.issues import prose
from app.issues.document import CrossReference, Document, Item, Period, width

NEAR = timedelta(days=7)  # a date this close to the issue's own may be meant for it
PERIOD_MOST = timedelta(days=7)  # from the first day to the last: eight days, both included
PARAGRAPH_MUCH = 300  # characters
TITLE_MUCH = 31  # Han characters, three lines of a phone; what is not Han counts half
NAME_MUCH = 6


@dataclass(frozen=True, slots=True)
class Past:
    """An issue that was published before."""

    day: date
    subject: str
    period: Period | None
    sources: frozenset[str]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What there is around an issue: its edition, its day, the last issues (newest first), and what is no page."""

    label: str
    labels: Sequence[str]
    day: date
    past: Sequence[Past] = ()
    missing: Sequence[CrossReference] = ()


def findings(document: Document, around: Surroundings) -> list[Fault]:
    """Warnings on a text, each with the line or the part that it is about."""
    return [
        *_names(document, around),
        *_dates(document, around),
        *_titles(document.items),
        *_sources(document, around),
        *_paragraphs(document),
    ]


def placed(document: Document) -> Iterator[tuple[str, int | None, str | None]]:
    """Every text with its line, or with the part it stands in where lines are not known."""
    yield document.title, 1, None
    for text in kinds.texts_of_all(document.lead):
        yield text, None, "lead"
    for section in document.sections:
        if section.name is not None:
            yield section.name, None, "section"
        for item in section.items:
            yield item.title, item.line, None
            for at, block in enumerate(item.blocks, 1):
                for text in kinds.texts_of(block):
                    yield text, line_of(item, at), None
    if document.question:
        yield document.question.text, None, "question"


def line_of(item: Item, at: int) -> int | None:
    """The line of an item's title (0), blocks and sources, as far as known."""
    return item.lines[at] if at < len(item.lines) else item.line


def _names(document: Document, around: Surroundings) -> Iterator[Fault]:
    for other in around.labels:
        if other != around.label and other in document.title and around.label not in document.title:
            yield Fault(
                f"The title says {other}, and this is the edition {around.label}; correct one of them.", 1
            )
    for named in around.missing:
        line, part = _where(document, str(named.date))
        message = (
            f"{named.date} {named.word} is not in the archive, so it stays without a link; check its date."
        )
        yield Fault(message, line, part)


def _dates(document: Document, around: Surroundings) -> Iterator[Fault]:
    latest, period = document.latest_date, document.period
    line, part = _where(document, str(latest))
    if latest is not None and latest > around.day:
        message = (
            f"The text mentions {latest}, which is after its own date {around.day}; correct one of them."
        )
        yield Fault(message, line, part)
    elif latest is not None and period is None and around.day - NEAR <= latest < around.day:
        message = (
            f"The latest date in the text is {latest}, and this is the issue of {around.day}; check both."
        )
        yield Fault(message, line, part)
    if period is None:
        return
    if period.last - period.first > PERIOD_MOST:
        days = (period.last - period.first).days + 1
        yield Fault(f"The period has {days} days, more than a week; check its dates.", field="lead")
    before = next((past.period for past in around.past if past.period), None)
    if before and not timedelta(0) <= period.first - before.last <= timedelta(days=1):
        message = (
            f"The period starts on {period.first}, and the last one ended on {before.last}; check its dates."
        )
        yield Fault(message, field="lead")


def _titles(items: Sequence[Item]) -> Iterator[Fault]:
    with_name = [bool(prose.COLON.search(item.title)) for item in items]
    for item, has_name in zip(items, with_name, strict=True):
        if not has_name and sum(with_name) * 2 > len(items):
            hint = (
                "; is it the name of a section whose title is missing?"
                if len(item.title) <= NAME_MUCH
                else "."
            )
            message = f"“{item.title}” has no ：, as most titles here have, so the preview line shows all of it{hint}"
            yield Fault(message, item.line)
        if width(item.title) > TITLE_MUCH:
            found = f"“{item.title[:12]}…” is {width(item.title):.0f} characters wide"
            yield Fault(f"The title {found}; {TITLE_MUCH} read well, so shorten it.", item.line)


def _sources(document: Document, around: Surroundings) -> Iterator[Fault]:
    used: dict[str, Past] = {}
    for past in reversed(around.past):
        used |= dict.fromkeys(past.sources, past)
    seen: dict[str, Item] = {}
    exempt = document.sections[-1].items if len(document.sections) > 1 else ()
    for item in document.items:
        if not item.sources and not any(item is each for each in exempt):
            yield Fault(f"“{item.key}” has no source; add the URL it rests on.", item.line)
        for at, url in enumerate(item.sources, 1 + len(item.blocks)):
            if url in seen:
                message = f"{url} is a source of “{seen[url].key}” already; leave one of them out."
                yield Fault(message, line_of(item, at))
            elif url in used:
                message = f"{url} was a source on {used[url].day} already; is there something new?"
                yield Fault(message, line_of(item, at))
            if url.lower().startswith("http://"):
                message = f"{url} is not encrypted; write https:// if the page is there."
                yield Fault(message, line_of(item, at))
            seen.setdefault(url, item)


def _paragraphs(document: Document) -> Iterator[Fault]:
    for text, line, part in placed(document):
        if len(text) > PARAGRAPH_MUCH:
            yield Fault(
                f"A paragraph has {len(text)} characters, more than a screen of a phone; divide it.",
                line,
                part,
            )


def _where(document: Document, words: str) -> tuple[int | None, str | None]:
    return next(((line, part) for text, line, part in placed(document) if words in text), (None, "text"))

"""What an editor should know of an issue before sending it; what is wrong with it blocks the send unless forced."""

import html as markup
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.core.errors import Fault
from app.issues import blocks as kinds
from app.issues.checks import addresses, clients, contrast, message, text, typography
from app.issues.checks import markup as checks_of_markup
from app.issues.checks.page import Page
from app.issues.checks.text import Past, Surroundings
from app.issues.document import Document

__all__ = ["Parts", "Past", "Surroundings", "errors_of", "look_over", "warnings_of"]

_URL = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class Parts:
    """An issue as it would go out in one language: its parts, and the message that a sample reader would get."""

    subject: str
    html: str
    text: str
    message: bytes


def look_over(document: Document, around: Surroundings) -> list[Fault]:
    """Return warnings on a text by itself, each with a line or a part."""
    return [*text.findings(document, around), *typography.findings(document)]


def errors_of(document: Document, parts: Parts, slots: Sequence[str]) -> list[Fault]:
    """Return what must not go out, with a line or a part. `slots` wait for a reader's links in both parts."""
    page = Page(parts.html)
    return [
        *addresses.findings(document),
        *checks_of_markup.findings(parts.html, page, slots),
        *contrast.findings(page),
        *clients.findings(page),
        *_in_both(document, parts, slots),
        *message.findings(parts.message, parts.subject),
    ]


def warnings_of(parts: Parts, around: Surroundings) -> list[Fault]:
    """Return what is worth a look in what would go out; `field` names the part."""
    last = around.past[0].subject if around.past else None
    return [*checks_of_markup.warnings(parts.html), *message.warnings(parts.subject, last)]


def _in_both(document: Document, parts: Parts, slots: Sequence[str]) -> Iterator[Fault]:
    """What is unfilled or missing in one of the parts, though the other may have it."""
    urls = list(dict.fromkeys(_urls(document)))
    for part, body in (("html", parts.html), ("text", parts.text)):
        if not body.strip():
            yield Fault("The part is empty; check its template.", field=part)
        if "{{" in body or "{%" in body:
            yield Fault("The words “{{” or “{%” stand in it, as if a template were unfilled.", field=part)
        if part == "text":
            yield from (
                Fault(f"It has no place for {slot}; add it to the template.", field=part)
                for slot in slots
                if slot not in body
            )
        there = set(_URL.findall(body)) if part == "text" else set(_targets(body))
        yield from (
            Fault(f"The link {url} is not in it; check the template.", field=part)
            for url in urls
            if url not in there
        )


def _targets(html: str) -> Iterator[str]:
    for name in ("href", "src"):
        yield from (markup.unescape(url) for url in re.findall(rf'\b{name}="([^"]*)"', html))


def _urls(document: Document) -> Iterator[str]:
    for paragraph in document.lead:
        yield from kinds.urls_of(paragraph)
    for item in document.items:
        for block in item.blocks:
            yield from kinds.urls_of(block)
        yield from item.sources

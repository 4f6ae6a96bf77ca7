"""What an editor should know of a text before sending it; what is wrong with it blocks the send unless forced."""

import html as markup
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from app.core.errors import Fault
from app.issues.document import Document

HTML_MOST, HTML_MUCH = 100_000, 80_000  # bytes; Gmail cuts a mail off soon after
SUBJECT_MUCH = 40  # characters of Han that a phone shows
PARAGRAPH_MUCH = 300  # characters


@dataclass(frozen=True, slots=True)
class Parts:
    """An issue as it would go out in one language."""

    subject: str
    html: str
    text: str


def look_over(document: Document, label: str, labels: Sequence[str], day: date) -> list[Fault]:
    """Return warnings on a text that is to be the issue of the edition called `label` on `day`."""
    findings = [
        Fault(f"The title says {other}, and this is the edition {label}.", line=1)
        for other in labels
        if other != label and other in document.title and label not in document.title
    ]
    latest = document.latest_date
    if latest is not None and latest > day:
        findings.append(Fault(f"The text mentions {latest}, which is after its own date {day}."))
    used = Counter(source for item in document.items for source in item.sources)
    findings += [Fault(f"{url} is a source {times} times.") for url, times in used.items() if times > 1]
    findings += [
        Fault(f"A paragraph of “{item.key}” has {len(paragraph)} characters; divide it.")
        for item in document.items
        for paragraph in item.paragraphs
        if len(paragraph) > PARAGRAPH_MUCH
    ]
    return findings


def errors_of(document: Document, parts: Parts, slots: Sequence[str]) -> list[Fault]:
    """Return what must not go out; `field` names the part. `slots` wait for a reader's links in both parts."""
    size = len(parts.html.encode())
    findings = []
    if size > HTML_MOST:
        findings.append(_in("html", f"The HTML has {size:,} bytes; beyond {HTML_MOST:,} Gmail cuts it off."))
    for part, body in (("html", parts.html), ("text", parts.text)):
        if "{{" in body or "{%" in body:
            findings.append(_in(part, "The words “{{” or “{%” stand in it, as if a template were unfilled."))
        findings += [_in(part, f"It has no place for {slot}.") for slot in slots if slot not in body]
        plain = markup.unescape(body)
        findings += [
            _in(part, f"The source {source} is not in it.")
            for item in document.items
            for source in item.sources
            if source not in plain
        ]
    return findings


def warnings_of(parts: Parts) -> list[Fault]:
    """Return what is worth a look in what would go out; `field` names the part."""
    findings = []
    if HTML_MUCH < (size := len(parts.html.encode())) <= HTML_MOST:
        findings.append(_in("html", f"The HTML has {size:,} bytes; beyond {HTML_MOST:,} Gmail cuts it off."))
    if len(parts.subject) > SUBJECT_MUCH and not parts.subject.isascii():
        findings.append(_in("subject", f"The subject has {len(parts.subject)} characters; phones show 40."))
    return findings


def _in(part: str, message: str) -> Fault:
    return Fault(message, field=part)

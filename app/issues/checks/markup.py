"""What no mail's HTML may have, and what each must: size, language, roles, links of its own."""

import re
from collections.abc import Iterator, Sequence

from app.core.errors import Fault
from app.issues.checks.page import Page

HTML_MOST, HTML_MUCH = 100_000, 80_000  # bytes; Gmail cuts a mail off soon after
STYLE_MOST = 16_384  # bytes of one <style>, beyond which Gmail drops it
_SLOT = re.compile(r"__BS_[A-Z]+__")
_FORBIDDEN = {
    "form": "mail programs do not send forms",
    "script": "no mail program runs it",
    "link": "nothing is fetched for a mail",
    "iframe": "no mail program shows it",
}


def findings(html: str, page: Page, slots: Sequence[str]) -> list[Fault]:
    """Errors; `slots` are those that a reader's links go into."""
    return [
        Fault(message, field="html")
        for message in (*_size(html, page), *_elements(page), *_slots(html, slots))
    ]


def warnings(html: str) -> list[Fault]:
    """What is worth a look."""
    size = len(html.encode())
    if not HTML_MUCH < size <= HTML_MOST:
        return []
    return [Fault(f"The HTML has {size:,} bytes; beyond {HTML_MOST:,} Gmail cuts it off.", field="html")]


def _size(html: str, page: Page) -> Iterator[str]:
    if (size := len(html.encode())) > HTML_MOST:
        yield f"The HTML has {size:,} bytes; beyond {HTML_MOST:,} Gmail cuts it off, so shorten the text."
    for style in page.styles:
        if (size := len(style.encode())) > STYLE_MOST:
            yield f"A <style> has {size:,} bytes; beyond {STYLE_MOST:,} Gmail drops it, so divide it."
    if any("@import" in style for style in page.styles):
        yield "A <style> holds @import, and nothing is fetched for a mail; write the rules themselves."


def _elements(page: Page) -> Iterator[str]:
    if not any(element.attributes.get("lang") for element in page.named("html")):
        yield "The <html> has no lang, by which fonts and voices are chosen; add it to the template."
    if not any(page.named("title")):
        yield "There is no <title>; add it to the template."
    bare = [table for table in page.named("table") if table.attributes.get("role") != "presentation"]
    if bare:
        yield f"{len(bare)} of the tables have no role=presentation and are read out as data; add it."
    for image in page.named("img"):
        missing = [name for name in ("alt", "width") if not image.attributes.get(name)]
        if missing:
            yield f"The image {image.attributes.get('src', '')[:60]} has no {' and no '.join(missing)}; add it."
        if image.attributes.get("src", "").startswith("data:"):
            yield "An image is written into the mail (data:), which Gmail does not show; give it a URL."
    for tag, why in _FORBIDDEN.items():
        if any(page.named(tag)):
            yield f"There is a <{tag}>; {why}, so take it out of the template."
    for link in page.named("a"):
        if not re.match(r"https?://[\w\[]|mailto:\w|__BS_", link.attributes.get("href", "")):
            yield f"A link leads to “{link.attributes.get('href', '')[:60]}”; write the whole URL."


def _slots(html: str, slots: Sequence[str]) -> Iterator[str]:
    for slot in slots:
        if slot not in html:
            yield f"It has no place for {slot}; add it to the template."
    known = {*slots, "__BS_ADDRESS__"}
    for slot in sorted(set(_SLOT.findall(html)) - known):
        yield f"Nothing fills {slot}; delete it from the template."

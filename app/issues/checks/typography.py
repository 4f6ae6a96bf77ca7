"""How Chinese is set: spaces between scripts, full-width punctuation, quotes and brackets in pairs, URLs apart."""

import re
from collections.abc import Iterator

from app.core.errors import Fault
from app.issues.checks.text import placed
from app.issues.document import Document

_HAN = "\u3007\u3400-\u4dbf\u4e00-\u9fff"
_CLOSE = re.compile(rf"[{_HAN}][A-Za-z0-9]|[A-Za-z0-9%][{_HAN}]")
_SPACED = re.compile(rf"[{_HAN}] [A-Za-z0-9]|[A-Za-z0-9%] [{_HAN}]")
_HALF = re.compile(rf"[{_HAN}][,.;:!?](?![0-9A-Za-z])")
_FULL = {",": "，", ".": "。", ";": "；", ":": "：", "!": "！", "?": "？"}
_URL = re.compile(r"https?://[!-~]+")
_PAIRS = {"”": "“", "’": "‘", "）": "（", "》": "《", "」": "「", "』": "『", "】": "【"}
_ENOUGH = 3  # findings of a kind in one text


def findings(document: Document) -> list[Fault]:
    """Warnings on the typography, each with the line or the part that it is about."""
    texts = [(_URL.sub("", text), line, part) for text, line, part in placed(document)]
    # Some houses set 60元, others 60 元: it is a slip only where the text has both.
    spaced = any(_SPACED.search(text) for text, _, _ in texts)
    found = []
    for (text, line, part), (whole, _, _) in zip(texts, placed(document), strict=True):
        messages = [*(_close(text) if spaced else ()), *_half(text), *_unpaired(text), *_urls(whole)]
        found += [Fault(message, line, part) for message in messages]
    return found


def _close(text: str) -> Iterator[str]:
    if found := _CLOSE.findall(text)[:_ENOUGH]:
        yield f"No space within “{'”, “'.join(found)}”, as there is elsewhere in the text; add one."


def _half(text: str) -> Iterator[str]:
    for pair in _HALF.findall(text)[:_ENOUGH]:
        yield f"“{pair}” has a half-width “{pair[1]}”; write “{_FULL[pair[1]]}”."


def _unpaired(text: str) -> Iterator[str]:
    open_: list[str] = []
    for char in text:
        if char in _PAIRS.values():
            open_.append(char)
        elif char in _PAIRS and open_ and open_[-1] == _PAIRS[char]:
            open_.pop()
        elif char in _PAIRS and char != "’":  # which is an apostrophe, too
            yield f"“{char}” closes nothing; write the “{_PAIRS[char]}” before it, or delete it."
            return
    if open_ and open_[-1] != "‘":
        yield f"“{open_[-1]}” is not closed; write what closes it, or delete it."


def _urls(text: str) -> Iterator[str]:
    for url in _URL.findall(text)[:_ENOUGH]:
        yield f"{url[:60]} stands within a paragraph; put it among the sources, or give the link words."

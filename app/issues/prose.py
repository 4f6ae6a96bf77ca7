"""How prose is told apart: its script, where paragraphs and sentences end, dates, what no mail can carry."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import date
from urllib.parse import urlsplit

DATE = r"(?<![0-9A-Za-z-])((?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2})(?![0-9-])"
DATES = re.compile(DATE)
COLON = re.compile(r"：|:(?=\s)")
_HAN = re.compile("[\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_CLOSERS = "”’\"'）)】」』》〉］]｝}»›〕〗"
_NESTING = dict.fromkeys("”）)】」』》〉］]｝}»〕〗", 1) | dict.fromkeys("“（(【「『《〈［[｛{«〔〖", -1)
_NO_BEGINNING = frozenset("，,、；;：:。！？!?.…" + _CLOSERS)
_ABBREVIATION = re.compile(
    r"(?:^|\s)\W?(?:(?:[a-z]\.)*[a-z]|vs|dr|mrs?|ms|prof|st|figs?|eq|cf|ca|al|etc|approx)$", re.IGNORECASE
)
_NOT_IN_A_URL = re.compile(r"[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]")
_LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?|[0-9a-f.]*:[0-9a-f:.]*")
# Controls, line and paragraph separators, what shows nothing or turns the reading direction, U+FFFC, U+FFFD,
# lone surrogates, private use, and the code points that are no characters.
_UNFIT = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ue000-\uf8ff"
    "\ufdd0-\ufdef\ufeff\ufff9-\uffff\U000f0000-\U0010ffff"
    + "".join(chr(plane << 16 | low) for plane in range(1, 15) for low in (0xFFFE, 0xFFFF))
    + "]"
)


def written_in_han(texts: Iterable[str]) -> bool:
    """Whether a twentieth of the letters are Han: one Chinese name leaves an English text English."""
    whole = "".join(texts)
    han = len(_HAN.findall(whole))
    return han > 0 and han * 20 >= sum(map(str.isalpha, whole))


def ends_a_paragraph(text: str, han: bool) -> bool:
    """Whether the text, closing quotes aside, ends in one of 。！？!?… or, where `han` is false, in a dot."""
    last = text.rstrip(_CLOSERS)[-1:]
    return last != "" and last in ("。！？!?…" if han else "。！？!?….")


def needs_gap(text: str) -> bool:
    """Whether a sentence can follow the text only after a space."""
    return text.rstrip(_CLOSERS)[-1:] not in ("。", "！", "？")


def asks(text: str) -> bool:
    """Whether the text, closing quotes and brackets aside, ends in ？ or ！."""
    last = text.rstrip(_CLOSERS)[-1:]
    return last != "" and last in "？！?!"


def last_sentence(text: str, han: bool, nesting: Mapping[str, int] = _NESTING) -> tuple[int, int]:
    """Where what precedes the last sentence ends, and where that starts; zeros if there is but one."""
    depth = 0
    for at in range(len(text) - 1, 0, -1):
        depth = max(0, depth + nesting.get(text[at], 0))
        if depth == 0 and (start := _beginning(text, at, han)):
            return at, start
    balanced = depth + nesting.get(text[0], 0) <= 0
    return (0, 0) if balanced else last_sentence(text, han, {})


def _beginning(text: str, at: int, han: bool) -> int:
    """Where a sentence starts if the one before it ends at `at`; 0 if none ends there."""
    if text[at] in _NO_BEGINNING or text[at - 1] not in "。！？!?." + _CLOSERS:
        return 0
    end, start = at, at
    while end and text[end - 1] in _CLOSERS:
        end -= 1
    while text[start].isspace():
        start += 1
    mark = text[end - 1] if end else ""
    if mark not in tuple("。！？!?.") or text[start] in _NO_BEGINNING:
        return 0
    if mark == "." and (han or _ABBREVIATION.search(text[max(0, end - 16) : end - 1])):
        return 0
    return start if mark in "。！？" or start > at else 0


def day(written: str) -> date | None:
    """The date of a `2026-10-26`; None if no calendar has it."""
    try:
        return date.fromisoformat(written)
    except ValueError:
        return None


def complaint_about_dates(text: str) -> str | None:
    """What is wrong with the first date that no calendar has; None if all are days."""
    wrong = (written for written in DATES.findall(text) if not day(written))
    return next((f"{written} is no day of the calendar; correct the date" for written in wrong), None)


def complaint_about_characters(text: str) -> str | None:
    """What is wrong with the first character that no mail can show; None if all are fit."""
    if not (found := _UNFIT.search(text)):
        return None
    before = text[max(0, found.start() - 12) : found.start()]
    where = f"after “{before}”" if before else "at the start"
    what = "a tab" if found[0] == "\t" else f"the character U+{ord(found[0]):04X}, which no reader sees,"
    return f"{what} stands {where}; delete it or write what was meant"


def complaint_about_source(url: str) -> str | None:
    """What keeps a URL from being a source: a character (RFC 3986 §2), its end or its host; else None."""
    if found := re.search(r"\s", url):
        return f"a URL stands alone on its line, without spaces; move “{url[found.end() :][:20]}” away"
    if found := _NOT_IN_A_URL.search(url):
        return f"“{found[0]}” cannot stand in a URL; delete it, or write it percent-encoded"
    if url[-1] in ".,;:!?'([" or (url[-1] == ")" and url.count(")") > url.count("(")):
        return f"the URL ends in “{url[-1]}”; delete that"
    if not _HOST.fullmatch(_host(url)):
        return f"“{url[:40]}” has no valid host; write the URL as https://example.org/page"
    user = "@" in urlsplit(url).netloc
    return "the URL names a user before its host; delete all up to the @" if user else None


def _host(url: str) -> str:
    """The host in lower case; empty if it or the port cannot be one."""
    try:
        parts = urlsplit(url)
        return "" if parts.port == 0 else parts.hostname or ""
    except ValueError:
        return ""


def has_word(text: str) -> bool:
    """Whether there is a letter, a digit or a pictogram in the text."""
    return any(unicodedata.category(char)[0] in "LN" or unicodedata.category(char) == "So" for char in text)

"""Lines of the house format, one by one: a text becomes lines, and each is told by itself."""

import re
import unicodedata
from enum import Enum, auto
from typing import NamedTuple

from app.core.errors import Fault
from app.issues import prose
from app.issues.document import SourceError

BYTES = 1_000_000  # of a whole text in UTF-8
ROWS = 5_000  # lines of a whole text, blank ones too
LINE = 10_000  # characters
URL = 2_000

_BLANKS = " \t\xa0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
PADDING = _BLANKS + "\u200b\u200c\u200d\u2060\ufeff"
_MARK = re.compile(r"(#+)\s+")
_URL = re.compile(r"https?://", re.IGNORECASE)
_STRAY_URL = re.compile(r"[a-z]://|\Awww\.", re.IGNORECASE)


class Limits(NamedTuple):
    """How many characters a title and an unmarked section name may have."""

    head: int
    name: int


_HAN, _OTHER = Limits(60, 12), Limits(120, 24)


class Kind(Enum):
    """What a line is by itself."""

    HEAD = auto()
    NAME = auto()  # marked with #
    TITLE = auto()  # marked with ##
    PARAGRAPH = auto()
    URL = auto()


class Line(NamedTuple):
    """A line without its padding and its mark; `complaint` says what is wrong with it."""

    number: int
    text: str
    kind: Kind
    complaint: str | None = None

    def fault(self, message: str) -> Fault:
        """The message with this line's number."""
        return Fault(message, line=self.number)


def read(source: str | bytes) -> tuple[list[Line], bool]:
    """The lines that are not blank, and whether they are Chinese; raises SourceError where none is."""
    stripped = enumerate((raw.strip(PADDING) for raw in rows(source)), 1)
    numbered = [(number, text) for number, text in stripped if text]
    if not numbered:
        raise SourceError([Fault("the text is empty; write a title, a lead and an item", line=1)])
    han = prose.written_in_han(text for _, text in numbered if not _URL.match(text))
    return [classify(number, text, han) for number, text in numbered], han


def rows(source: str | bytes, most: int = BYTES) -> list[str]:
    """The lines of a text in NFC; raises SourceError if it has more than `most` bytes, or is not UTF-8."""
    data = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else bytes(source)
    if len(data) > most:
        line = data.count(b"\n", 0, most) + 1
        raise SourceError([Fault(f"the text has {len(data):,} bytes; {most:,} are the most", line=line)])
    try:
        text = source if isinstance(source, str) else data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"the byte 0x{data[error.start]:02X} is not UTF-8; save the text as UTF-8"
        raise SourceError([Fault(message, line=line)]) from None
    if (count := text.count("\n") + (not text.endswith("\n"))) > ROWS:
        message = f"the text has {count:,} lines; {ROWS:,} are the most"
        raise SourceError([Fault(message, line=ROWS + 1)])
    return unicodedata.normalize("NFC", text.removeprefix("\ufeff").replace("\r\n", "\n")).split("\n")


def short(text: str) -> str:
    """The beginning of a text, for a message."""
    return text if len(text) <= 20 else f"{text[:20]}…"


def complaint_about_length(text: str) -> str | None:
    """What is wrong with a line that nobody reads to its end; None for any other."""
    long = f"the line has {len(text):,} characters; {LINE:,} are the most, so divide it"
    return long if len(text) > LINE else None


def limits_of(han: bool) -> Limits:
    """The limits of a text that is Chinese, or is not."""
    return _HAN if han else _OTHER


def classify(number: int, text: str, han: bool) -> Line:
    """Tell a line by itself; one with a complaint gets the kind its writer most likely meant."""
    limit = limits_of(han).head
    unfit = prose.complaint_about_characters(text)
    if _URL.match(text):
        long = f"the URL has {len(text):,} characters; {URL:,} are the most" if len(text) > URL else None
        return Line(number, text, Kind.URL, long or unfit or prose.complaint_about_source(text))
    if long := complaint_about_length(text):
        return Line(number, text, Kind.PARAGRAPH, long)
    complaint = unfit or prose.complaint_about_dates(text)
    if not complaint and not prose.has_word(text):
        complaint = f"“{short(text)}” holds no word; delete the line or write one"
    if mark := _MARK.match(text):
        return _marked(number, mark[1], text[mark.end() :].strip(PADDING), complaint, limit)
    if prose.ends_a_paragraph(text, han):
        return Line(number, text, Kind.PARAGRAPH, complaint)
    if len(text) > limit:
        complaint = complaint or _endless(text, limit, han)
        return Line(number, text, Kind.PARAGRAPH, complaint)
    if _STRAY_URL.search(text):
        complaint = complaint or f"“{short(text)}” holds a URL; put it alone on its line, with its https://"
        return Line(number, text, Kind.URL, complaint)
    return Line(number, text, Kind.HEAD, complaint)


def _marked(number: int, mark: str, text: str, complaint: str | None, limit: int) -> Line:
    if len(mark) > 2:
        complaint = complaint or f"{mark[:7]} is no mark; write # for a section name or ## for an item title"
    if len(text) > limit:
        complaint = complaint or f"the marked line has {len(text)} characters; {limit} are the most"
    return Line(number, text, Kind.NAME if mark == "#" else Kind.TITLE, complaint)


def _endless(text: str, limit: int, han: bool) -> str:
    stop, more = ("。", "！？ or …") if han else (".", " ! ? or …")
    found = f"{len(text)} characters without a final {stop}"
    return f"{found}: end a paragraph with {stop}{more}, or cut a title to {limit} characters"

"""A returned mail taken apart, whatever strangers made of it: bounded in size, parts and depth, and never raising.

The standard library's parser recurses into nested parts and keeps all of them, so a hostile mail could exhaust
it. This one reads the first 256 KB, 50 parts and 20 levels, and 20 KB of text in each part.
"""

import binascii
import codecs
import quopri
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.header import decode_header
from html import unescape

MAIL = 256 * 1024  # octets
PARTS = 50
DEPTH = 20
TEXT = 20_000  # characters
_HEADERS = 64 * 1024  # octets
_VALUE = 4_000  # characters of one header

_BLANK = re.compile(rb"\r?\n[ \t]*\r?\n")
_MARK = re.compile(rb"^--([^\s]{1,200})[ \t]{0,9}\r?\n(?=content-)", re.IGNORECASE | re.MULTILINE)
_LINE = re.compile(r"\r\n|\r|\n")
_FIELD = re.compile(r"([!-9;-~]{1,76})[ \t]*:[ \t]*(.*)", re.DOTALL)
_PARAMETER = r"\b{}\s{{0,3}}=\s{{0,3}}(?:\"([^\"]{{1,200}})\"|([^\s;\"]{{1,200}}))"
_BOUNDARY = re.compile(_PARAMETER.format("boundary"), re.IGNORECASE)
_CHARSET = re.compile(_PARAMETER.format("charset"), re.IGNORECASE)
_STYLE = re.compile(r"<(?:style|script|title)\b[^<]{0,9000}", re.IGNORECASE)
_BREAK = re.compile(r"<(?:br|/?p|/?div|/?tr|/?li|/?h[1-6]|/?table|/?pre)\b[^<>]{0,500}>", re.IGNORECASE)
_TAG = re.compile(r"<(?!/?[^<>\s]{1,64}@)[^<>]{0,2000}>")
# Codecs that read text of people; Python's others (punycode, unicode_escape…) can take a stranger's time.
_TEXTUAL = re.compile(
    r"utf|ascii|iso8859|iso2022|cp[0-9]|koi8|gb|big5|euc|shift|mac|hz$|johab|tis", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Headers:
    """The header fields of a mail or a part, unfolded, in their order; names in lower case."""

    fields: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        """The first value of that name, or nothing."""
        return next((value for key, value in self.fields if key == name), "")

    def all(self, *names: str) -> list[str]:
        """All values of these names."""
        return [value for key, value in self.fields if key in names]


@dataclass(frozen=True, slots=True)
class Part:
    """A leaf of the mail: its type in lower case, and its text, decoded. A returned mail is one leaf."""

    type: str
    headers: Headers
    text: str

    @property
    def returned(self) -> bool:
        """Whether it is the mail that came back, or the head of it, and not what is said about it."""
        return self.type in (
            "message/rfc822",
            "text/rfc822-headers",
            "message/global",
            "message/rfc822-headers",
        )


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail taken apart."""

    headers: Headers
    parts: tuple[Part, ...]


def take_apart(raw: bytes) -> Mail:
    """The mail's headers and leaves, as far as the bounds go; what is malformed is read as text."""
    head, body = _split(raw[:MAIL].lstrip(b"\r\n"))
    headers = read_headers(head)
    return Mail(headers, tuple(_leaves(headers, body)))


def read_headers(head: bytes | str) -> Headers:
    """Header fields, unfolded; a line that is neither a field nor the rest of one is left out."""
    text = head[:_HEADERS].decode("utf-8", "replace") if isinstance(head, bytes) else head[:_HEADERS]
    unfolded: list[list[str]] = []
    for line in _LINE.split(text):
        if line[:1] in (" ", "\t") and unfolded:
            unfolded[-1].append(line.strip())
        elif _FIELD.match(line):
            unfolded.append([line])
    found = (_FIELD.match(" ".join(lines)[:_VALUE]) for lines in unfolded)
    return Headers(tuple((one[1].lower(), one[2].strip()) for one in found if one))


def shown(value: str) -> str:
    """A header's value with its encoded-words decoded (RFC 2047), as far as that is possible."""
    try:
        pieces = decode_header(value[:_VALUE])
    except (HeaderParseError, ValueError):
        return value
    return "".join(
        piece if isinstance(piece, str) else _in_charset(piece, charset or "ascii")
        for piece, charset in pieces
    )


def _split(entity: bytes) -> tuple[bytes, bytes]:
    if entity.startswith((b"\n", b"\r\n")):  # a part without any header
        return b"", entity
    found = _BLANK.search(entity)
    return (entity[: found.start()], entity[found.end() :]) if found else (entity, b"")


def _leaves(headers: Headers, body: bytes) -> Iterator[Part]:
    """The leaves in their order: a stack of its own instead of recursion, so that depth costs nothing."""
    waiting = [(headers, body, 0)]
    given = 0
    while waiting and given < PARTS:
        own, payload, depth = waiting.pop()
        pieces = _pieces(own, payload) if depth < DEPTH else []
        if pieces:
            inside = [(read_headers(head), rest, depth + 1) for head, rest in map(_split, pieces)]
            waiting.extend(reversed(inside))
            continue
        given += 1
        yield _leaf(own, payload)


def _pieces(headers: Headers, body: bytes) -> Sequence[bytes]:
    """The parts of a multipart; none where it is not one, or its boundary does not occur."""
    kind = headers.get("content-type")
    named = _BOUNDARY.search(kind) if kind.lower().startswith("multipart/") else None
    if named is None:
        return []
    return _between((named[1] or named[2]).encode("utf-8", "replace"), body) or _between(_guessed(body), body)


def _guessed(body: bytes) -> bytes:
    """The boundary that the parts have, where it is not the one that was promised."""
    found = _MARK.search(body[:_HEADERS])
    return found[1] if found else b""


def _between(boundary: bytes, body: bytes) -> list[bytes]:
    if not boundary:
        return []
    mark = re.escape(boundary)
    line = re.compile(rb"^[ \t]{0,2}--" + mark + rb"(--)?[ \t]{0,9}\r?(?:\n|\Z)", re.MULTILINE)
    pieces: list[bytes] = []
    begin: int | None = None
    for found in line.finditer(body):
        if begin is not None:
            pieces.append(body[begin : found.start()])
        if found[1] or len(pieces) >= PARTS:
            return pieces
        begin = found.end()
    return [*pieces, body[begin:]] if begin is not None else []


def _leaf(headers: Headers, body: bytes) -> Part:
    kind = headers.get("content-type").partition(";")[0].strip().lower() or "text/plain"
    if "/" not in kind or kind.startswith("multipart/"):
        kind = "text/plain"
    charset = _CHARSET.search(headers.get("content-type"))
    coded = _decoded(body[: 8 * TEXT], headers.get("content-transfer-encoding").strip().lower())
    text = _in_charset(coded[: 4 * TEXT], (charset[1] or charset[2]) if charset else "utf-8")
    return Part(kind, headers, (_without_tags(text) if kind == "text/html" else text)[:TEXT])


def _decoded(body: bytes, encoding: str) -> bytes:
    if encoding == "quoted-printable":
        return quopri.decodestring(body)
    if encoding == "base64":
        signs = re.sub(rb"[^A-Za-z0-9+/]", b"", body)
        try:
            whole = signs[:-1] if len(signs) % 4 == 1 else signs
            return binascii.a2b_base64(whole + b"=" * (-len(whole) % 4))
        except binascii.Error:
            return body
    return body


def _in_charset(octets: bytes, charset: str) -> str:
    """The octets as text. A charset that is unknown or wrong costs some signs, never the mail."""
    try:
        name = codecs.lookup(charset.strip()).name
        if not _TEXTUAL.match(name):
            raise LookupError(name)
        return octets.decode(name, "replace").replace("\0", " ")
    except (LookupError, ValueError):
        return octets.decode("utf-8", "replace").replace("\0", " ")


def _without_tags(html: str) -> str:
    """What a browser would show, about: enough to find an address and a reason."""
    text = _BREAK.sub("\n", _STYLE.sub("", html[: 2 * TEXT]))
    return "\n".join(
        filter(None, (" ".join(line.split()) for line in unescape(_TAG.sub(" ", text)).split("\n")))
    )

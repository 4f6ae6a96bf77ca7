"""Header lines as canonical bytes: plain where they may be, encoded where they must, no URL ever folded.

Each writer gives whole lines of ASCII ending in CRLF. The standard library's folding is not used: it turns a
long List-Unsubscribe into an encoded-word, and writes encoded-words of more than 75 octets.
"""

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache

import idna

WIDTH = 76  # RFC 2047 §2: the longest line that may hold an encoded-word
WORD = 75  # RFC 2047 §2: the longest encoded-word
LIMIT = 998  # RFC 5322 §2.1.1: the longest line of all, without its CRLF

_FOLD = "\r\n "
_AROUND = len("=?utf-8?b??=")
_HOSTILE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,39}")  # longer ones would leave no room for an encoded-word
_PRINTABLE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}")
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_LASTING = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+")
_URL = re.compile(r"(?:https?://|mailto:)[!#-;=?-~]+")
_BARE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!*+-/")  # RFC 2047 §5 (3)
_QUOTED = tuple(chr(o) if o in _BARE else "_" if o == 32 else f"={o:02X}" for o in range(256))


def clean(text: str) -> str:
    """The text as a header will say it: each run of control characters (C0, C1, U+2028, U+2029) and lone
    surrogates becomes one space, and the ends are bare of spaces."""
    return _HOSTILE.sub(" ", text).strip(" ")


def unstructured(name: str, text: str) -> bytes:
    """A header of free text, such as Subject. The text is cleaned, never refused.

    ASCII is folded at its spaces to lines of 76 columns. Anything else, a word too long for a line, and what
    would be mistaken for an encoded-word, is written in encoded-words (RFC 2047 §2, §5 (1)).
    """
    shown = clean(text)
    first = WIDTH - len(name) - 2
    plain = _folded(shown, first) if _may_be_plain(shown) else None
    return _line(name, plain if plain is not None else _FOLD.join(_encoded_words(shown, first)))


def mailbox(name: str, display_name: str, address: str) -> bytes:
    """A header of exactly one mailbox, such as From or To: `display name <address>` (RFC 5322 §3.4).

    The display name is cleaned; an empty one leaves the address alone. The address is written as by
    `envelope_address`, and raises ValueError as there.
    """
    return _named(name, display_name, f"<{envelope_address(address)}>")


def list_id(name: str, lasting_name: str) -> bytes:
    """The List-Id of RFC 2919 §3: a name for people, which may change, and a dotted one, which never does.

    Raises ValueError where the lasting name has no dot, another character than letters, digits, `-` and `_`,
    or more than 255 octets.
    """
    if not _LASTING.fullmatch(lasting_name) or len(lasting_name) > 255:
        raise ValueError(f"{lasting_name!r} is not a name for List-Id: it needs ASCII labels joined by dots")
    return _named("List-Id", name, f"<{lasting_name}>")


def structured(name: str, *parts: str) -> bytes:
    """A header whose value has a syntax: Message-ID, URLs, MIME. Never encoded; one part is never folded.

    Several parts are joined by a space, or by a fold where the line would pass 76 columns. Raises ValueError
    for a part that is empty, has anything but printable ASCII, spaces at an end or the `=?` of an
    encoded-word, which RFC 2047 §5 forbids here, and for a line of more than 998 octets.
    """
    value = ""
    column = len(name) + 1
    for part in parts:
        if not _PRINTABLE.fullmatch(part) or "=?" in part:
            raise ValueError(f"{name} was given what cannot stand in it")  # no value: it may hold a token
        gap = _FOLD if value and column + 1 + len(part) > WIDTH else " "
        column = len(part) + (1 if gap == _FOLD else column + 1)
        value += (gap if value else "") + part
    if not value:
        raise ValueError(f"{name} needs a value")
    return _line(name, value)


def urls(name: str, *targets: str) -> bytes:
    """A header of RFC 2369: URLs in angle brackets, best first, on one line however long.

    Receivers have lost one-click where a fold stood next to the URL. Raises ValueError for what is no ASCII
    http, https or mailto URL.
    """
    for target in targets:
        if not _URL.fullmatch(target):
            raise ValueError(f"{name} needs http, https or mailto URLs in ASCII")
    return structured(name, ", ".join(f"<{target}>" for target in targets))


@lru_cache(maxsize=32)
def date(moment: datetime) -> bytes:
    """The Date of RFC 5322 §3.3, in UTC: one moment is written in one way. Raises ValueError if naive."""
    if moment.tzinfo is None:
        raise ValueError("a Date needs a moment with its time zone")
    return structured("Date", format_datetime(moment.astimezone(UTC)))


def feedback_id(*fields: str) -> bytes:
    """Gmail's Feedback-ID: one to four fields, the last one the sender's, none of them a reader's.

    Raises ValueError for another count, and for a field that is empty or holds a colon or a space.
    """
    if not 1 <= len(fields) <= 4 or any(not field or set(field) & {":", " "} for field in fields):
        raise ValueError(f"{fields!r} are not one to four fields for Feedback-ID")
    return structured("Feedback-ID", ":".join(fields))


def envelope_address(address: str) -> str:
    """The address as SMTP takes it: the local part kept, the domain in lower-case A-labels (UTS 46).

    Nothing is repaired, for a repaired address is another one. Raises ValueError for a missing @, spaces,
    controls, a quoted local part, an address literal, invisible characters in the domain, a local part that
    is not ASCII, and for more than 64 octets of local part or 254 of all (RFC 5321 §4.5.3.1).
    """
    local, at, domain = address.rpartition("@")
    if not at or not _LOCAL.fullmatch(local):
        raise ValueError("the address needs an ASCII local part, unquoted, and one @")
    if not _DOMAIN.fullmatch(domain):
        domain = _a_labels(domain)
    if len(local) + 1 + len(domain) > 254:
        raise ValueError("the address is longer than 254 octets")
    return f"{local}@{domain.lower()}"


def _a_labels(domain: str) -> str:
    wrong = "the domain of the address is not a domain"
    try:
        # UTS 46 drops soft hyphens and their like, which would make one domain of two.
        if domain.isascii() or any(not idna.uts46_remap(char) for char in domain if char > "\x7f"):
            raise ValueError(wrong)
        encoded = idna.encode(domain, uts46=True).decode("ascii")
    except idna.IDNAError:
        raise ValueError(wrong) from None  # its own words quote the domain
    if not _DOMAIN.fullmatch(encoded):
        raise ValueError(wrong)
    return encoded


def _named(name: str, display_name: str, angle: str) -> bytes:
    shown = clean(display_name)
    if not shown:
        return _line(name, angle)
    phrase = _phrase(shown, WIDTH - len(name) - 2)
    before, _, last = phrase.rpartition(_FOLD)
    used = len(last) + (1 if before else len(name) + 2)
    return _line(name, phrase + (" " if used + 1 + len(angle) <= WIDTH else _FOLD) + angle)


def _phrase(shown: str, first: int) -> str:
    if _may_be_plain(shown):
        quoted = '"' + shown.replace("\\", "\\\\").replace('"', '\\"') + '"'
        plain = shown if _ATOMS.fullmatch(shown) else quoted
        if len(plain) <= first:
            return plain
    return _FOLD.join(_encoded_words(shown, first))


def _may_be_plain(shown: str) -> bool:
    return shown.isascii() and "=?" not in shown


def _folded(shown: str, first: int) -> str | None:
    """The text broken before spaces, or None where a piece of it is wider than a line."""
    lines = [""]
    room = first
    for piece in re.findall(" *[^ ]+", shown):
        if lines[-1] and len(lines[-1]) + len(piece) > room:
            lines.append("")
            room = WIDTH
        if len(lines[-1]) + len(piece) > room:
            return None
        lines[-1] += piece
    return "\r\n".join(lines)


def _encoded_words(shown: str, first: int) -> Iterator[str]:
    """Encoded-words of whole characters, in the shorter of B and Q; `first` is the room on the first line."""
    quoted = ["".join(map(_QUOTED.__getitem__, char.encode())) for char in shown]
    octets = [len(char.encode()) for char in shown]
    opening, rest = min(first, WORD) - _AROUND, WORD - _AROUND
    if sum(map(len, quoted)) < -(-sum(octets) // 3) * 4:
        for run in _runs([len(code) for code in quoted], opening, rest):
            yield f"=?utf-8?q?{''.join(quoted[run])}?="
    else:
        for run in _runs(octets, opening // 4 * 3, rest // 4 * 3):
            yield f"=?utf-8?b?{b64encode(shown[run].encode()).decode()}?="


def _runs(sizes: Sequence[int], room: int, later: int) -> Iterator[slice]:
    """As many as fit in `room`, then as many as fit in `later`, and so on."""
    start = used = 0
    for at, size in enumerate(sizes):
        if used + size > room:
            yield slice(start, at)
            start, used, room = at, 0, later
        used += size
    yield slice(start, len(sizes))


def _line(name: str, value: str) -> bytes:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a header")
    written = f"{name}: {value}" if value else f"{name}:"
    if any(len(line) > LIMIT for line in written.split("\r\n")):
        raise ValueError(f"{name} has a line of more than {LIMIT} octets")
    return f"{written}\r\n".encode("ascii")

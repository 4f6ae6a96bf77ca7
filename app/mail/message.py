"""A rendition and a recipient become the bytes of a message, and only the footer is encoded anew for each."""

import re
import unicodedata
from binascii import b2a_base64
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape

from app.mail import headers
from app.mail.headers import envelope_address as envelope_address

SLOTS = ("__BS_ADDRESS__", "__BS_MANAGE__", "__BS_UNSUBSCRIBE__")

_SLOT = re.compile(r"(__BS_[A-Z]+__)")
_BARE = re.compile(r"[A-Za-z0-9@:/._+-]*")  # what every text says in the same way
_BREAK = re.compile(r"\r\n|\r|\n")
_ROW = 57  # octets that make one base64 line of 76 (RFC 2045 §6.8)


@dataclass(frozen=True, slots=True)
class Stencil:
    """Octets with gaps, made once for many; `slots` name what belongs into each gap, in their order."""

    form: bytes  # as the operator % takes it
    slots: tuple[str, ...]

    def fill(self, values: Mapping[str, bytes]) -> bytes:
        """The octets with the values in the gaps, as they are. KeyError where one is missing."""
        return self.form % tuple([values[slot] for slot in self.slots])


@dataclass(frozen=True, slots=True)
class Splice:
    """One text whose base64 is finished up to the last whole line before its first slot.

    `head` is that base64, `rest` are the octets after it. `written` gives a value as this text needs it.
    """

    head: bytes
    rest: Stencil
    written: Callable[[str], str]

    def fill(self, values: Mapping[str, str]) -> bytes:
        """The base64 after the head, with the values in their slots. KeyError where one is missing."""
        return _base64(self.rest.fill({slot: self._octets(values[slot]) for slot in self.rest.slots}))

    def _octets(self, value: str) -> bytes:
        return (value if _BARE.fullmatch(value) else self.written(value)).encode()


@dataclass(frozen=True, slots=True)
class Body:
    """multipart/alternative, plain first (RFC 2046 §5.1.4): finished octets round two ends to fill."""

    opening: bytes
    text: Splice
    between: bytes
    html: Splice
    closing: bytes


def prepare(html: str, text: str, slots: Collection[str] = SLOTS) -> Body:
    """Compile a rendition, once for all its readers.

    `slots` are the words that a personal value will replace; each is `__BS_[A-Z]+__`. Line ends become CRLF;
    the text becomes NFC too, which markup cannot bear (`>` and a combining stroke would become one
    character). Raises ValueError for a slot that is not among them, and for a lone surrogate.
    """
    plain = splice(_plain(text), slots, _plain)
    rich = splice(_lines(html), slots, _markup)
    boundary = _boundary(html, text)
    opening = (
        headers.structured("MIME-Version", "1.0")
        + headers.structured("Content-Type", "multipart/alternative;", f'boundary="{boundary}"')
        + b"\r\n"
        + _part(boundary, "text/plain")
    )
    return Body(
        opening=opening + plain.head,
        text=plain,
        between=_part(boundary, "text/html") + rich.head,
        html=rich,
        closing=f"--{boundary}--\r\n".encode("ascii"),
    )


def splice(text: str, slots: Collection[str], written: Callable[[str], str]) -> Splice:
    """Cut a text at its slots and encode what is before the first. Raises ValueError as `prepare` does."""
    first, *rest = _SLOT.split(text)
    unknown = sorted(set(rest[::2]) - set(slots))
    if unknown:
        raise ValueError(f"there is no value for {', '.join(unknown)}")
    octets = first.encode()
    cut = len(octets) // _ROW * _ROW
    return Splice(_base64(octets[:cut]), _stencil(octets[cut:], rest), written)


def stencil(block: bytes) -> Stencil:
    """Cut lines from `headers` at their slots, which stand where ASCII values will."""
    first, *rest = _SLOT.split(block.decode("ascii"))
    return _stencil(first.encode("ascii"), rest)


def compose(body: Body, fixed: bytes, personal: bytes, values: Mapping[str, str]) -> tuple[bytes, ...]:
    """The whole message in pieces: headers of the mailing, headers of the reader, body. Same input, same octets.

    Each piece is whole lines, and the long ones are the same objects in every message of a mailing.

    `fixed` and `personal` are lines from `headers`; MIME-Version and Content-Type are added here. `values`
    has one for each slot, escaped here for the HTML. Every line ends in CRLF, is ASCII, has ≤ 998 octets and
    no dot in front, so what takes it need not look again. Raises ValueError where the headers are no whole
    lines or a value has a lone surrogate, KeyError where a value is missing.
    """
    for block in (fixed, personal):
        if block and (not block.endswith(b"\r\n") or b"\r\n\r\n" in block or block.startswith(b"\r\n")):
            raise ValueError("headers are whole lines, each ending in CRLF, with no empty one")
    text, html = body.text.fill(values), body.html.fill(values)
    return (fixed, personal, body.opening, text, body.between, html, body.closing)


@dataclass(frozen=True, slots=True)
class ListLinks:
    """Where a list's lasting links lead: URLs (https or mailto), or None for what it does not have."""

    help: str | None = None
    subscribe: str | None = None
    owner: str | None = None
    archive: str | None = None


def list_headers(name: str, lasting_name: str, links: ListLinks) -> bytes:
    """The headers that all messages of a list share, for `fixed`; `unsubscribe_headers` are the reader's own.

    List-Id (RFC 2919), List-Help, -Subscribe, -Owner, -Archive and List-Post: NO (RFC 2369 §3), Precedence
    and X-Auto-Response-Suppress, which keep vacation replies away. Raises ValueError as `headers` does.
    """
    given = (
        ("List-Help", links.help),
        ("List-Subscribe", links.subscribe),
        ("List-Owner", links.owner),
        ("List-Archive", links.archive),
    )
    return b"".join(
        (
            headers.list_id(name, lasting_name),
            *(headers.urls(header, url) for header, url in given if url is not None),
            headers.structured("List-Post", "NO"),
            headers.structured("Precedence", "list"),
            headers.structured("X-Auto-Response-Suppress", "OOF, AutoReply"),
        )
    )


def unsubscribe_headers(url: str, mailto: str | None = None) -> bytes:
    """One-click unsubscribe, for `personal` (RFC 8058 §3.1): both headers, for alone neither means anything.

    `url` is http or https and comes first; `mailto` is a mailto URL. Neither is folded or encoded.
    Raises ValueError where they are not such URLs.
    """
    if url.startswith("mailto:") or not (mailto or "mailto:").startswith("mailto:"):
        raise ValueError("one-click needs a web URL, then at most one mailto URL")
    targets = (url,) if mailto is None else (url, mailto)
    one_click = headers.structured("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
    return headers.urls("List-Unsubscribe", *targets) + one_click


def _stencil(first: bytes, rest: Sequence[str]) -> Stencil:
    """The stencil of a text that was split at its slots: `rest` has a slot and a literal in turn."""
    literals = [first, *(literal.encode() for literal in rest[1::2])]
    return Stencil(b"%b".join(literal.replace(b"%", b"%%") for literal in literals), tuple(rest[::2]))


def _lines(text: str) -> str:
    return _BREAK.sub("\r\n", text)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", _lines(text))


def _markup(value: str) -> str:
    return escape(_lines(value))


def _base64(octets: bytes) -> bytes:
    encoded = b2a_base64(octets, newline=False)
    rows = [encoded[at : at + 76] for at in range(0, len(encoded), 76)]
    return b"\r\n".join((*rows, b""))


def _boundary(html: str, text: str) -> str:
    # "=_" cannot occur in base64, so no part can end early (RFC 2045 §6.8).
    digest = sha256(sha256(html.encode()).digest() + sha256(text.encode()).digest()).hexdigest()
    return f"=_{digest[:32]}"


def _part(boundary: str, media_type: str) -> bytes:
    return (
        f"--{boundary}\r\n".encode("ascii")
        + headers.structured("Content-Type", f"{media_type};", "charset=utf-8")
        + headers.structured("Content-Transfer-Encoding", "base64")
        + b"\r\n"
    )

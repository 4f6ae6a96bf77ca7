"""DKIM: a message becomes the header that proves whose it is (RFC 6376, rsa-sha256, relaxed/relaxed, whole body)."""

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from re import compile as pattern

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)

from app.mail import headers

WIDTH = 78  # RFC 5322 §2.1.1
BITS = range(1024, 4096 + 1)  # RFC 8301 §3.2: what signers may use and verifiers must know

# RFC 6376 §5.4.1: what hops add or rewrite. Everything else was written by us, so everything else is signed.
UNSIGNED = frozenset({b"return-path", b"received", b"dkim-signature", b"comments", b"keywords", b"bcc"})
# Named once more than they occur, so that none can be added (§8.15); these even where there is none.
SEALED = (b"from", b"to", b"cc", b"reply-to", b"subject", b"date", b"message-id")
# Relays add a Feedback-ID or a Precedence of their own, so what is not listed here is left open to them.
SEALED_WHERE_PRESENT = frozenset({b"sender", b"mime-version", b"content-type"})

_NAME = pattern(rb"[A-Za-z][A-Za-z0-9-]*")
_CHUNK = 72  # characters of the signature on one line


@dataclass(frozen=True, slots=True)
class Signer:
    """A domain's private key, and the selector under which its public half stands in the DNS."""

    key: RSAPrivateKey = field(repr=False)
    selector: str
    domain: str

    @classmethod
    def load(cls, key_pem: bytes, selector: str, domain: str) -> "Signer":
        """Read a PEM of an unencrypted RSA key of 1024 to 4096 bits; below 2048 a caller should warn.

        Selector and domain become lower-case A-labels. Raises ValueError with a sentence that says what is
        wrong and shows nothing of the key.
        """
        if not key_pem.strip():
            raise ValueError("The DKIM key is missing: its file is empty.")
        try:
            key = load_pem_private_key(key_pem, password=None)
        except TypeError:
            raise ValueError("The DKIM key is encrypted; it must be readable without a password.") from None
        except (ValueError, UnsupportedAlgorithm):
            raise ValueError("The DKIM key is no private key in PEM form.") from None
        if not isinstance(key, RSAPrivateKey):
            raise ValueError("The DKIM key is not an RSA key.")
        if key.key_size not in BITS:
            raise ValueError(
                f"The DKIM key has {key.key_size} bits; receivers take 1024 to 4096, best is 2048."
            )
        return cls(key, _labels("selector", selector), _labels("domain", domain))

    @property
    def bits(self) -> int:
        """The size of the key."""
        return self.key.key_size

    @property
    def record_name(self) -> str:
        """The name in the DNS where the public record stands (RFC 6376 §3.6.2.1)."""
        return f"{self.selector}._domainkey.{self.domain}"

    def sign(self, message: bytes, moment: datetime) -> bytes:
        """Return the DKIM-Signature for a message of `compose`, to be put in front of it.

        Lines of ASCII ending in CRLF, of 78 columns at most where selector and domain let them; `moment`
        is the `t=`, in whole seconds, and the same input gives the same octets. A relay that rewrites Date
        or Message-ID breaks the signature, and has to sign by itself. Raises ValueError for a naive moment,
        for no or several From, and for headers or a body that are not as `compose` writes them.
        """
        if moment.tzinfo is None:
            raise ValueError("a signature needs a moment with its time zone")
        head, _, body = message.partition(b"\r\n\r\n")
        _require_composed(message, body)
        fields = [_canonical(field) for field in _unfolded(head).split(b"\r\n")]
        plan = _plan(tuple(name for name, _ in fields))
        line = self._unsigned(plan.listing, sha256(body).digest(), int(moment.timestamp()))
        seen = [fields[place][1] for place in plan.places]
        seen.append(_canonical(_unfolded(line))[1])
        signature = b64encode(self.key.sign(b"\r\n".join(seen), PKCS1v15(), SHA256()))
        chunks = [signature[at : at + _CHUNK] for at in range(0, len(signature), _CHUNK)]
        return line + b"\r\n ".join(chunks) + b"\r\n"

    def _unsigned(self, listing: bytes, body_hash: bytes, seconds: int) -> bytes:
        """The header up to its empty `b=`, which stands last and begins a line (RFC 6376 §3.5)."""
        tags = (
            "DKIM-Signature:",
            " v=1;",
            " a=rsa-sha256;",
            " c=relaxed/relaxed;",
            f" d={self.domain};",
            f" s={self.selector};",
            f" t={seconds};",
            f" bh={b64encode(body_hash).decode('ascii')};",
        )
        return b"\r\n".join((_folded(tags), listing, b" b="))


def public_record(signer: Signer) -> str:
    """Return the TXT value for `record_name` (RFC 6376 §3.6.1): some 400 characters for 2048 bits.

    A string in a zone file has 255 at most; a longer value is written as several strings there.
    """
    der = signer.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"v=DKIM1; k=rsa; p={b64encode(der).decode('ascii')}"


def _require_composed(message: bytes, body: bytes) -> None:
    """Raise ValueError unless the relaxed form of the body (RFC 6376 §3.4.4) is the body itself.

    It hardly has a space, being base64 under short headers, so looking at those few is enough.
    """
    if not message.isascii():
        raise ValueError("only ASCII is signed, for a relay may recode anything else")  # RFC 6376 §5.3
    if not message.endswith(b"\r\n") or message.endswith(b"\r\n\r\n"):
        raise ValueError("the body does not end in exactly one CRLF")
    after_spaces = body.split(b" ")[1:]
    if b"\t" in body or any(not text or text.startswith(b"\r\n") for text in after_spaces):
        raise ValueError("the body has spaces that a hop may change")


def _unfolded(head: bytes) -> bytes:
    return head.replace(b"\r\n ", b" ").replace(b"\r\n\t", b" ")


@lru_cache(maxsize=256)
def _canonical(field: bytes) -> tuple[bytes, bytes]:
    """A header's name in lower case, and the header in relaxed form without its CRLF (RFC 6376 §3.4.2).

    Most are the same in every message of a mailing.
    """
    name, colon, value = field.partition(b":")
    if not colon or not _NAME.fullmatch(name) or b"\r" in value or b"\n" in value:
        raise ValueError("the headers are not lines of a name and a value")
    words = value.replace(b"\t", b" ").split(b" ")
    name = name.lower()
    return name, name + b":" + b" ".join(filter(None, words))


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which headers of a message are signed, by their places and in their turn, and the `h=` that lists them."""

    places: tuple[int, ...]
    listing: bytes


@lru_cache(maxsize=64)
def _plan(names: tuple[bytes, ...]) -> _Plan:
    """The plan for all messages whose headers have these names; raises ValueError unless there is one From.

    `h=` lists a name for each header it covers, and one more where none may be added. A verifier takes the headers
    of one name from the bottom up (RFC 6376 §5.4.2); the last, which it does not find, counts as empty.
    """
    if names.count(b"from") != 1:
        raise ValueError("a message is signed for exactly one From")
    places, listed = list[int](), list[bytes]()
    for name in dict.fromkeys(names):
        if name not in UNSIGNED:
            those = [place for place, each in enumerate(names) if each == name]
            sealed = name in SEALED or name in SEALED_WHERE_PRESENT or name.startswith(b"list-")
            places += reversed(those)
            listed += [name] * (len(those) + sealed)
    *most, last = (name.decode("ascii") for name in (*listed, *(one for one in SEALED if one not in names)))
    return _Plan(tuple(places), _folded((" h=", *(f"{name}:" for name in most), f"{last};")))


def _folded(pieces: Iterable[str]) -> bytes:
    """Pieces in a row, with a fold (and no space of its own) before one that would pass the last column."""
    lines = [""]
    for piece in pieces:
        if lines[-1] and len(lines[-1]) + len(piece) > WIDTH:
            lines.append(" " + piece.lstrip(" "))
        else:
            lines[-1] += piece
    return "\r\n".join(lines).encode("ascii")


def _labels(what: str, name: str) -> str:
    try:
        return headers.envelope_address(f"x@{name}").partition("@")[2]
    except ValueError:
        raise ValueError(f"The DKIM {what} {name!r} is no name for the DNS.") from None

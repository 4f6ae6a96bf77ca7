"""Signed links that arrive by mail: 24 bytes that name a purpose, a reader and a scope, and cannot be forged.

Eight bytes say what the token is for (key id 4 bits, purpose 4, subscriber 40, scope 16), sixteen are
the first half of an HMAC-SHA256 over them. In base64url that is 32 characters, safe in URLs and msg-ids.
"""

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import IntEnum

LENGTH = 32
STAMP_LENGTH = 24
CONFIRM_LIFE = timedelta(days=7)
_EPOCH = date(2020, 1, 1)
_BLOCK = 64  # octets that SHA-256 works on at once


class Purpose(IntEnum):
    """What a token lets its holder do; a token of one purpose is nothing for another."""

    CONFIRM = 1  # scope: the day it was made
    PREFERENCES = 2  # scope: 0
    UNSUBSCRIBE = 3  # scope: the edition
    MESSAGE = 4  # scope: the edition; in a Message-ID, gives no right
    ERRAND = 5  # scope: 0; what stands for the subscriber is the errand's own number


@dataclass(frozen=True, slots=True)
class Claim:
    """What a verified token says."""

    purpose: Purpose
    subscriber_id: int
    scope: int


class Signer:
    """Makes tokens with the first key and takes those of all keys, so that a key can be replaced."""

    def __init__(self, keys: Sequence[str]) -> None:
        if not keys:
            raise ValueError("a signer needs at least one key")
        self._keys = [key.encode() for key in keys]
        self._macs = [(_key_id(key), _Mac(key, b"link:")) for key in self._keys]

    @property
    def keys(self) -> Sequence[bytes]:
        """All keys, the signing one first."""
        return self._keys

    def sign(self, purpose: Purpose, subscriber_id: int, scope: int = 0) -> str:
        """Return the 32 characters for a subscriber (< 2**40) and a scope (< 2**16)."""
        if not 0 <= subscriber_id < 1 << 40 or not 0 <= scope < 1 << 16:
            raise ValueError("a token cannot hold such a number")
        key_id, mac = self._macs[0]
        packed = (key_id << 60) | (purpose << 56) | (subscriber_id << 16) | scope
        head = packed.to_bytes(8, "big")
        return urlsafe_b64encode(head + mac.code(head)).decode()

    def read(self, token: str, purpose: Purpose) -> Claim | None:
        """Return what the token says, or None when it is not one of ours for this purpose."""
        if len(token) != LENGTH or not token.isascii():
            return None
        try:
            raw = urlsafe_b64decode(token)
        except ValueError:
            return None
        head, code = raw[:8], raw[8:]
        packed = int.from_bytes(head, "big")
        for key_id, mac in self._macs:
            if key_id == packed >> 60 and hmac.compare_digest(mac.code(head), code):
                break
        else:
            return None
        if packed >> 56 & 0xF != purpose:
            return None
        return Claim(purpose, packed >> 16 & (1 << 40) - 1, packed & 0xFFFF)

    def stamp(self, now: datetime) -> str:
        """Return 24 characters that say when a page was made; they name nobody."""
        seconds = int(now.timestamp()).to_bytes(6, "big")
        return urlsafe_b64encode(seconds + _stamp_mac(self._keys[0], seconds)).decode()

    def age(self, stamp: str, now: datetime) -> timedelta | None:
        """Return how long ago a page of ours was made, or None for what is no stamp of ours."""
        try:
            raw = urlsafe_b64decode(stamp) if stamp.isascii() and len(stamp) == STAMP_LENGTH else b""
        except ValueError:
            return None
        seconds, mac = raw[:6], raw[6:]
        if not any(hmac.compare_digest(_stamp_mac(key, seconds), mac) for key in self._keys):
            return None
        return timedelta(seconds=int(now.timestamp()) - int.from_bytes(seconds, "big"))


def day_number(moment: datetime) -> int:
    """Return the scope of a token that ages: days since 2020, enough for 179 years."""
    return (moment.astimezone(UTC).date() - _EPOCH).days


def is_stale(claim: Claim, now: datetime, life: timedelta = CONFIRM_LIFE) -> bool:
    """Tell whether a token made on its scope's day has outlived `life`."""
    return day_number(now) - claim.scope > life.days


def _key_id(key: bytes) -> int:
    return hashlib.sha256(b"key id:" + key).digest()[0] >> 4


def _stamp_mac(key: bytes, seconds: bytes) -> bytes:
    return hmac.digest(key, b"stamp:" + seconds, "sha256")[:12]


class _Mac:
    """HMAC-SHA256 of many messages: the key's two blocks are hashed once (RFC 2104 §4)."""

    def __init__(self, key: bytes, purpose: bytes) -> None:
        block = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
        self._inner = hashlib.sha256(bytes(octet ^ 0x36 for octet in block) + purpose)
        self._outer = hashlib.sha256(bytes(octet ^ 0x5C for octet in block))

    def code(self, message: bytes) -> bytes:
        """Return 16 octets."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()[:16]

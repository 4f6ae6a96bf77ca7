"""An envelope sender that names its delivery: what comes back tells whose it was, and cannot be forged."""

import hmac
import re
from base64 import b32decode, b32encode
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

_PURPOSE = b"broadsheet verp 1\0"
# Kind, two ids and code make 25 octets, which base32 writes in 40 characters with no bit to spare.
_ID = 7
_CODE = 10
_KEY = 16
_ADDRESS = re.compile(r"<?[Bb]\+([A-Za-z2-7]{40})@[A-Za-z0-9.-]{1,253}>?")
_DOMAIN = re.compile(r"[A-Za-z0-9.-]{1,253}")


class Kind(IntEnum):
    """What a returned message was. The numbers are in addresses that are out in the world: never renumber."""

    DELIVERY = 1
    LETTER = 2


@dataclass(frozen=True, slots=True)
class Claimed:
    """What an authentic return path names. A LETTER has its id in `issue_id`, maybe 0 in `subscriber_id`."""

    kind: Kind
    issue_id: int
    subscriber_id: int


def return_path(
    key: bytes, issue_id: int, subscriber_id: int, domain: str, kind: Kind = Kind.DELIVERY
) -> str:
    """`b+TOKEN@domain`: kind and ids with 80 bits of HMAC-SHA256, in base32 because relays may fold case.

    The local part has 42 octets, of the 64 that RFC 5321 §4.5.3.1.1 allows. `domain` is in A-labels. Raises
    ValueError for a key under 16 octets, another domain, and an id below 0 or from 2**56 on.
    """
    if not _DOMAIN.fullmatch(domain):
        raise ValueError("the domain for returned mail must be ASCII, in A-labels")
    if not (0 <= issue_id < 1 << 8 * _ID and 0 <= subscriber_id < 1 << 8 * _ID):
        raise ValueError("an id must fit in 56 bits")
    said = bytes((kind,)) + issue_id.to_bytes(_ID, "big") + subscriber_id.to_bytes(_ID, "big")
    return f"b+{b32encode(said + _code(key, said)).decode('ascii').lower()}@{domain}"


def read(keys: Sequence[bytes], address: str) -> Claimed | None:
    """What the address claims, if one of the keys made it; else None. Case and angle brackets do not matter.

    The domain is not looked at: only the token is trusted. Raises ValueError for a key under 16 octets.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return None
    token = b32decode(found[1], casefold=True)
    said, code = token[:-_CODE], token[-_CODE:]
    if not any(hmac.compare_digest(code, _code(key, said)) for key in keys) or said[0] not in tuple(Kind):
        return None
    issue_id, subscriber_id = int.from_bytes(said[1:-_ID], "big"), int.from_bytes(said[-_ID:], "big")
    return Claimed(Kind(said[0]), issue_id, subscriber_id)


def _code(key: bytes, said: bytes) -> bytes:
    if len(key) < _KEY:
        raise ValueError(f"a key for return paths needs {_KEY} octets or more")
    return hmac.digest(key, _PURPOSE + said, "sha256")[:_CODE]

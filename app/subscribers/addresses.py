"""What an address is: kept as typed, compared by casefold and IDNA, refused at the door when nobody could mail it."""

import hmac
import unicodedata
from dataclasses import dataclass

import idna
from email_validator import EmailNotValidError, validate_email

from app.core.errors import Fault, Invalid


@dataclass(frozen=True, slots=True)
class Address:
    """An address that can be mailed: as `typed`, and the `key` that makes it one with its other spellings."""

    typed: str
    key: str

    def hashed(self, suppression_key: str) -> bytes:
        """Return the keyed hash (32 bytes) that outlives the address itself."""
        return hmac.digest(suppression_key.encode(), self.key.encode(), "sha256")


def accept(raw: str) -> Address:
    """Return the address, or raise Invalid saying what is wrong with it (RFC 5321 §4.1.2, ASCII local part)."""
    typed = raw.strip()
    try:
        found = validate_email(typed, check_deliverability=False, allow_smtputf8=False)
    except EmailNotValidError as error:
        raise Invalid(
            "This is not an address that can be mailed; it should look like name@example.com.",
            [Fault(_without_quotes(str(error)), field="email")],
        ) from None
    local, _, domain = typed.rpartition("@")
    ascii_domain = found.ascii_domain or idna.encode(domain, uts46=True).decode()
    key = f"{unicodedata.normalize('NFC', local).casefold()}@{ascii_domain.lower()}"
    return Address(typed, key)


def masked(address: str) -> str:
    """Return `re***r@example.com`: enough for its owner to know it, too little for others."""
    local, _, domain = address.rpartition("@")
    head, tail = (local[:2], local[-1]) if len(local) > 4 else (local[:1], "")
    return f"{head}***{tail}@{domain}"


def _without_quotes(message: str) -> str:
    return message.replace("email address", "address")

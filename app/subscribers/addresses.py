"""What an address is: kept as typed, compared by casefold and IDNA, refused at the door when nobody could mail it."""

import hmac
from dataclasses import dataclass

from email_validator import EmailNotValidError, validate_email

from app.core.errors import Fault, Invalid
from app.mail import headers, verdict

LONGEST = 1_000  # characters; more is not worth reading
GMAIL = ("gmail.com", "googlemail.com")


@dataclass(frozen=True, slots=True)
class Address:
    """An address that can be mailed: as `typed`, and the `key` that makes it one with its other spellings."""

    typed: str
    key: str

    def hashed(self, suppression_key: str) -> bytes:
        """Return the keyed hash (32 bytes) that outlives the address itself."""
        return hmac.digest(suppression_key.encode(), self.key.encode(), "sha256")

    def digest(self, suppression_key: str) -> bytes:
        """Return the keyed hash (32 bytes) by which letters to one mailbox are counted, however it is spelled."""
        return hmac.digest(suppression_key.encode(), f"mailbox:{self._mailbox}".encode(), "sha256")

    @property
    def provider(self) -> str:
        """Who runs the mailbox, where its domain alone tells; else ""."""
        return verdict.provider_of(self.key, "")

    @property
    def _mailbox(self) -> str:
        """The key without a tag (`+news`), and at Gmail without dots; many providers see no difference."""
        local, _, domain = self.key.rpartition("@")
        local = local.partition("+")[0] or local
        return f"{local.replace('.', '')}@gmail.com" if domain in GMAIL else f"{local}@{domain}"


def accept(raw: str) -> Address:
    """Return the address, or raise Invalid saying what is wrong with it (RFC 5321 §4.1.2, ASCII local part)."""
    typed = raw.strip()
    if len(typed) > LONGEST:
        raise _refusal("The address is too long.")
    try:
        validate_email(typed, check_deliverability=False, allow_smtputf8=False)
        # What the post office would refuse later is refused now, and one domain is never taken for another.
        local, _, domain = headers.envelope_address(typed).rpartition("@")
    except EmailNotValidError as error:
        raise _refusal(_in_our_words(str(error))) from None
    except ValueError as error:
        raise _refusal(f"{str(error)[:1].upper()}{str(error)[1:]}.") from None
    return Address(typed, f"{local.casefold()}@{domain}")


def masked(address: str) -> str:
    """Return `re***r@example.com`: enough for its owner to know it, too little for others."""
    local, _, domain = address.rpartition("@")
    head, tail = (local[:2], local[-1]) if len(local) > 4 else (local[:1], "")
    return f"{head}***{tail}@{domain}"


def _refusal(fault: str) -> Invalid:
    sentence = "This is not an address that can be mailed; it should look like name@example.com."
    return Invalid(sentence, [Fault(fault, field="email")])


def _in_our_words(message: str) -> str:
    return message.replace("email address", "address")

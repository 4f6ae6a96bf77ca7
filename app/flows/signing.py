"""The operator's DKIM key, read once when a program starts, and what is doubtful about it."""

from collections.abc import Iterable

from app.core.config import Settings
from app.core.errors import Misconfigured
from app.mail import dkim

GOOD = 2048  # bits; RFC 8301 §3.2: signers should have no less


def signer(settings: Settings) -> dkim.Signer | None:
    """Return what signs our mail, None where DKIM_KEY is not set. Raises Misconfigured for a key that cannot."""
    if settings.dkim_key is None:
        return None
    try:
        return dkim.Signer.load(
            settings.dkim_key.read_bytes(), settings.dkim_selector, settings.dkim_domain or settings.domain
        )
    except OSError as error:
        raise Misconfigured(f"BROADSHEET_DKIM_KEY cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise Misconfigured(f"BROADSHEET_DKIM_KEY: {error}") from None


def doubts(one: dkim.Signer | None, senders: Iterable[str]) -> list[str]:
    """Return a sentence for each sender that the signature does not speak for (RFC 7489 §3.1.1), and for a weak key."""
    if one is None:
        return []
    weak = f"The DKIM key has {one.bits} bits; receivers expect {GOOD}."
    strangers = [who for who in senders if not f".{who.partition('@')[2]}".endswith(f".{one.domain}")]
    return [weak] * (one.bits < GOOD) + [
        f"Mail from {who} is signed for {one.domain}, which DMARC does not count: their domains differ."
        for who in dict.fromkeys(strangers)
    ]

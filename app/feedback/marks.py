"""What tells kinds of returned mail apart, and what is ours in them: marks in headers, subjects and addresses."""

import re
from collections.abc import Iterable

from app.feedback import phrases
from app.feedback.mime import Headers, shown

# A return path of ours (see mail/verp.py), and the address of a `mailto:` for leaving.
_PATH = re.compile(r"(?<![A-Za-z0-9])[Bb]\+[A-Za-z2-7]{40}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,10}")
_LEAVE = re.compile(r"(?<![A-Za-z0-9])unsubscribe\+([A-Za-z0-9_-]{32})@", re.IGNORECASE)
_MESSAGE_ID = re.compile(r"<([^<>\s]{1,250})>")
_LEAVES = re.compile(
    r"(?:re: ?)?[\W_]{0,4}(?:unsubscribe|opt.?out|remove me|list-unsubscribe|退订|取消订阅)[\W_]{0,4}",
    re.IGNORECASE,
)
_AUTOMATIC = (
    "x-autoreply",
    "x-autorespond",
    "x-autoreply-from",
    "x-autoresponder",
    "x-mail-autoreply",
    "x-vacation",
    "x-auto-response-suppress",
    "x-rt-loop-prevention",
)
_TO = ("to", "delivered-to", "x-original-to", "envelope-to", "x-envelope-to")


def leaving(envelope_to: str | None, headers: Headers) -> str | None:
    """The token of a reader who writes to the `mailto:` for leaving (RFC 2369 §3.2); None for other mail."""
    found = next((one for where in _places(envelope_to, headers) if (one := _LEAVE.search(where))), None)
    return found[1] if found else None


def wants_out(headers: Headers) -> bool:
    """Whether the mail says by its Subject, or Apple's mark, that its sender wants no more of ours."""
    return bool(
        headers.get("x-apple-unsubscribe") or _LEAVES.fullmatch(shown(headers.get("subject")).strip())
    )


def return_path(places: Iterable[str]) -> str | None:
    """The first return path of ours in these texts, as it stands; whether it is authentic, `verp.read` says."""
    found = next((one for where in places if (one := _PATH.search(where))), None)
    return found[0] if found else None


def places(envelope_to: str | None, headers: Headers) -> Iterable[str]:
    """Where the address a mail was sent to may stand, the surest first."""
    return _places(envelope_to, headers)


def message_id(headers: Headers) -> str | None:
    """The Message-ID of a mail, without its brackets."""
    found = _MESSAGE_ID.search(headers.get("message-id"))
    return found[1] if found else None


def from_a_daemon(headers: Headers) -> bool:
    """Whether the From is a mail system's."""
    sender = shown(headers.get("from"))
    return bool(phrases.DAEMON.search(sender)) or sender.strip() in ("", "<>")


def told_in_subject(headers: Headers) -> bool:
    """Whether the Subject speaks of mail that was not delivered."""
    return bool(phrases.FAILED.search(shown(headers.get("subject"))))


def tells_of_failure(words: str) -> bool:
    """Whether the words speak of mail that was not delivered."""
    return bool(phrases.FAILED.search(words))


def automatic(headers: Headers) -> bool:
    """Whether the mail says that a machine answered for a person (RFC 3834 §5, and what was used before it).

    Bounces carry the same marks, so ask this only of what is no bounce.
    """
    word = headers.get("auto-submitted").split(";")[0].strip().lower()
    return (
        word.startswith(("auto-replied", "auto-generated", "auto-notified"))
        or any(headers.get(one) for one in _AUTOMATIC)
        or "auto" in headers.get("precedence").lower()
        or "auto" in headers.get("x-precedence").lower()
        or bool(phrases.AWAY.match(shown(headers.get("subject")).strip()))
    )


def _places(envelope_to: str | None, headers: Headers) -> Iterable[str]:
    return [envelope_to] if envelope_to else headers.all(*_TO)

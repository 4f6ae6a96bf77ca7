"""One shape for whatever comes back: a bounce, a complaint, a wish to leave, an automatic reply."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from app.mail import verdict

DELAYED = (
    "delayed"  # the meaning of a notice that a mail is late: it may still arrive, so it is never counted
)
TEXT = 200  # characters of a report's words that are kept


class Kind(StrEnum):
    """What came back."""

    BOUNCE = "bounce"
    COMPLAINT = "complaint"
    UNSUBSCRIBE = "unsubscribe"
    AUTO_REPLY = "auto-reply"
    DELIVERED = "delivered"
    OTHER = "other"


class Action(StrEnum):
    """What one report by itself says about the address: it is gone, it may be, or nothing."""

    SUPPRESS = "suppress"
    COUNT = "count"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Report:
    """One recipient's part of what came back, as the mail or the webhook says it.

    `meaning` is a word of the verdict table, or "delayed"; for what is no bounce it is the kind itself. `address`
    is the one that the report names: anybody can write any address in a mail, so it never proves whose it was.
    `code` is the SMTP reply (RFC 5321 §4.2), `status` the enhanced one (RFC 3463, "5.1.1"), `text` the words
    on one line of at most 200 characters. `token` is ours, as it was found and not yet verified: the 32 signs
    of a `mailto:` for leaving, or else a whole return path `b+…@domain`, as `verp.read` takes it. `message_id`
    is without its angle brackets, `relay_id` the relay's name for the mail, `event_id` the provider's for the
    event. `origin` is "mail" or the provider whose webhook it was.
    """

    kind: Kind
    action: Action
    meaning: str
    address: str | None = None
    code: int | None = None
    status: str | None = None
    text: str = ""
    token: str | None = None
    message_id: str | None = None
    relay_id: str | None = None
    event_id: str | None = None
    happened_at: datetime | None = None
    origin: str = "mail"


def action_of(found: verdict.Verdict) -> Action:
    """What a verdict means for the address when it is the last word on a mail: nobody tries again."""
    if found.action == verdict.Action.SUPPRESS:
        return Action.SUPPRESS
    return Action.COUNT if found.counts else Action.NONE


def one_line(words: str) -> str:
    """The words as a report keeps them: one line, no control characters, at most 200 characters."""
    shown = "".join(sign if sign.isprintable() else " " for sign in words[: 5 * TEXT])
    return " ".join(shown.split())[:TEXT].rstrip()

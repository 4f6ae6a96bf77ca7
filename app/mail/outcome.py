"""What a relay answered, and what became of a mail that was handed to it: values only."""

import re
from dataclasses import dataclass

_ENHANCED = re.compile(r"#?([245]\.[0-9]{1,3}\.[0-9]{1,3})(?![0-9.])")
_ENHANCED_AT_THE_END = re.compile(r"\(#([245]\.[0-9]{1,3}\.[0-9]{1,3})\)")

_QUEUE_IDS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\benvid=([0-9]+)",  # Aliyun
        r"\bqueued as:? *([a-z0-9][a-z0-9_.,:/+=@-]*[a-z0-9=_-])",  # Postfix, SendGrid, 163
        r"\bid=([a-z0-9-]+)",  # Exim
        r"\binternalid=([0-9]+)",  # Exchange
        r"^ok +[0-9]+ (\S+) - gsmtp",  # Gmail
        r"^ok ([0-9]+ qp [0-9]+)",  # qmail
        r"^(\S*[0-9]\S*) message accepted for delivery",  # Sendmail, OpenSMTPD
        r"^ok:? +((?=[a-z/.-]*[0-9])[a-z0-9][a-z0-9_./@-]{7,})$",  # SES, SparkPost
    )
)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered (RFC 5321 §4.2): a code from 200 to 599 and its text on one line."""

    code: int
    text: str

    @property
    def enhanced(self) -> str | None:
        """The enhanced status code (RFC 3463) at the start of the text, such as "5.1.1"; None without one."""
        found = _ENHANCED.match(self.text) or _ENHANCED_AT_THE_END.search(self.text)
        return found[1] if found else None

    @property
    def queue_id(self) -> str | None:
        """The relay's own name for the mail, which its later reports repeat; None where it gave none."""
        enhanced = _ENHANCED.match(self.text)
        words = self.text[enhanced.end() :].strip() if enhanced else self.text
        found = next(filter(None, (pattern.search(words) for pattern in _QUEUE_IDS)), None)
        return found[1] if found and len(found[1]) <= 128 else None


@dataclass(frozen=True, slots=True)
class Sent:
    """The relay took the mail; `relay_id` is its own name for it, where its reply holds one."""

    reply: Reply
    relay_id: str | None


@dataclass(frozen=True, slots=True)
class Deferred:
    """The relay said 4xx to this mail at `stage`: mail, rcpt, data, body or dot."""

    reply: Reply
    stage: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The relay said 5xx to this mail at `stage`, or would have: it is larger than the SIZE announced."""

    reply: Reply
    stage: str


@dataclass(frozen=True, slots=True)
class Uncertain:
    """The final dot is written and no answer came: the relay may have the mail (RFC 1047)."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unreached:
    """Nothing was accepted, and that says nothing about the mail: the connection failed before the dot.

    `stage` is where a `reply` said so.
    """

    reason: str
    reply: Reply | None = None
    stage: str = ""


Outcome = Sent | Deferred | Refused | Uncertain | Unreached

"""What the providers' files share: a verified call, how it is refused, and how a bounce is judged."""

import hashlib
import hmac
import json
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any

from app.core.errors import Forbidden, Invalid, Unauthorized
from app.feedback.report import Action, Kind, Report, action_of, one_line
from app.mail import verdict

HOUR = timedelta(hours=1)
NAME = 200  # characters of an id or an address that are kept
WORDS = 2000  # characters of a reason that are read

# What the table says when the words may stand for a mailbox that is gone.
_SAYS_GONE = verdict.VAGUE | {"mailbox-unavailable"}
_GONE, _AWAY, _BARRED = "bad-mailbox", "mailbox-unavailable", "policy"


class Stale(Forbidden):
    """Authentic, and too old: it may be somebody's copy (RFC 9110 §15.5.4)."""

    type, title = "stale-event", "This event is too old to be believed"


@dataclass(frozen=True, slots=True)
class Config:
    """What a provider's calls are verified with: any one of `secrets`, and for SES the certificate in PEM."""

    secrets: tuple[str, ...] = field(repr=False)
    certificate: bytes = b""


@dataclass(frozen=True, slots=True)
class Call:
    """One verified call: `id` is the provider's own and taken once; `confirm` is an address to be visited."""

    id: str
    reports: tuple[Report, ...]
    confirm: str | None = None


class Says(Enum):
    """What a provider's own word for a bounce is worth."""

    GONE = auto()  # it will not even try this address: the address is bad, whatever the words
    HARD = auto()  # it has given up: bad, unless the words speak of us or of a passing trouble
    SOFT = auto()  # it counts once, unless the words speak of us
    OURS = auto()  # it is about our mail or our name, never about the reader


def report(meant: Says | Kind, words: str, otherwise: str, *, status: str = "", **known: Any) -> Report:
    """What an event means, as a Report: a bounce judged by its `words`, anything else told by them or `otherwise`."""
    if isinstance(meant, Says):
        return bounce(meant, words, status=status, **known)
    return plain(meant, words or otherwise, **known)


def bounce(says: Says, words: str, *, status: str = "", **known: Any) -> Report:
    """One bounce as a Report, judged by the table of verdicts within what the provider says.

    `words` is the provider's reason, an SMTP reply where there is one; `known` are further fields of the Report.
    """
    words = words[:WORDS].removeprefix("smtp;").strip()  # RFC 3464 §2.3.6 says what kind of words they are
    reply = verdict.reply_in(words)
    where = verdict.provider_of(known.get("address") or "")
    found = verdict.judge(reply, verdict.stage_in(words), where, status)
    action, meaning = _weighed(says, found)
    shown = reply.enhanced or status[:16] or None
    return Report(
        Kind.BOUNCE, action, meaning, code=reply.code or None, status=shown, text=one_line(words), **known
    )


def plain(kind: Kind, words: str = "", **known: Any) -> Report:
    """Anything that is no bounce as a Report: complaints and wishes to leave are heeded, the rest says nothing."""
    action = Action.SUPPRESS if kind in (Kind.COMPLAINT, Kind.UNSUBSCRIBE) else Action.NONE
    return Report(kind, action, kind.value, text=one_line(words), **known)


def _weighed(says: Says, found: verdict.Verdict) -> tuple[Action, str]:
    is_gone, about_the_mailbox = action_of(found) == Action.SUPPRESS, found.counts
    match says:
        case Says.GONE:
            return Action.SUPPRESS, found.meaning if is_gone else _GONE
        case Says.HARD if is_gone or found.meaning in _SAYS_GONE:
            return Action.SUPPRESS, found.meaning if is_gone else _GONE
        case Says.SOFT if found.meaning in verdict.VAGUE:
            return Action.COUNT, _AWAY
        case Says.HARD | Says.SOFT if about_the_mailbox:
            return Action.COUNT, found.meaning
        case Says.OURS if about_the_mailbox or found.meaning in verdict.VAGUE:
            return Action.NONE, _BARRED
        case _:
            return Action.NONE, found.meaning


# -- reading


def unsigned(
    headers: Mapping[str, str], body: bytes, config: Config, report: Callable[[dict[str, Any]], Report]
) -> Call:
    """The call of a provider that signs nothing: its login is checked, and the same body is one call."""
    require_login(headers, config.secrets)
    return Call(hashlib.sha256(body).hexdigest(), (report(read_object(body)),))


def read(body: bytes) -> Any:
    """The JSON of a body. Raises Invalid for what is none, however deep or long."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise Invalid("The body is not JSON.") from None


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises Invalid for anything else."""
    found = read(body)
    if not isinstance(found, dict):
        raise Invalid("The body is not a JSON object.")
    return found


def part(of: Any, *path: str) -> dict[str, Any]:
    """The object at a path; an empty one where there is none."""
    for name in path:
        of = of.get(name) if isinstance(of, dict) else None
    return of if isinstance(of, dict) else {}


def items(of: Any) -> list[Any]:
    """A list as it is; an empty one for anything else."""
    return of if isinstance(of, list) else []


def text(of: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that holds a text or a number, as a text; else an empty one."""
    for name in names:
        value = of.get(name)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
            return str(value)
    return ""


def name(of: Mapping[str, Any], *names: str) -> str | None:
    """The same for an id or an address: without brackets and what no database keeps; None where there is none."""
    return named(text(of, *names))


def named(words: str) -> str | None:
    """An id or an address as it is kept: on one line, without angle brackets and control characters."""
    kept = "".join(sign for sign in words[: 5 * NAME] if sign.isprintable())
    return kept.strip(" <>")[:NAME] or None


def moment(value: Any) -> datetime | None:
    """A time from seconds or milliseconds since 1970, or RFC 3339; None for anything else."""
    try:
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
        found = datetime.fromisoformat(str(value))
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def seconds(digits: str) -> datetime | None:
    """A time from the digits of seconds since 1970; None for anything else."""
    return moment(int(digits)) if digits.isdecimal() and len(digits) < NAME else None


# -- verifying


def require(is_authentic: bool) -> None:
    """Raise Forbidden for a signature that is not the provider's."""
    if not is_authentic:
        raise Forbidden("The signature of this event is not the provider's.")


def require_fresh(signed_at: datetime | None, now: datetime, life: timedelta = HOUR) -> None:
    """Raise Forbidden where the signed time is none, Stale where it is further from `now` than `life`."""
    require(signed_at is not None)
    if signed_at is not None and abs(now - signed_at) > life:
        raise Stale(f"This event was signed more than {int(life.total_seconds() // 60)} minutes ago.")


def require_login(headers: Mapping[str, str], secrets: Iterable[str]) -> None:
    """Raise Unauthorized unless a call brings one of the secrets, as Basic (RFC 7617) or Bearer (RFC 6750).

    A secret with a colon in it is a name and a password, any other a token.
    """
    scheme, _, word = headers.get("authorization", "").partition(" ")
    presented = f"{scheme.lower()} {word.strip()}".encode()
    wanted = [
        f"basic {b64encode(secret.encode()).decode()}" if ":" in secret else f"bearer {secret}"
        for secret in secrets
    ]
    if not any(hmac.compare_digest(presented, each.encode()) for each in wanted):
        raise Unauthorized("This event comes without the name and password that were set for this provider.")


def from_base64(word: str) -> bytes:
    """The octets; Forbidden for what is no base64: it stands where a signature should."""
    try:
        return b64decode(word, validate=True)
    except (NotBase64, ValueError):
        raise Forbidden("The signature of this event cannot be read.") from None

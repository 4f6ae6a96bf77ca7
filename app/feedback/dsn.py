"""What a returned mail says: a bounce, by RFC 3464 or by no standard, a complaint, an answer, a wish to leave."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import parsedate_to_datetime

from app.feedback import complaints, fields, marks, phrases, prose, sns_mail
from app.feedback.fields import Group, address_in
from app.feedback.mime import MAIL, Headers, Mail, read_headers, shown, take_apart
from app.feedback.report import DELAYED, Action, Kind, Report, action_of, one_line
from app.mail import verdict

_STATUS = re.compile(r"[245]\.[0-9]{1,3}\.[0-9]{1,3}")
_WRAPPED = 3  # times that a bounce may be handed on inside another mail
_NO_FAILURE = ("delivered", "relayed", "expanded", "deliverable")


@dataclass(frozen=True, slots=True)
class _Bounce:
    """A returned mail in three: the mail that tells, what it says, and the head of the mail that came back."""

    mail: Mail
    said: str
    returned: Headers
    status: fields.Status


def read(raw: bytes, envelope_to: str | None) -> list[Report]:
    """One report for each recipient the mail speaks of; one of kind OTHER where it speaks of none.

    `envelope_to` is the address it was delivered to, if known. Nothing in the mail is trusted: `token` has still
    to be verified. Never raises; of the mail 256 KB, 50 parts and 20 levels are read.
    """
    told = _unwrapped(_opened(raw))
    token = marks.leaving(envelope_to, told.mail.headers)
    if token is not None:
        return [replace(_of_sender(told, Kind.UNSUBSCRIBE, Action.SUPPRESS), token=token)]
    readers: tuple[Callable[[_Bounce], list[Report]], ...] = (
        _complaints,
        _notices,
        _statuses,
        _told,
        _leaving,
        _answered,
    )
    found = next((reports for reader in readers if (reports := reader(told))), [])
    return _completed(found or [Report(Kind.OTHER, Action.NONE, Kind.OTHER.value)], told, raw, envelope_to)


def _unwrapped(told: _Bounce) -> _Bounce:
    """The bounce inside a mail that only hands it on, as gateways and people do."""
    for _ in range(_WRAPPED):
        inside = next((part.text for part in told.mail.parts if part.type == "message/rfc822"), "")
        head = read_headers(inside.partition("\n\n")[0])
        is_report = head.get("content-type").lower().startswith("multipart/report")
        is_bounce = is_report or (marks.from_a_daemon(head) and marks.told_in_subject(head))
        if told.status.groups or not inside or not is_bounce:
            break
        told = _opened(inside.encode())
    return told


def _opened(raw: bytes) -> _Bounce:
    mail = take_apart(raw)
    own = [part for part in mail.parts if not part.returned]
    plain = [part.text for part in own if part.type == "text/plain"]
    html = [part.text for part in own if part.type == "text/html"]
    said, rest = prose.parted("\n\n".join((plain if any(map(str.strip, plain)) else html)[:5]))
    came_back = [part.text for part in mail.parts if part.returned]
    returned = read_headers((came_back[0] if came_back else rest).partition("\n\n\n")[0][:16_000])
    status = "\n\n".join(
        part.text
        for part in own
        if part.type in ("message/delivery-status", "message/global-delivery-status")
    )
    found = fields.read(status)
    return _Bounce(
        mail, said, returned, found if found.groups else fields.read("\n\n".join([status, *plain]))
    )


def _complaints(told: _Bounce) -> list[Report]:
    return complaints.read(told.mail, told.returned)


def _notices(told: _Bounce) -> list[Report]:
    return sns_mail.read(told.mail.parts[0].text if told.mail.parts else "")


def _statuses(told: _Bounce) -> list[Report]:
    addresses = [group.address for group in told.status.groups if group.address]
    return [_of_group(group, told, addresses) for group in told.status.groups]


def _of_group(group: Group, told: _Bounce, addresses: Sequence[str]) -> Report:
    if group.action in _NO_FAILURE:
        return Report(
            Kind.DELIVERED, Action.NONE, Kind.DELIVERED.value, address=group.address, text=group.diagnostic
        )
    comment = group.status.partition("(")[2]
    told_of = prose.statements(told.said, group.address, addresses)
    words = [group.diagnostic, *told_of, comment]
    late = group.action == "delayed" or (not group.action and bool(phrases.LATE.search(told.said)))
    judge = _Judge(_provider(group.address, group.remote), group.status, _seen_from_here(told, group.address))
    report = _reported(words, judge, late)
    return replace(report, address=group.address, happened_at=_moment(group.when))


def _told(told: _Bounce) -> list[Report]:
    """A bounce without a status: who it is about, and what is said of each."""
    headers = told.mail.headers
    failed = headers.all("x-failed-recipients")
    if not failed and not _is_bounce(told):
        return []
    addresses = _recipients(told, failed)
    late = bool(phrases.LATE.search(shown(headers.get("subject"))) or phrases.LATE.search(told.said))
    return [_of_address(one, told, [each for each in addresses if each], late) for one in addresses]


def _of_address(address: str | None, told: _Bounce, others: Sequence[str], late: bool) -> Report:
    words = prose.statements(told.said, address, others)
    judge = _Judge(_provider(address, ""), "", _seen_from_here(told, address))
    return replace(_reported(words, judge, late), address=address)


def _seen_from_here(told: _Bounce, address: str | None) -> Callable[[str], str]:
    """How to read a statement: with our own domain called what it is, for its fault is not the reader's."""
    ours = address_in(told.returned.get("return-path")) or address_in(told.mail.headers.get("to")) or ""
    domain = ours.rpartition("@")[2].lower()
    if not domain or domain == (address or "").rpartition("@")[2].lower():
        return lambda words: words
    alone = re.compile(rf"(?<![@\w.-]){re.escape(domain)}(?![\w-])", re.IGNORECASE)
    return lambda words: alone.sub("sender domain", words) if verdict.reply_in(words).code else words


def _recipients(told: _Bounce, failed: Sequence[str]) -> Sequence[str | None]:
    named = [one for value in failed for each in value.split(",")[:20] if (one := address_in(each))]
    ours = [
        *told.mail.headers.all("to", "delivered-to"),
        told.returned.get("from"),
        told.returned.get("return-path"),
    ]
    not_these = frozenset(one.lower() for value in ours if (one := address_in(value)))
    return (
        list(dict.fromkeys(named))
        or prose.recipients(told.said, not_these)
        or [address_in(told.returned.get("to"))]
    )


def _leaving(told: _Bounce) -> list[Report]:
    if not marks.wants_out(told.mail.headers):
        return []
    return [_of_sender(told, Kind.UNSUBSCRIBE, Action.SUPPRESS)]


def _answered(told: _Bounce) -> list[Report]:
    if not marks.automatic(told.mail.headers):
        return []
    return [_of_sender(told, Kind.AUTO_REPLY, Action.NONE)]


def _of_sender(told: _Bounce, kind: Kind, action: Action) -> Report:
    headers = told.mail.headers
    text = one_line(shown(headers.get("subject")))
    return Report(kind, action, kind.value, address=address_in(headers.get("from")), text=text)


@dataclass(frozen=True, slots=True)
class _Judge:
    """What holds for all statements on one recipient."""

    provider: str
    status: str
    seen: Callable[[str], str]

    def verdict(self, words: str) -> verdict.Verdict:
        return verdict.judge_report(self.seen(words), self.provider, self.status)


def _reported(statements: Sequence[str], judge: _Judge, late: bool) -> Report:
    """The verdict of the first statement that says something; of the status where none does.

    A notice of delay is not the last word on the mail: it counts at most, under a meaning of its own.
    """
    words = [one for one in statements if one.strip()] or [""]
    verdicts = ((one, judge.verdict(one)) for one in words)
    chosen, found = next(
        (one for one in verdicts if one[1].meaning not in verdict.VAGUE), (words[0], judge.verdict(words[0]))
    )
    reply, own, action = verdict.reply_in(chosen), _STATUS.search(judge.status), action_of(found)
    delayed = late and (action is not Action.NONE or found.meaning in verdict.VAGUE)
    return Report(
        Kind.BOUNCE,
        Action.COUNT if delayed else action,
        DELAYED if delayed else found.meaning,
        code=reply.code or None,
        status=reply.enhanced or (own[0] if own else None),
        text=chosen or judge.status,
    )


def _provider(address: str | None, remote: str) -> str:
    known = verdict.provider_of(address or "")
    return known if known != verdict.OTHER else verdict.provider_of(remote)


def _is_bounce(told: _Bounce) -> bool:
    """Whether a mail system tells that a mail was not delivered: who wrote, what about, and with what proof."""
    headers = told.mail.headers
    subject = marks.told_in_subject(headers)
    tells = marks.tells_of_failure(told.said) or bool(verdict.reply_in(told.said).code)
    if marks.from_a_daemon(headers):
        return subject or (tells and bool(told.returned.get("from") or _recipients(told, ())[0]))
    if told.returned.get("message-id") or told.returned.get("from"):
        return subject or bool(verdict.reply_in(told.said).code)
    return subject and headers.get("return-path") == "<>"


def _completed(reports: list[Report], told: _Bounce, raw: bytes, envelope_to: str | None) -> list[Report]:
    """The reports with what holds for all of them: whose mail it was, and when."""
    token = marks.return_path(_places(told, raw, envelope_to))
    when = _moment(told.status.mail.get("arrival-date", "")) or _moment(told.mail.headers.get("date"))
    relay = told.status.mail.get("x-postfix-queue-id", "")[:128] or None
    return [
        replace(
            one,
            text=one_line(one.text),
            token=token,
            message_id=marks.message_id(told.returned),
            relay_id=relay,
            happened_at=one.happened_at or when,
        )
        for one in reports
    ]


def _places(told: _Bounce, raw: bytes, envelope_to: str | None) -> Iterable[str]:
    """Where our return path may stand, the surest first."""
    yield from marks.places(envelope_to, told.mail.headers)
    yield from (value for key, value in told.status.mail.items() if key == "x-postfix-sender")
    yield from (part.text for part in told.mail.parts)
    yield raw[:MAIL].decode("latin-1")


def _moment(words: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(words[:100])
        return found if found.tzinfo is not None and found.utcoffset() is not None else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None

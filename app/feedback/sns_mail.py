"""Amazon's notices that come as a mail with JSON in it, where a topic has an address among its subscribers."""

import json
import re
from collections.abc import Mapping
from typing import Any

from app.feedback.report import Action, Kind, Report, action_of
from app.mail import verdict

_Row = Mapping[str, Any]
_RECIPIENTS = 100
_BROKEN = re.compile(r"!?\r?\n ")  # a long line of JSON, broken on its way


def read(text: str) -> list[Report]:
    """The reports in a notice of Amazon SES; none where the text is something else."""
    text = _BROKEN.sub("", text)
    start = text.find('{"')
    if start < 0 or start > 200:
        return []
    try:
        notice, _ = json.JSONDecoder().raw_decode(text[start:])
    except (ValueError, RecursionError):
        return []
    if isinstance(notice, dict) and isinstance(notice.get("Message"), str):
        return read(notice["Message"])
    kind = _text(notice, "notificationType") or _text(notice, "eventType")
    readers = {"Bounce": _bounced, "Complaint": _complained, "Delivery": _delivered}
    return readers[kind](notice)[:_RECIPIENTS] if kind in readers else []


def _bounced(notice: _Row) -> list[Report]:
    return [_bounce(one) for one in _rows(_row(notice, "bounce"), "bouncedRecipients")]


def _bounce(one: _Row) -> Report:
    words, status, address = _text(one, "diagnosticCode"), _text(one, "status"), _text(one, "emailAddress")
    found = verdict.judge_report(words, verdict.provider_of(address), status)
    reply = verdict.reply_in(words)
    return Report(
        Kind.BOUNCE,
        action_of(found),
        found.meaning,
        address=address or None,
        code=reply.code or None,
        status=reply.enhanced or status or None,
        text=words,
    )


def _complained(notice: _Row) -> list[Report]:
    rows = _rows(_row(notice, "complaint"), "complainedRecipients")
    addresses = [_text(one, "emailAddress") or None for one in rows]
    return [Report(Kind.COMPLAINT, Action.SUPPRESS, Kind.COMPLAINT.value, address=one) for one in addresses]


def _delivered(notice: _Row) -> list[Report]:
    named = _row(notice, "delivery").get("recipients")
    addresses = [one for one in named if isinstance(one, str)] if isinstance(named, list) else []
    return [Report(Kind.DELIVERED, Action.NONE, Kind.DELIVERED.value, address=one) for one in addresses]


def _row(value: object, key: str) -> _Row:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _rows(value: _Row, key: str) -> list[_Row]:
    found = value.get(key)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _text(value: object, key: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""

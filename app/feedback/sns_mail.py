"""Amazon's notices that come as a mail with JSON in it, where a topic has an address among its subscribers."""

import json
import re
from dataclasses import replace

from app.feedback.providers import ses
from app.feedback.report import Kind, Report

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
    found = ses.reports(notice, "") if isinstance(notice, dict) else []
    return [
        replace(one, origin="mail", event_id=None) for one in found[:_RECIPIENTS] if one.kind != Kind.OTHER
    ]

"""Complaints of readers that providers pass on: RFC 5965, and Microsoft's, which are not."""

import re

from app.feedback.fields import address_in
from app.feedback.mime import Headers, Mail, read_headers
from app.feedback.report import Action, Kind, Report

_FEEDBACK = "message/feedback-report"
_TYPE = re.compile(r"^feedback-type: ", re.IGNORECASE | re.MULTILINE)
_OPT_OUT = ("opt-out", "opt-out-list", "unsubscribe")
# Reports of checks, and of readers who say a mail is none; nobody complains in them.
_NO_COMPLAINT = ("auth-failure", "dmarc", "not-spam", "policy", "authentication-failure")
_MICROSOFT = "x-hmxmroriginalrecipient"
_RECIPIENTS = 20


def read(mail: Mail, returned: Headers) -> list[Report]:
    """A report for each reader who complains or wants out; none where the mail is no feedback report.

    A report of a failed check of authentication (RFC 6591) is OTHER: it is about us, not about a reader.
    """
    fields = _fields_of(mail)
    if fields is not None:
        named = fields.all("original-rcpt-to", "removal-recipient", "x-original-rcpt-to")
        return _reports(*_kind(fields.get("feedback-type").lower()), named, fields, returned)
    if returned.get(_MICROSOFT):
        named = returned.all(_MICROSOFT)
        return _reports(Kind.COMPLAINT, Action.SUPPRESS, named, mail.headers, returned)
    return []


def _fields_of(mail: Mail) -> Headers | None:
    parts = [one for one in mail.parts if one.type == _FEEDBACK]
    about = "feedback-report" in mail.headers.get("content-type").lower()
    loose = [one for one in mail.parts if about and not one.returned and _TYPE.search(one.text)]
    chosen = next((one for one in (*parts, *loose) if one.text.strip()), None)
    if chosen is None:
        return None
    return read_headers(chosen.text)


def _kind(feedback: str) -> tuple[Kind, Action]:
    word = feedback.split(";")[0].strip()
    if word in _OPT_OUT:
        return Kind.UNSUBSCRIBE, Action.SUPPRESS
    if word in _NO_COMPLAINT or word.startswith("auth"):
        return Kind.OTHER, Action.NONE
    return Kind.COMPLAINT, Action.SUPPRESS


def _reports(
    kind: Kind, action: Action, named: list[str], fields: Headers, returned: Headers
) -> list[Report]:
    found = dict.fromkeys(map(address_in, named[:_RECIPIENTS]))
    found.pop(None, None)
    addresses = [*found] or [address_in(returned.get("to"))]
    text = " ".join(filter(None, (fields.get("feedback-type"), fields.get("user-agent"))))
    return [Report(kind, action, kind.value, address=address, text=text) for address in addresses]

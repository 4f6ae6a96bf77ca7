"""What came back about a delivery, told in sentences."""

from collections.abc import Iterable

from app.feedback.models import KeptReport, ReportState
from app.feedback.report import Kind
from app.mail import verdict

BOUNCED = {
    ReportState.SUPPRESSED: "so the address is not mailed any more",
    ReportState.COUNTED: "which counts: three issues on end over a week or more would end it",
    ReportState.NOTED: "which says nothing against the address",
    ReportState.WAITING: "which waits to be acted on",
}
SENTENCES = {
    Kind.COMPLAINT: "On {when} they called it spam, so the address is not mailed any more.",
    Kind.UNSUBSCRIBE: "On {when} they left by way of it.",
    Kind.DELIVERED: "Their provider took it, as reported on {when}.",
    Kind.AUTO_REPLY: "On {when} a machine answered it.",
}
WHEN = "%Y-%m-%d at %H:%M:%S UTC"


def told(reports: Iterable[KeptReport]) -> list[str]:
    """Return a sentence for each report that says something, in their order."""
    return [sentence for one in reports if (sentence := _told(one))]


def _told(one: KeptReport) -> str:
    when = (one.happened_at or one.received_at).strftime(WHEN)
    if one.kind != Kind.BOUNCE:
        return SENTENCES.get(Kind(one.kind), "").format(when=when)
    said = f": “{one.text}”" if one.text else ""
    meaning = verdict.table().meanings.get(one.meaning, "").rstrip(".")
    meant = f" ({meaning[:1].lower()}{meaning[1:]})" if meaning else ""
    follows = BOUNCED.get(ReportState(one.state), "and nothing followed")
    return f"On {when} it came back{said}{meant}, {follows}."

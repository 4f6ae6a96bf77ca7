"""What an editor should know of a text before sending it; nothing here refuses."""

from collections.abc import Sequence
from datetime import date

from app.core.errors import Fault
from app.issues.document import Document


def look_over(document: Document, label: str, labels: Sequence[str], day: date) -> list[Fault]:
    """Return warnings on a text that is to be the issue of the edition called `label` on `day`."""
    findings = [
        Fault(f"The title says {other}, and this is the edition {label}.", line=1)
        for other in labels
        if other != label and other in document.title and label not in document.title
    ]
    latest = document.latest_date
    if latest is not None and latest > day:
        findings.append(Fault(f"The text mentions {latest}, which is after its own date {day}."))
    return findings

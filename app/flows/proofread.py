"""An issue is read once more before it goes: each of its texts as readers would get it."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.core.errors import Fault, Invalid
from app.delivery import mailings
from app.flows.compose import MANAGE, UNSUBSCRIBE, Composer
from app.flows.proof import pull
from app.issues import preflight, sources, store


async def look(session: AsyncSession, composer: Composer, issue_id: int) -> dict[str, list[dict[str, Any]]]:
    """Return the `errors` that block a send and the `warnings`, each with its language and a line or a part."""
    issue = await store.issue(session, issue_id)
    await store.text(session, issue, None)
    edition = await store.edition_of(session, issue)
    labels = [one.label for one in await store.editions(session)]
    found: dict[str, list[dict[str, Any]]] = {"errors": [], "warnings": []}
    for text in await store.texts(session, issue_id):
        document = sources.parse(text.source, text.format)
        made = (await pull(session, composer, issue, text)).rendition
        parts = preflight.Parts(text.subject, made.html, made.text)
        warnings = preflight.look_over(document, edition.label, labels, issue.date)
        warnings += preflight.warnings_of(parts)
        errors = preflight.errors_of(document, parts, (MANAGE, UNSUBSCRIBE))
        found["errors"] += [_shown(text.language, fault) for fault in errors]
        found["warnings"] += [_shown(text.language, fault) for fault in warnings]
    return found


async def require_fit(session: AsyncSession, composer: Composer, issue_id: int) -> None:
    """Raise Invalid when an issue that is not on its way yet has errors."""
    mailing = await mailings.of_issue(session, issue_id)
    if mailing is not None and mailing.cutoff is not None:
        return
    if errors := (await look(session, composer, issue_id))["errors"]:
        faults = [Fault(one["message"], one["line"], one["part"]) for one in errors]
        raise Invalid("Preflight found errors; mend them, or send with `force`.", faults)


def _shown(language: str, fault: Fault) -> dict[str, Any]:
    return {"language": language, "line": fault.line, "part": fault.field, "message": fault.message}

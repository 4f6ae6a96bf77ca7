"""An issue is read once more before it goes: each of its texts as readers would get it."""

import asyncio
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.core.errors import Fault, Invalid
from app.delivery import mailings
from app.flows import references
from app.flows.compose import MANAGE, SAMPLE_ADDRESS, UNSUBSCRIBE, Composer, Reader
from app.flows.proof import Proof, pull
from app.issues import preflight, sources, store
from app.issues.document import Document
from app.issues.models import Edition, Issue, IssueText

PAST = 7  # issues that a new one is compared with


async def look(
    session: AsyncSession, composer: Composer, issue_id: int, now: datetime
) -> dict[str, list[dict[str, Any]]]:
    """Return the `errors` that block a send and the `warnings`, each with its language and a line or a part."""
    issue = await store.issue(session, issue_id)
    await store.text(session, issue, None)
    edition = await store.edition_of(session, issue)
    found: dict[str, list[dict[str, Any]]] = {"errors": [], "warnings": []}
    for text in await store.texts(session, issue_id):
        document = await asyncio.to_thread(sources.parse, text.source, text.format)
        around = await surroundings(session, issue, edition, text.language, document)
        proof = await pull(session, composer, issue, text)
        try:
            parts = await asyncio.to_thread(_parts, composer, issue, proof, now)
        except ValueError as error:  # a sender or a name that no message can carry
            fault = Fault(
                f"The mail cannot be written: {error}. Correct the edition's sender.", field="message"
            )
            found["errors"].append(_shown(text.language, fault))
            continue
        errors = await asyncio.to_thread(preflight.errors_of, document, parts, (MANAGE, UNSUBSCRIBE))
        warnings = preflight.look_over(document, around) + preflight.warnings_of(parts, around)
        found["errors"] += [_shown(text.language, fault) for fault in errors]
        found["warnings"] += [_shown(text.language, fault) for fault in warnings]
    return found


async def require_fit(session: AsyncSession, composer: Composer, issue_id: int, now: datetime) -> None:
    """Raise Invalid when an issue that is not on its way yet has errors."""
    mailing = await mailings.of_issue(session, issue_id)
    if mailing is not None and mailing.cutoff is not None:
        return
    if errors := (await look(session, composer, issue_id, now))["errors"]:
        faults = [Fault(one["message"], one["line"], one["part"]) for one in errors]
        raise Invalid("Preflight found errors; mend them, or send with `force`.", faults)


async def surroundings(
    session: AsyncSession, issue: Issue, edition: Edition, language: str, document: Document
) -> preflight.Surroundings:
    """Return what a text is compared with: the editions, the last issues in its language, the archive."""
    labels = [one.label for one in await store.editions(session)]
    pages = await references.pages_of(session, document)
    missing = [named for named in document.cross_references if named not in pages]
    before = await store.texts_before(session, issue, language, PAST)
    past = await asyncio.to_thread(_all_past, before)
    return preflight.Surroundings(edition.label, labels, issue.date, past, missing)


def _all_past(before: list[tuple[Issue, IssueText]]) -> list[preflight.Past]:
    return [_past(issue, text, sources.parse(text.source, text.format)) for issue, text in before]


def _past(issue: Issue, text: IssueText, document: Document) -> preflight.Past:
    used = frozenset(url for item in document.items for url in item.sources)
    return preflight.Past(issue.date, text.subject, document.period, used)


def _parts(composer: Composer, issue: Issue, proof: Proof, now: datetime) -> preflight.Parts:
    made, moment = proof.rendition, proof.moment or now
    press = composer.press(proof.edition, issue.id or 0, issue.date, proof.language, moment, made)
    message = composer.issue_message(press, Reader(0, SAMPLE_ADDRESS)).message
    return preflight.Parts(made.subject, made.html, made.text, message)


def _shown(language: str, fault: Fault) -> dict[str, Any]:
    return {"language": language, "line": fault.line, "part": fault.field, "message": fault.message}

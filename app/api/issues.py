"""Hand in an issue, look at it, test it, send it, and learn why somebody did not get it."""

from datetime import date
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import ValidationError
from sqlmodel import col, select

from app.api.issue_shapes import Findings, HandedIn, IssueChange, IssueView, NewIssue, TestOrder
from app.api.once import OnceOnly
from app.api.shapes import AddressOrder, MailingView, Page, Queued, SendOrder, Why
from app.core.errors import Fault, Invalid, Unsupported
from app.edge import Editor, Id, InHouse, Reading, Writing, editor, following, read_cursor
from app.editors import audit
from app.flows import account, manuscript, proofread, publish
from app.flows.why import why
from app.issues import cadence, store
from app.issues.models import Issue

router = APIRouter(prefix="/issues", tags=["issues"], dependencies=[Depends(editor)])

FORMATS = {"text/plain": "text", "text/markdown": "markdown"}
BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "text/plain": {"schema": {"type": "string"}, "example": "技术日报\n本期重点：…。\n…"},
            "text/markdown": {
                "schema": {"type": "string"},
                "example": "# 技术日报\n\n本期**重点**：…。\n\n## …",
            },
            "application/json": {"schema": {"$ref": "#/components/schemas/NewIssue"}},
        },
    }
}
PARTS = {
    "text/html": {"schema": {"type": "string"}, "example": "<!DOCTYPE html>…"},
    "text/plain": {"schema": {"type": "string"}, "example": "技术日报\n…"},
    "message/rfc822": {"schema": {"type": "string"}, "example": "From: …\r\n…"},
}


@router.post("", status_code=201, response_model=HandedIn, openapi_extra=BODY)
async def hand_in(
    request: Request,
    once: OnceOnly,
    edition: Annotated[str | None, Query(max_length=32)] = None,
    date: date | None = None,
    language: Annotated[str | None, Query(max_length=8)] = None,
) -> Response:
    """Hand in a text as the issue of an edition and a date: plain or Markdown with both in the query, or JSON."""
    media_type = request.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    if media_type == "application/json":
        given = _parsed(once.body)
        edition, date = given.edition, given.date
        given_text = manuscript.Manuscript(given.source, given.format, given.language, given.subject)
    elif media_type in FORMATS:
        given_text = manuscript.Manuscript(once.body, FORMATS[media_type], language)
    else:
        raise Unsupported(
            "Send the text as text/plain or text/markdown, or as application/json with a `source`."
        )
    if edition is None or date is None:
        missing = [
            Fault("missing", field=name)
            for name, value in (("edition", edition), ("date", date))
            if not value
        ]
        raise Invalid("Say which issue this is: ?edition=daily&date=2026-10-26.", missing)
    slug, day = edition, date

    async def effect() -> dict[str, Any]:
        issue, of, text = await manuscript.hand_in(once.session, slug, day, given_text, once.now)
        audit.note(once.session, once.holder.name, "hand in", f"issue {issue.id}", once.now)
        return await account.handed_in(once.session, issue, of, text)

    return await once.answer(effect, 201)


@router.get("", response_model=Page[IssueView])
async def list_issues(
    session: Reading, cursor: str | None = None, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> dict[str, Any]:
    """List the issues in the order in which they were handed in."""
    which = select(Issue).where(col(Issue.id) > read_cursor(cursor)).order_by(col(Issue.id)).limit(limit + 1)
    rows = list((await session.scalars(which)).all())
    items = [await account.issue(session, one) for one in rows[:limit]]
    return {"items": items, "next": following([one.id or 0 for one in rows], limit)}


@router.get("/{issue_id}", response_model=IssueView)
async def show(session: Reading, issue_id: Id) -> dict[str, Any]:
    """Show an issue with its texts."""
    return await account.issue(session, await store.issue(session, issue_id))


@router.patch("/{issue_id}", response_model=HandedIn)
async def amend(
    session: Writing, at: InHouse, holder: Editor, issue_id: Id, change: IssueChange
) -> dict[str, Any]:
    """Change subject or text of an issue whose mailing has not started."""
    issue, edition, text = await manuscript.amend(session, issue_id, manuscript.Change(**change.model_dump()))
    audit.note(session, holder.name, "amend", f"issue {issue_id}", at.now())
    return await account.handed_in(session, issue, edition, text)


@router.delete("/{issue_id}", status_code=204)
async def remove(session: Writing, at: InHouse, holder: Editor, issue_id: Id) -> None:
    """Delete a draft."""
    await manuscript.discard(session, issue_id)
    audit.note(session, holder.name, "delete", f"issue {issue_id}", at.now())


@router.get(
    "/{issue_id}/preview",
    response_class=Response,
    responses={200: {"content": PARTS}},
)
async def preview(
    session: Reading,
    at: InHouse,
    issue_id: Id,
    part: Literal["html", "text", "headers", "message"] = "html",
    language: Annotated[str | None, Query(max_length=8)] = None,
) -> Response:
    """Return a part of exactly what a reader gets, with a sample reader's links."""
    issue = await store.issue(session, issue_id)
    media_type, body = await account.preview(session, at.composer, issue, part, language, at.now())
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src https:; sandbox"
    return Response(body, media_type=media_type, headers={"Content-Security-Policy": policy})


@router.get("/{issue_id}/preflight", response_model=Findings)
async def preflight(session: Reading, at: InHouse, issue_id: Id) -> dict[str, Any]:
    """Say what is wrong with the issue as readers would get it, and what is worth a look."""
    return await proofread.look(session, at.composer, issue_id, at.now())


@router.post("/{issue_id}/test", status_code=202, response_model=Queued)
async def test(once: OnceOnly, at: InHouse, issue_id: Id, order: TestOrder) -> Response:
    """Send a test to any address, outside the books; 20 an hour."""

    async def effect() -> dict[str, Any]:
        await manuscript.owe_tests(once.session, at.composer, issue_id, order.to, once.now)
        audit.note(once.session, once.holder.name, "test", f"issue {issue_id}", once.now)
        return {"queued": order.to}

    return await once.answer(effect, 202)


@router.post("/{issue_id}/copy", status_code=202, response_model=Queued)
async def copy(once: OnceOnly, at: InHouse, issue_id: Id, order: AddressOrder) -> Response:
    """Send the issue once more to one reader who lost it, outside the books."""

    async def effect() -> dict[str, Any]:
        to = await manuscript.copy_for(once.session, at.composer, issue_id, order.address, once.now)
        audit.note(once.session, once.holder.name, "copy", f"issue {issue_id}", once.now)
        return {"queued": [to]}

    return await once.answer(effect, 202)


@router.post(
    "/{issue_id}/send", status_code=202, response_model=MailingView, responses={200: {"model": MailingView}}
)
async def send(
    session: Writing,
    at: InHouse,
    holder: Editor,
    response: Response,
    issue_id: Id,
    order: SendOrder | None = None,
) -> dict[str, Any]:
    """Owe the issue to its readers, now or at a time; again, it is the same mailing (200)."""
    order, now = order or SendOrder(), at.now()
    wanted = publish.Order(cadence.moment(order.at, order.tz), order.max_lateness, order.on_uncertain)
    if not order.force:
        await proofread.require_fit(session, at.composer, issue_id, now)
    mailing, is_new = await publish.send(session, issue_id, wanted, now)
    if is_new:
        audit.note(session, holder.name, "send", f"issue {issue_id}", now)
    else:
        response.status_code = 200
    return await account.mailing(session, mailing, now)


@router.post("/{issue_id}/why", response_model=Why)
async def ask_why(session: Reading, at: InHouse, issue_id: Id, order: AddressOrder) -> dict[str, Any]:
    """Say whether somebody got the issue, when and by which relay, or which rule left them out."""
    return await why(session, at.settings, await store.issue(session, issue_id), order.address, at.now())


def _parsed(body: bytes) -> NewIssue:
    try:
        return NewIssue.model_validate_json(body)
    except ValidationError as error:
        faults = [
            Fault(each["msg"], field=".".join(map(str, each["loc"])) or None)
            for each in error.errors(include_url=False, include_input=False)
        ]
        raise Invalid("The JSON does not describe an issue; `errors` names the fields.", faults) from None

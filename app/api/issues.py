"""Hand in an issue, look at it, test it, send it."""

from datetime import date
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import ValidationError
from sqlmodel import col, select

from app.api.shapes import (
    HandedIn,
    IssueChange,
    IssueView,
    MailingView,
    NewIssue,
    Page,
    SendOrder,
    TestOrder,
)
from app.core.errors import Fault, Invalid, Unsupported
from app.edge import InHouse, Reading, Writing, cursor_after, editor, read_cursor
from app.flows import account, publish
from app.issues import cadence, store
from app.issues.models import Issue

router = APIRouter(prefix="/issues", tags=["issues"], dependencies=[Depends(editor)])

FORMATS = {"text/plain": "text"}


@router.post("", status_code=201, response_model=HandedIn)
async def hand_in(
    request: Request,
    session: Writing,
    at: InHouse,
    edition: Annotated[str | None, Query(max_length=32)] = None,
    date: date | None = None,
    language: Annotated[str | None, Query(max_length=8)] = None,
) -> dict[str, Any]:
    """Hand in a text as the issue of an edition and a date."""
    body = await request.body()
    media_type = request.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    if media_type == "application/json":
        given = _parsed(body)
    elif media_type in FORMATS:
        if edition is None or date is None:
            raise Invalid("Say which issue this is: ?edition=daily&date=2026-10-26.")
        manuscript = publish.Manuscript(body, FORMATS[media_type], language)
        return await _kept(session, at, edition, date, manuscript)
    else:
        raise Unsupported("Send the text as text/plain, or as application/json with a `source`.")
    manuscript = publish.Manuscript(given.source, given.format, given.language, given.subject)
    return await _kept(session, at, given.edition, given.date, manuscript)


@router.get("", response_model=Page[IssueView])
async def list_issues(
    session: Reading, cursor: str | None = None, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> dict[str, Any]:
    """List the issues in the order in which they were handed in."""
    which = select(Issue).where(col(Issue.id) > read_cursor(cursor)).order_by(col(Issue.id)).limit(limit + 1)
    rows = list((await session.scalars(which)).all())
    items = [await account.issue(session, one) for one in rows[:limit]]
    return {"items": items, "next": cursor_after(rows[limit - 1].id or 0) if len(rows) > limit else None}


@router.get("/{issue_id}", response_model=IssueView)
async def show(session: Reading, issue_id: int) -> dict[str, Any]:
    """Show an issue with its texts."""
    return await account.issue(session, await store.issue(session, issue_id))


@router.patch("/{issue_id}", response_model=HandedIn)
async def amend(session: Writing, issue_id: int, change: IssueChange) -> dict[str, Any]:
    """Change subject or text of an issue whose mailing has not started."""
    issue, edition, text = await publish.amend(
        session, issue_id, change.language, change.subject, change.source
    )
    return await account.handed_in(session, issue, edition, text)


@router.delete("/{issue_id}", status_code=204)
async def remove(session: Writing, issue_id: int) -> None:
    """Delete a draft."""
    await publish.discard(session, issue_id)


@router.get("/{issue_id}/preview", response_class=Response)
async def preview(
    session: Reading,
    at: InHouse,
    issue_id: int,
    part: Literal["html", "text", "headers", "message"] = "html",
    language: str | None = None,
) -> Response:
    """Return a part of exactly what a reader gets, with a sample reader's links."""
    issue = await store.issue(session, issue_id)
    media_type, body = await account.preview(session, at.composer, issue, part, language, at.now())
    policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    return Response(body, media_type=media_type, headers={"Content-Security-Policy": policy})


@router.post("/{issue_id}/test", status_code=202)
async def test(session: Writing, at: InHouse, issue_id: int, order: TestOrder) -> dict[str, Any]:
    """Send a test to any address, outside the books."""
    await publish.owe_tests(session, at.composer, issue_id, order.to, at.now())
    return {"queued": order.to}


@router.post("/{issue_id}/send", status_code=202, response_model=MailingView)
async def send(
    session: Writing, at: InHouse, response: Response, issue_id: int, order: SendOrder | None = None
) -> dict[str, Any]:
    """Owe the issue to its readers, now or at a time; again, it is the same mailing."""
    order = order or SendOrder()
    now = at.now()
    wanted = publish.Order(cadence.moment(order.at, order.tz), order.max_lateness, order.on_uncertain)
    mailing, is_new = await publish.send(session, issue_id, wanted, now)
    if not is_new:
        response.status_code = 200
    return await account.mailing(session, mailing, now)


def _parsed(body: bytes) -> NewIssue:
    try:
        return NewIssue.model_validate_json(body)
    except ValidationError as error:
        faults = [
            Fault(each["msg"], field=".".join(map(str, each["loc"])))
            for each in error.errors(include_url=False, include_input=False)
        ]
        raise Invalid("The JSON does not describe an issue.", faults) from None


async def _kept(
    session: Writing, at: InHouse, edition: str, day: date, manuscript: publish.Manuscript
) -> dict[str, Any]:
    issue, of, text = await publish.hand_in(session, edition, day, manuscript, at.now())
    return await account.handed_in(session, issue, of, text)

"""What comes back: providers' webhooks, returned mail from an MTA, and the reports and numbers made of them."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request

from app.api.report_shapes import Handed, Numbers, ReportDetail, ReportView, Taken
from app.api.shapes import Page
from app.core.errors import Fault, Invalid
from app.edge import Id, InHouse, Reading, editor, following, inbound, read_cursor
from app.feedback import store
from app.feedback.models import ReportState
from app.feedback.report import Kind
from app.flows import numbers, returns

router = APIRouter(prefix="/hooks", tags=["hooks"])
reports_router = APIRouter(prefix="/reports", tags=["reports"], dependencies=[Depends(editor)])
numbers_router = APIRouter(prefix="/numbers", tags=["numbers"], dependencies=[Depends(editor)])

MAIL = {
    "requestBody": {
        "required": True,
        "content": {
            "application/octet-stream": {
                "schema": {"type": "string", "format": "binary"},
                "example": "Return-Path: <>\r\nSubject: …",
            }
        },
    }
}
CALL = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {}, "example": {"event": "hard_bounce", "email": "…"}}},
    }
}
Limit = Annotated[int, Query(ge=1, le=200)]


@router.post("/mail", status_code=202, response_model=Handed, dependencies=[Depends(inbound)],
             openapi_extra=MAIL)  # fmt: skip
async def hand_in_mail(
    at: InHouse, request: Request, to: Annotated[str | None, Query(max_length=320)] = None
) -> dict[str, Any]:
    """Take a returned mail as it came; `to` is the address that it was delivered to."""
    raw = await request.body()
    if not raw.strip():
        sentence = "The body is empty; send the returned mail as it came."
        raise Invalid(sentence, [Fault(sentence)])
    found = await returns.take_mail(at.db, raw, to, at.now())
    at.wake.call()
    return {"kinds": [one.kind for one in found]}


@router.post("/{provider}", response_model=Taken, openapi_extra=CALL)
async def call_in(at: InHouse, request: Request, provider: str) -> dict[str, Any]:
    """Take a provider's webhook: its signature or login is the key; twice is harmless."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    call = (provider, headers, await request.body())
    new = await returns.take_call(at.db, at.settings, at.documents, call, at.now())
    at.wake.call()
    return {"reports": new}


@reports_router.get("", response_model=Page[ReportView])
async def list_reports(
    session: Reading,
    state: ReportState | None = None,
    kind: Kind | None = None,
    cursor: str | None = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """List what came back, all or that in one state or of one kind."""
    rows = await store.page(session, read_cursor(cursor), limit + 1, state, kind)
    return {"items": list(rows[:limit]), "next": following([one.id or 0 for one in rows], limit)}


@reports_router.get("/{report_id}", response_model=ReportDetail)
async def show_report(session: Reading, report_id: Id) -> dict[str, Any]:
    """Show a report, and the mail or the call it came from while that is kept."""
    return await numbers.detail(session, await store.get(session, report_id))


@numbers_router.get("", response_model=Numbers)
async def show_numbers(
    session: Reading, at: InHouse, days: Annotated[int, Query(ge=1, le=365)] = 30
) -> dict[str, Any]:
    """Count what came back of the mailings of the last days, by edition and by mailbox provider."""
    return await numbers.lately(session, days, at.now())

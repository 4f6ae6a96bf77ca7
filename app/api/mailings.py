"""A mailing's progress, who got it, and the few things an editor may do to it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.encoders import jsonable_encoder
from fastapi.responses import StreamingResponse
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col, select

from app.api.shapes import DeliveryView, MailingView, Page, Reconciled, TimeOrder
from app.delivery import mailings
from app.delivery.models import Mailing, MailingState, State
from app.edge import Editor, House, Id, InHouse, Reading, Writing, editor, following, read_cursor
from app.editors import audit, keys
from app.flows import account, publish
from app.flows import why as telling
from app.issues import cadence

router = APIRouter(prefix="/mailings", tags=["mailings"], dependencies=[Depends(editor)])

OVER = (MailingState.FINISHED, MailingState.CANCELLED)
LOOK = 1.0  # seconds between two looks at a mailing that is watched
Limit = Annotated[int, Query(ge=1, le=200)]


@router.get("", response_model=Page[MailingView])
async def list_mailings(
    session: Reading, at: InHouse, cursor: str | None = None, limit: Limit = 50
) -> dict[str, Any]:
    """List the mailings in the order in which they were made."""
    after = read_cursor(cursor)
    which = select(Mailing).where(col(Mailing.id) > after).order_by(col(Mailing.id)).limit(limit + 1)
    rows = list((await session.scalars(which)).all())
    items = [await account.mailing(session, one, at.now()) for one in rows[:limit]]
    return {"items": items, "next": following([one.id or 0 for one in rows], limit)}


@router.get("/{mailing_id}", response_model=MailingView)
async def show(at: InHouse, mailing_id: Id) -> dict[str, Any]:
    """Show how far a mailing is."""
    return await at.db.glance(lambda session: account.progress(session, mailing_id, at.now()))


@router.patch("/{mailing_id}", response_model=MailingView)
async def reschedule(
    session: Writing, at: InHouse, holder: Editor, mailing_id: Id, order: TimeOrder
) -> dict[str, Any]:
    """Give a mailing that has not started another time."""
    changed = await mailings.reschedule(session, mailing_id, cadence.instant(order.at, order.tz))
    audit.note(session, holder.name, "reschedule", f"mailing {mailing_id}", at.now())
    return await account.mailing(session, changed, at.now())


@router.get(
    "/{mailing_id}/events",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"text/event-stream": {"example": 'event: mailing\ndata: {"id": 5, …}\n\n'}}}
    },
)
async def events(session: Reading, at: InHouse, holder: Editor, mailing_id: Id) -> StreamingResponse:
    """Send the mailing as a server-sent event whenever it has changed, until it is over."""
    await mailings.get(session, mailing_id)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    told = _changes(at, mailing_id, holder.id or 0)
    return StreamingResponse(told, media_type="text/event-stream", headers=headers)


@router.get("/{mailing_id}/deliveries", response_model=Page[DeliveryView])
async def deliveries(
    session: Reading,
    mailing_id: Id,
    state: State | None = None,
    cursor: str | None = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """List who is owed the issue and what became of it, all or those in one state."""
    await mailings.get(session, mailing_id)
    rows = await telling.deliveries(session, mailing_id, state, read_cursor(cursor), limit + 1)
    next_page = following([one["subscriber_id"] for one in rows], limit)
    return {"items": rows[:limit], "next": next_page}


@router.post("/{mailing_id}/reconcile", response_model=Reconciled)
async def reconcile(session: Writing, at: InHouse, holder: Editor, mailing_id: Id) -> dict[str, Any]:
    """Count the rows anew, say each difference from the tallies, and set the tallies right."""
    mailing = await mailings.get(session, mailing_id)
    differences = await account.reconcile(session, mailing, at.now())
    audit.note(session, holder.name, "reconcile", f"mailing {mailing_id}", at.now())
    return {"mailing": await account.mailing(session, mailing, at.now()), "differences": differences}


@router.post("/{mailing_id}/{act}", response_model=MailingView)
async def act(
    session: Writing,
    at: InHouse,
    holder: Editor,
    mailing_id: Id,
    act: Literal["pause", "resume", "cancel", "retry"],
) -> dict[str, Any]:
    """Pause, resume or cancel a mailing, or retry what failed, expired or is uncertain; twice is harmless."""
    changed = await publish.steer(session, mailing_id, act, at.now())
    audit.note(session, holder.name, act, f"mailing {mailing_id}", at.now())
    return await account.mailing(session, changed, at.now())


async def _changes(at: House, mailing_id: int, key_id: int) -> AsyncIterator[str]:
    """Tell each change of a mailing until it is over, the key is revoked, or the program stops."""

    async def look(session: AsyncSession) -> dict[str, Any] | None:
        stands = await keys.stands(session, key_id)
        return await account.progress(session, mailing_id, at.now()) if stands else None

    last = ""
    while not at.stopping.is_set():
        mailing = await at.db.glance(look)
        if mailing is None:
            return
        told = json.dumps(jsonable_encoder(mailing))
        yield f"event: mailing\ndata: {told}\n\n" if told != last else ": no change\n\n"
        if mailing["state"] in OVER:
            return
        last = told
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK):
                await at.stopping.wait()

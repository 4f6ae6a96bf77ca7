"""A mailing's progress, and the few things an editor may do to it."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from sqlmodel import col, select

from app.api.shapes import MailingView, Page
from app.delivery import mailings
from app.delivery.models import Mailing
from app.edge import InHouse, Reading, Writing, cursor_after, editor, read_cursor
from app.flows import account, publish

router = APIRouter(prefix="/mailings", tags=["mailings"], dependencies=[Depends(editor)])


@router.get("", response_model=Page[MailingView])
async def list_mailings(
    session: Reading, at: InHouse, cursor: str | None = None, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> dict[str, Any]:
    """List the mailings in the order in which they were made."""
    after = read_cursor(cursor)
    which = select(Mailing).where(col(Mailing.id) > after).order_by(col(Mailing.id)).limit(limit + 1)
    rows = list((await session.scalars(which)).all())
    items = [await account.mailing(session, one, at.now()) for one in rows[:limit]]
    return {"items": items, "next": cursor_after(rows[limit - 1].id or 0) if len(rows) > limit else None}


@router.get("/{mailing_id}", response_model=MailingView)
async def show(session: Reading, at: InHouse, mailing_id: int) -> dict[str, Any]:
    """Show how far a mailing is."""
    return await account.mailing(session, await mailings.get(session, mailing_id), at.now())


@router.post("/{mailing_id}/{act}", response_model=MailingView)
async def act(
    session: Writing, at: InHouse, mailing_id: int, act: Literal["pause", "resume", "cancel"]
) -> dict[str, Any]:
    """Pause, resume or cancel a mailing; doing it twice is harmless."""
    now = at.now()
    if act == "pause":
        changed = await mailings.pause(session, mailing_id, "paused by an editor")
    elif act == "resume":
        changed = await mailings.resume(session, mailing_id, now)
    else:
        changed = await publish.cancel(session, mailing_id, now)
    return await account.mailing(session, changed, now)

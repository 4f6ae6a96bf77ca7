"""Readers, as editors may see, add, change, export and erase them."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import StreamingResponse

from app.api.reader_shapes import NewSubscriber, SubscriberChange, SubscriberPage, SubscriberView
from app.edge import Editor, InHouse, Reading, Writing, editor, following, read_cursor
from app.editors import audit
from app.flows import erase, exports, readers, subscribe
from app.issues import store as issues
from app.subscribers import store
from app.subscribers.store import Origin

router = APIRouter(prefix="/subscribers", tags=["subscribers"], dependencies=[Depends(editor)])

State = Literal["pending", "active", "paused", "ended"]
Id = Annotated[int, Path(ge=1, le=2**31 - 1)]
Slug = Annotated[str | None, Query(max_length=32)]


@router.get("", response_model=SubscriberPage)
async def list_subscribers(
    session: Reading,
    q: Annotated[str, Query(max_length=320)] = "",
    state: State | None = None,
    edition: Slug = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> dict[str, Any]:
    """List readers: those whose address holds `q`, in a state, of an edition; `counts` are of all readers."""
    edition_id = (await issues.edition(session, edition)).id if edition else None
    rows = await store.page(session, read_cursor(cursor), limit + 1, q, state, edition_id)
    return {
        "items": await readers.view(session, rows[:limit]),
        "next": following([one.id or 0 for one in rows], limit),
        "counts": await store.totals(session),
    }


@router.post("", status_code=201, response_model=SubscriberView)
async def add(session: Writing, at: InHouse, new: NewSubscriber) -> dict[str, Any]:
    """Add a reader who asked you for it."""
    request = subscribe.Request(new.email, new.editions, new.language, Origin(new.source))
    who = await readers.add(session, at.settings, request, new.name, new.confirm, at.now())
    return (await readers.view(session, [who]))[0]


@router.get("/export", response_class=StreamingResponse)
async def export(
    at: InHouse, holder: Editor, state: State | None = None, edition: Slug = None
) -> StreamingResponse:
    """Return readers as our own CSV, which can be imported again."""
    async with at.db.transaction() as session:
        if edition:
            await issues.edition(session, edition)
        audit.note(session, holder.name, "export", f"{state or 'all'} readers", at.now())
    named = {"Content-Disposition": 'attachment; filename="subscribers.csv"', "Cache-Control": "no-store"}
    return StreamingResponse(exports.write(at.db, state, edition), media_type="text/csv", headers=named)


@router.get("/{subscriber_id}", response_model=SubscriberView)
async def show(session: Reading, subscriber_id: Id) -> dict[str, Any]:
    """Show a reader."""
    return (await readers.view(session, [await store.get(session, subscriber_id)]))[0]


@router.patch("/{subscriber_id}", response_model=SubscriberView)
async def change(
    session: Writing, at: InHouse, holder: Editor, subscriber_id: Id, change: SubscriberChange
) -> dict[str, Any]:
    """Change what a reader asked you to change; no editions at all is leaving."""
    wanted: Any = change.model_dump(exclude_unset=True)
    origin = Origin(f"editor:{holder.name}"[:120])
    who = await readers.change(session, subscriber_id, wanted, origin, at.now())
    return (await readers.view(session, [who]))[0]


@router.delete("/{subscriber_id}", status_code=204)
async def remove(session: Writing, at: InHouse, holder: Editor, subscriber_id: Id) -> None:
    """Erase a reader: everything goes but a keyed hash, by which a file cannot bring them back."""
    await erase.erase(session, subscriber_id, at.now())
    audit.note(session, holder.name, "erase", f"subscriber {subscriber_id}", at.now())

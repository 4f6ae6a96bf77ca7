"""Readers, as editors may see and add them; and the editions they choose from."""

import tempfile
from io import TextIOWrapper
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request

from app.api.shapes import EditionView, ImportOrder, NewSubscriber, Page, SubscriberView
from app.edge import InHouse, Reading, Writing, cursor_after, editor, read_cursor
from app.flows import imports, readers, subscribe
from app.issues import store as issues
from app.subscribers import store
from app.subscribers.imports import csv
from app.subscribers.store import Origin

router = APIRouter(prefix="/subscribers", tags=["subscribers"], dependencies=[Depends(editor)])
editions = APIRouter(prefix="/editions", tags=["editions"], dependencies=[Depends(editor)])

SPOOLED = 1_000_000  # bytes of an upload kept in memory; the rest waits in a file


@router.get("", response_model=Page[SubscriberView])
async def list_subscribers(
    session: Reading,
    q: Annotated[str, Query(max_length=320)] = "",
    state: Literal["pending", "active", "paused", "ended"] | None = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> dict[str, Any]:
    """List readers, or those whose address holds `q`."""
    rows = await store.page(session, read_cursor(cursor), limit + 1, q, state)
    items = await readers.view(session, rows[:limit])
    return {"items": items, "next": cursor_after(rows[limit - 1].id or 0) if len(rows) > limit else None}


@router.post("", status_code=201, response_model=SubscriberView)
async def add(session: Writing, at: InHouse, new: NewSubscriber) -> dict[str, Any]:
    """Add a reader who asked you for it."""
    request = subscribe.Request(new.email, new.editions, new.language, Origin(new.source))
    who = await readers.add(session, at.settings, request, new.name, new.confirm, at.now())
    return (await readers.view(session, [who]))[0]


@router.post("/import")
async def import_readers(
    request: Request, at: InHouse, how: Annotated[ImportOrder, Query()]
) -> dict[str, Any]:
    """Take readers from a CSV in the body; every row that is not taken comes back by line."""
    slugs = how.editions.replace(",", " ").split()
    plan = imports.Plan(how.source, slugs, confirm=how.confirm, update=how.update, dry_run=how.dry_run)
    with tempfile.SpooledTemporaryFile(max_size=SPOOLED) as spool:
        async for chunk in request.stream():
            spool.write(chunk)
        spool.seek(0)
        with TextIOWrapper(spool, encoding="utf-8-sig", newline="") as lines:
            report = await imports.run(at.db, at.settings, csv.read(lines), plan, at.now())
    at.wake.call()
    return {
        "counts": report.counts,
        "rows": [{"line": fault.line, "problem": fault.message} for fault in report.faults],
    }


@editions.get("", response_model=list[EditionView])
async def list_editions(session: Reading) -> list[Any]:
    """List the editions."""
    return list(await issues.editions(session))

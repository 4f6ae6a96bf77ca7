"""Files of readers: hand one in, and see how far it is."""

import asyncio
import hashlib
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from app.api.reader_shapes import ImportOrder, ImportView, imported
from app.core.errors import Invalid
from app.edge import Editor, House, InHouse, Reading, cursor_after, editor, read_cursor
from app.editors import answers, audit
from app.editors.models import ApiKey
from app.flows import imports
from app.subscribers.imports.candidate import Unreadable

router = APIRouter(tags=["imports"], dependencies=[Depends(editor)])

SPOOLED = 1_000_000  # bytes of an upload kept in memory; the rest waits in a file
SHOWN = 1_000  # rows that are shown at once
UNREADABLE: dict[str, Any] = {
    "description": Unreadable.title,
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


@router.post(
    "/subscribers/import",
    status_code=202,
    response_model=ImportView,
    openapi_extra={
        "requestBody": {"required": True, "content": {"text/csv": {"schema": {"type": "string"}}}}
    },
)
async def import_readers(
    request: Request, response: Response, at: InHouse, holder: Editor, how: Annotated[ImportOrder, Query()]
) -> dict[str, Any]:
    """Take readers from a CSV in the body: the first 2,000 rows at once, the others by a worker.

    A dry run changes nothing and answers when it has seen all rows.
    """
    slugs = tuple(how.editions.replace(",", " ").split())
    plan = imports.Plan(how.source, slugs, how.language, how.confirm, how.update, how.dry_run)
    async with _received(request) as (file, digest):
        laid = await asyncio.to_thread(imports.lay_down, at.settings, file)
    job_id, is_new = await _begun(request, at, holder, _Handed(laid, plan, how.name, digest))
    if is_new:
        while await imports.step(at.db, at.settings, job_id, at.now()) and how.dry_run:
            pass
        at.wake.call()
    else:
        response.headers["Idempotency-Replayed"] = "true"
    async with at.db.reading() as session:
        return imported(await imports.view(session, job_id, limit=SHOWN), cursor_after)


@router.get("/imports/{import_id}", response_model=ImportView)
async def show(
    session: Reading,
    import_id: Annotated[int, Path(ge=1, le=2**31 - 1)],
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=SHOWN)] = 200,
) -> dict[str, Any]:
    """Show how far a file is, and a page of the rows that were not taken."""
    return imported(await imports.view(session, import_id, read_cursor(cursor), limit), cursor_after)


class _Handed:
    """A file that was handed in, how it is to be taken, and its SHA-256."""

    def __init__(self, laid: imports.Laid, plan: imports.Plan, name: str, digest: bytes) -> None:
        self.laid, self.plan, self.name, self.digest = laid, plan, name, digest


@asynccontextmanager
async def _received(request: Request) -> AsyncIterator[tuple[BinaryIO, bytes]]:
    """Give the body as a file, and its SHA-256; its memory is a megabyte, whatever comes."""
    digest = hashlib.sha256()
    with tempfile.SpooledTemporaryFile(max_size=SPOOLED) as spool:
        async for chunk in request.stream():
            digest.update(chunk)
            spool.write(chunk)
        spool.seek(0)
        yield spool, digest.digest()  # type: ignore[misc]


async def _begun(request: Request, at: House, holder: ApiKey, handed: _Handed) -> tuple[int, bool]:
    """Make the job, or find the one that the same call with the same Idempotency-Key made before."""
    key = request.headers.get("idempotency-key")
    if key is not None and not 1 <= len(key) <= 200:
        raise Invalid("An Idempotency-Key has 1 to 200 characters.")
    try:
        async with at.db.transaction() as session:
            given, is_known = None, False
            if key is not None:
                scope = f"{holder.id} {request.method} {request.url.path} {key}"
                asked = request.url.query.encode() + b"\0" + handed.digest
                given, is_known = await answers.find(session, scope, asked, at.now())
            if given is not None and is_known:
                imports.discard(handed.laid)
                return int(json.loads(given.body)["id"]), False
            job = await imports.begin(session, handed.laid, handed.plan, handed.name, at.now())
            if given is not None:
                given.status, given.body = 202, json.dumps({"id": job.id})
            audit.note(session, holder.name, "import", f"import {job.id}", at.now())
            return job.id or 0, True
    except BaseException:
        imports.discard(handed.laid)
        raise

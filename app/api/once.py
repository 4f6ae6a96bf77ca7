"""A call that may come again: with an Idempotency-Key its effect happens once, and its answer is repeated."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Header, Request
from fastapi.encoders import jsonable_encoder
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.responses import JSONResponse, Response

from app.edge import Editor, InHouse, Writing
from app.editors import answers
from app.editors.models import ApiKey


@dataclass(frozen=True, slots=True)
class Once:
    """One call that may come again: with an Idempotency-Key its effect happens once, its answer is repeated."""

    request: Request
    key: str | None
    body: bytes
    session: AsyncSession
    holder: ApiKey
    now: datetime

    async def answer(self, effect: Callable[[], Awaitable[dict[str, Any]]], status: int) -> Response:
        """Return the effect's result, or the answer that was given to the same call before."""
        if self.key is None:
            return JSONResponse(jsonable_encoder(await effect()), status)
        scope = f"{self.holder.id} {self.request.method} {self.request.url.path} {self.key}"
        asked = self.request.url.query.encode() + b"\0" + self.body
        given, is_known = await answers.find(self.session, scope, asked, self.now)
        if not is_known:
            given.status, given.body = (
                status,
                json.dumps(jsonable_encoder(await effect()), ensure_ascii=False),
            )
        headers = {"Idempotency-Replayed": "true"} if is_known else None
        return Response(given.body, given.status, media_type="application/json", headers=headers)


async def raw_body(request: Request) -> bytes:
    """Give the whole body as it came."""
    return await request.body()


IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1, max_length=200, description="Whatever comes again with it within a week is done once."
    ),
]


# The body stands before the session: nobody's slow line holds a transaction open.
async def once(
    request: Request,
    holder: Editor,
    body: Annotated[bytes, Depends(raw_body)],
    session: Writing,
    at: InHouse,
    idempotency_key: IdempotencyKey = None,
) -> Once:
    """Give what makes a call happen once."""
    return Once(request, idempotency_key, body, session, holder, at.now())


OnceOnly = Annotated[Once, Depends(once)]

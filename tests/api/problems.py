"""What every refusal of the API must look like (RFC 9457), and doors for keys of other scopes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from app import main
from app.editors import keys
from tests.world import World

TYPES = {
    400: "bad-request", 401: "unauthorized", 403: "forbidden", 404: "not-found", 405: "method-not-allowed",
    409: "conflict", 413: "too-large", 415: "unsupported-media-type", 422: "invalid", 429: "too-many",
    503: "unavailable",
}  # fmt: skip


def problem(answer: httpx.Response, *statuses: int) -> dict[str, Any]:
    """Assert that an answer is a problem with one of these statuses, and return it."""
    assert answer.status_code in statuses, f"{answer.status_code}: {answer.text[:300]}"
    assert answer.headers["content-type"] == "application/problem+json", answer.request.url
    found: dict[str, Any] = answer.json()
    assert set(found) == {"type", "title", "status", "detail", "errors"}
    assert found["status"] == answer.status_code
    assert found["type"] == f"https://broadsheet.example/problems/{TYPES[answer.status_code]}"
    assert found["title"]
    assert found["detail"]
    for fault in found["errors"]:
        assert set(fault) == {"line", "field", "message"}
        assert fault["message"]
    return found


def faults(answer: httpx.Response, status: int = 422) -> dict[str, str]:
    """Return what a refusal says of each field."""
    return {fault["field"]: fault["message"] for fault in problem(answer, status)["errors"]}


@asynccontextmanager
async def holding(world: World, scope: str) -> AsyncIterator[httpx.AsyncClient]:
    """Open the API with a fresh key of a scope; `.headers` has the key."""
    async with world.db.transaction() as session:
        _, key = await keys.create(session, scope, keys.Scope(scope), world.clock())
    transport = httpx.ASGITransport(main.build(world.house), raise_app_exceptions=False)
    headers = {"Authorization": f"Bearer {key}"}
    url = "http://127.0.0.1:8000/api/v1"
    async with httpx.AsyncClient(transport=transport, base_url=url, headers=headers) as client:
        yield client

"""Builds the ASGI application: the pages at the root, the API under /api/v1, and health."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from app.api import issues as api_issues
from app.api import mailings as api_mailings
from app.api import subscribers as api_subscribers
from app.core import schema
from app.core.errors import BroadsheetError, Fault, Invalid, Misconfigured, NotFound
from app.edge import BodyLimit, House, new_error_id, problem
from app.web import archive, pages, preferences, subscribe

IMPORT_LIMIT = 100_000_000  # bytes of CSV by API


def build(house: House) -> FastAPI:
    """Return the application for a house; what it needs is opened and closed by the program."""
    app = FastAPI(title="Broadsheet", openapi_url=None, docs_url=None, redoc_url=None)
    app.state.house = house
    app.add_middleware(BodyLimit, larger={"/api/v1/subscribers/import": IMPORT_LIMIT})
    app.mount("/api/v1", _api(house))
    for router in (subscribe.router, preferences.router, archive.router):
        app.include_router(router)
    app.add_api_route("/healthz", alive, include_in_schema=False)
    app.add_api_route("/readyz", ready, include_in_schema=False)
    app.add_exception_handler(BroadsheetError, _page)
    app.add_exception_handler(RequestValidationError, _page)
    app.add_exception_handler(HTTPException, _page)
    app.add_exception_handler(Exception, _page)
    return app


def _api(house: House) -> FastAPI:
    api = FastAPI(title="Broadsheet", version="1", openapi_url="/openapi.json", docs_url=None, redoc_url=None)
    api.state.house = house
    for router in (api_issues.router, api_mailings.router, api_subscribers.router, api_subscribers.editions):
        api.include_router(router)
    api.add_exception_handler(BroadsheetError, _json)
    api.add_exception_handler(RequestValidationError, _json)
    api.add_exception_handler(HTTPException, _json)
    api.add_exception_handler(Exception, _json)
    return api


async def alive() -> Response:
    """Say that the process answers."""
    return JSONResponse({"status": "alive"})


async def ready(request: Request) -> Response:
    """Say whether the database is there and has this version's schema."""
    house: House = request.app.state.house
    try:
        await schema.require_current(house.db)
    except (BroadsheetError, OSError) as error:
        detail = error.detail if isinstance(error, BroadsheetError) else "the database cannot be reached"
        return JSONResponse({"status": "not ready", "detail": detail}, 503)
    return JSONResponse({"status": "ready", "relays": [url.name for url in house.settings.relay_urls]})


def _json(_request: Request, error: Exception) -> Response:
    body = problem(known) if (known := _known(error)) else None
    if body is None:
        number = new_error_id(error)
        body = {
            "type": "https://broadsheet.example/problems/bug",
            "title": "Something broke on our side",
            "status": 500,
            "detail": f"Nothing was changed. The log has it as {number}.",
            "errors": [],
        }
    return JSONResponse(body, body["status"], media_type="application/problem+json")


def _page(request: Request, error: Exception) -> Response:
    house: House = request.app.state.house
    return pages.failed(house, request, _known(error) or error)


def _known(error: Exception) -> BroadsheetError | None:
    """Return an error as one of ours, or None for a bug."""
    if isinstance(error, RequestValidationError):
        faults = [Fault(each["msg"], field=".".join(map(str, each["loc"][1:]))) for each in error.errors()]
        return Invalid("Some of the values cannot be taken; `errors` names them.", faults)
    if isinstance(error, HTTPException):
        mapped = NotFound("There is no such address here.")
        mapped.status = error.status_code  # type: ignore[misc]
        return mapped
    if isinstance(error, BroadsheetError) and not isinstance(error, Misconfigured):
        return error
    return None

"""Builds the ASGI application: the pages at the root, the API under /api/v1, and health."""

from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import IntegrityError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response

from app.api import hooks, office, openapi
from app.api import imports as api_imports
from app.api import issues as api_issues
from app.api import mailings as api_mailings
from app.api import subscribers as api_subscribers
from app.core.errors import BroadsheetError, Conflict, Fault, Invalid, Misconfigured, NotFound, Unauthorized
from app.edge import BodyLimit, House, NotAllowed, new_error_id, problem, require_current
from app.feedback.providers import PROVIDERS
from app.flows import relays, returns
from app.web import archive, errands, feeds, form, leaving, left, pages, preferences, privacy, subscribe

IMPORT_LIMIT = 100_000_000  # bytes of CSV by API
LARGER = {"/api/v1/subscribers/import": IMPORT_LIMIT} | {
    f"/api/v1/hooks/{name}": returns.LARGEST for name in ("mail", *PROVIDERS)
}


def build(house: House) -> FastAPI:
    """Return the application for a house; what it needs is opened and closed by the program."""
    # A redirect of the framework's would be built from the Host header.
    app = FastAPI(title="Broadsheet", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.house = house
    app.add_middleware(BodyLimit, larger=LARGER)
    app.mount("/api/v1", _api(house))
    for edge in (form, subscribe, preferences, leaving, left, errands, privacy, archive, feeds):
        app.include_router(edge.router)
    app.add_api_route("/healthz", alive, include_in_schema=False)
    app.add_api_route("/readyz", ready, include_in_schema=False)
    app.add_exception_handler(BroadsheetError, _page)
    app.add_exception_handler(RequestValidationError, _page)
    app.add_exception_handler(HTTPException, _page)
    app.add_exception_handler(Exception, _page)
    return app


def _api(house: House) -> FastAPI:
    api = FastAPI(
        title="Broadsheet",
        version="1",
        summary="Hand in an issue, send it, and know who got it.",
        servers=[{"url": f"{house.settings.base_url}/api/v1"}],
        root_path_in_servers=False,
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=openapi.PROBLEMS,
        generate_unique_id_function=lambda route: f"{route.tags[0]}-{route.name}".replace("_", "-"),
    )
    api.openapi = openapi.describing(api)  # type: ignore[method-assign]
    api.state.house = house
    for router in (
        api_issues.router,
        api_mailings.router,
        api_imports.router,
        api_subscribers.router,
        office.editions_router,
        office.suppressions_router,
        office.keys_router,
        office.audit_router,
        hooks.router,
        hooks.reports_router,
        hooks.numbers_router,
    ):
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
    """Say whether the database is there and has this version's schema, and which relays take mail."""
    house: House = request.app.state.house
    try:
        await require_current(house.db)
        states = await relays.states(house.db, house.settings.relay_urls, house.now())
    except (BroadsheetError, OSError) as error:
        detail = error.detail if isinstance(error, BroadsheetError) else "the database cannot be reached"
        return JSONResponse({"status": "not ready", "detail": detail}, 503)
    return JSONResponse({"status": "ready", "relays": states})


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
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    if body["status"] == Unauthorized.status:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(body, body["status"], headers, media_type="application/problem+json")


def _page(request: Request, error: Exception) -> Response:
    house: House = request.app.state.house
    path = request.scope["path"]
    if path.startswith("/api/"):  # what no mount takes, such as a line end in the path
        return _json(request, error)
    if isinstance(error, HTTPException) and error.status_code == 404 and path.endswith("/"):
        # Of the path alone, and with one slash at its front: it never leads to another host.
        return RedirectResponse("/" + quote(path.strip("/")), 308)
    return pages.failed(house, request, _known(error) or error)


def _known(error: Exception) -> BroadsheetError | None:
    """Return an error as one of ours, or None for a bug."""
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        return _refused(error)
    if isinstance(error, IntegrityError) and (_state(error) == "23505" or "UNIQUE" in str(error.orig)):
        return Conflict(
            "Somebody else did the same at this very moment; look again, and repeat it if need be."
        )
    if isinstance(error, BroadsheetError) and not isinstance(error, Misconfigured):
        return error
    return None


def _state(error: IntegrityError) -> str:
    """Return PostgreSQL's five characters for what is wrong, or nothing."""
    return str(getattr(error.orig, "sqlstate", ""))


def _invalid(error: RequestValidationError) -> Invalid:
    faults = error.errors()
    if any(each["type"] == "json_invalid" for each in faults):
        return Invalid("The body is not JSON.", [Fault("not JSON")])
    found = [Fault(each["msg"], field=".".join(map(str, each["loc"][1:])) or None) for each in faults]
    return Invalid("Some of the values cannot be taken; `errors` names them.", found)


def _refused(error: HTTPException) -> BroadsheetError:
    if error.status_code == 404:
        return NotFound("There is no such address here.")
    if error.status_code == 405:
        return NotAllowed(
            f"This address answers to {(error.headers or {}).get('Allow', 'other methods')} only."
        )
    if error.status_code == 400:
        return Invalid("The body cannot be read; is it complete, and in UTF-8?")
    other = BroadsheetError(error.detail)
    other.status = error.status_code  # type: ignore[misc]
    return other

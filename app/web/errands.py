"""What a freshly mailed link opens, for a day: another address, everything we know, erasure."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Form, Request
from fastapi.encoders import jsonable_encoder
from starlette.responses import JSONResponse, Response

from app.core.errors import Conflict, Invalid, NotFound
from app.core.tokens import Purpose
from app.edge import House, InHouse, Reading, Writing
from app.flows import erase, errands
from app.subscribers import addresses, store
from app.subscribers import errands as kept
from app.subscribers.errands import Kind
from app.subscribers.models import Errand, Subscriber
from app.web.origin import origin
from app.web.pages import Pages, headers, page_router, pages

router = page_router()


@dataclass(frozen=True, slots=True)
class Visit:
    """Somebody at the door of an errand: whose it is, and what renders their page."""

    errand: Errand
    who: Subscriber
    shown: Pages
    here: str


@router.get("/e/{token}")
async def show_errand(request: Request, session: Reading, at: InHouse, token: str) -> Response:
    """Show what the link is for, and its button; looking changes nothing."""
    visit = await _visit(session, at, request, token)
    return visit if isinstance(visit, Response) else _page(visit)


@router.post("/e/{token}")
async def do_errand(
    request: Request,
    session: Writing,
    at: InHouse,
    token: str,
    email: Annotated[str, Form(max_length=1000)] = "",
) -> Response:
    """Do what the link is for."""
    visit = await _visit(session, at, request, token)
    if isinstance(visit, Response):
        return visit
    errand, who, shown = visit.errand, visit.who, visit.shown
    match errand.kind:
        case Kind.ADDRESS:
            return await _name_address(session, at, visit, email)
        case Kind.MOVE:
            return await _move(request, session, at, visit)
        case Kind.DATA:
            return await _hand_out(session, at, who)
    await erase.erase(session, who.id or 0, at.now())
    shown.here = "/"
    return shown.note("erased", links=[(shown.say("web.note.front"), shown.link("/"))])


async def _name_address(session: Writing, at: House, visit: Visit, written: str) -> Response:
    try:
        await errands.name_address(session, at.settings, visit.who, written, at.now())
    except Invalid:
        return _page(visit, written, 422)
    return visit.shown.note("named")


async def _move(request: Request, session: Writing, at: House, visit: Visit) -> Response:
    shown, came_from = visit.shown, origin(request, at, "address")
    try:
        await errands.move(session, at.settings, visit.errand, visit.who, came_from, at.now())
    except Conflict:
        return shown.note("taken", 409)
    mine = at.composer.signer.sign(Purpose.PREFERENCES, visit.who.id or 0)
    return shown.go(f"/p/{mine}", "?saved=1")


async def _hand_out(session: Reading, at: House, who: Subscriber) -> Response:
    """Return everything we know as a file of JSON."""
    found = jsonable_encoder(await errands.everything(session, who))
    named = {"Content-Disposition": 'attachment; filename="broadsheet.json"'}
    return JSONResponse(found, headers=headers(at.settings.base_url, private=True) | named)


async def _visit(session: Reading, at: House, request: Request, token: str) -> Visit | Response:
    """Return whose errand a link names, or the page for one that is done or has aged; NotFound for no link of ours."""
    claim = at.composer.signer.read(token, Purpose.ERRAND)
    if claim is None:
        raise NotFound("This link is not complete; open it from the mail once more.")
    errand = await kept.find(session, claim.subscriber_id, at.now())
    who = await store.find(session, errand.subscriber_id) if errand else None
    shown = await pages(session, at, request, who.language if who else None)
    if errand is None or who is None:
        return shown.note("aged", 410)
    return Visit(errand, who, shown, f"{shown.base}/e/{token}{shown.keep}")


def _page(visit: Visit, written: str | None = None, status: int = 200) -> Response:
    shown, kind = visit.shown, visit.errand.kind
    masked = addresses.masked(visit.who.address)
    new = addresses.masked(visit.errand.address) if visit.errand.address else ""
    context = {
        "kind": kind,
        "heading": shown.say(f"web.errand.{kind}.heading"),
        "lead": shown.say(f"web.errand.{kind}.lead", address=masked, new=new),
        "button": shown.say(f"web.errand.{kind}.button"),
        "address": masked,
        "action": visit.here,
        "written": written or "",
        "problem": shown.say("web.errand.bad_address") if written is not None else None,
    }
    return shown.respond("errand.html", context, status, private=True)

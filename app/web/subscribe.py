"""The form, the note to look into one's inbox, and the confirmation."""

import hmac
import ipaddress
from typing import Annotated, Literal

from fastapi import Form as FormBody
from fastapi import Request
from pydantic import BaseModel, Field
from starlette.responses import RedirectResponse, Response

from app.core import tokens
from app.core.errors import Conflict, Invalid, NotFound
from app.core.tokens import Purpose
from app.edge import House, InHouse, Reading, Writing
from app.flows import subscribe
from app.issues import store as issues
from app.subscribers import addresses, store
from app.subscribers.models import Subscriber
from app.subscribers.store import Origin
from app.web.pages import Pages, page_router, pages

router = page_router()

RECENT = 6


@router.get("/")
async def home(request: Request, session: Reading, at: InHouse) -> Response:
    """Show the form and the recent issues."""
    shown = await pages(session, at, request)
    first = [one["slug"] for one in shown.editions[:1]]
    chosen = request.query_params.getlist("edition") or first
    return await _form(session, at, shown, Form(editions=chosen))


class Form(BaseModel):
    """What the form sends; `website` is what only a robot fills in."""

    email: str = ""  # its length is judged with the rest of it
    editions: list[str] = Field(default=[], max_length=50)
    language: str = Field(default="", max_length=8)
    website: str = Field(default="", max_length=1000)


@router.post("/subscribe")
async def ask(request: Request, session: Writing, at: InHouse, form: Annotated[Form, FormBody()]) -> Response:
    """Take a request from the form; the answer is the same for every address that can be mailed."""
    shown = await pages(session, at, request, form.language)
    shown.here = "/"  # where the other language is; nobody can open this address
    if form.website:
        return shown.note("inbox")
    wanted = subscribe.Request(form.email, form.editions, shown.language, origin(request, at, "form"))
    try:
        await subscribe.ask(session, at.settings, wanted, at.now())
    except Invalid as error:
        return await _form(session, at, shown, form, "email" if error.faults else "editions")
    return shown.note("inbox")


@router.get("/c/{token}")
async def show_confirmation(request: Request, session: Reading, at: InHouse, token: str) -> Response:
    """Show the one button; looking changes nothing."""
    who = await _asked(session, at, token)
    shown = await pages(session, at, request, who.language if who else None)
    if who is None:
        return _stale(shown)
    chosen = await store.choices(session, who.id or 0)
    asked = [one for one in shown.editions if one["id"] in chosen]
    context = {"address": addresses.masked(who.address), "asked": asked, "action": "", "refuse_action": None}
    return shown.respond("confirm.html", context, private=True)


@router.post("/c/{token}")
async def confirm(request: Request, session: Writing, at: InHouse, token: str) -> Response:
    """Make the reader active and show their preferences."""
    who = await _asked(session, at, token)
    shown = await pages(session, at, request, who.language if who else None)
    if who is None:
        return _stale(shown)
    try:
        await subscribe.confirm(session, who.id or 0, origin(request, at, who.source), at.now())
    except Conflict:
        return _stale(shown, 409)
    token = at.composer.signer.sign(Purpose.PREFERENCES, who.id or 0)
    return RedirectResponse(f"{at.settings.base_url}/p/{token}?saved=1{shown.keep.replace('?', '&')}", 303)


async def reader_of(session: Reading, at: House, token: str, purpose: Purpose) -> tuple[Subscriber, int]:
    """Return whose token this is and its scope; raise NotFound for one that is not ours."""
    claim = at.composer.signer.read(token, purpose)
    if claim is None:
        raise NotFound("This link is not complete; open it from the mail once more.")
    return await store.get(session, claim.subscriber_id), claim.scope


def origin(request: Request, at: House, source: str) -> Origin:
    """Return where a request came from: the source, and the keyed hash of the network (/24 or /64)."""
    return Origin(source, network_hash(request.client.host if request.client else "", at))


def network_hash(host: str, at: House) -> bytes | None:
    """Return the keyed hash (32 bytes) of the network that an address is in, or None where there is none."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    network = ipaddress.ip_network(f"{address}/{24 if address.version == 4 else 64}", strict=False)
    return hmac.digest(at.settings.suppression_key.encode(), f"network:{network}".encode(), "sha256")


async def _asked(session: Reading, at: House, token: str) -> Subscriber | None:
    """Return who may confirm by this token, or None when it has aged."""
    claim = at.composer.signer.read(token, Purpose.CONFIRM)
    if claim is None:
        raise NotFound("This link is not complete; open it from the mail once more.")
    if tokens.is_stale(claim, at.now()):
        return None
    return await store.get(session, claim.subscriber_id)


def _stale(shown: Pages, status: int = 410) -> Response:
    front = f"{shown.house.settings.base_url}/{shown.keep}"
    return shown.note("stale", status, [(shown.say("web.note.front"), front)])


async def _form(
    session: Reading, at: House, shown: Pages, form: Form, faulty: Literal["email", "editions"] | None = None
) -> Response:
    by_id = {one["id"]: one for one in shown.editions}
    recent = [
        {
            "date": issue.date,
            "edition": by_id[edition.id],
            "title": subject,
            "url": f"{at.settings.base_url}/archive/{edition.slug}/{issue.date}{shown.keep}",
        }
        for issue, edition, subject in await issues.published(session, limit=RECENT)
    ]
    problems = {"email": "web.form.bad_address", "editions": "web.form.choose"}
    context = {
        "values": {"email": form.email, "editions": form.editions},
        "problem": shown.say(problems[faulty]) if faulty else None,
        "problem_field": faulty or "email",
        "recent": recent,
    }
    return shown.respond("home.html", context, 422 if faulty else 200)

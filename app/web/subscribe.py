"""What the confirmation letter leads to: yes, “it was not me”, and a new link where the old one has aged."""

from fastapi import Request
from starlette.responses import Response

from app.core import tokens
from app.core.errors import Conflict, NotFound
from app.core.tokens import Claim, Purpose
from app.edge import House, InHouse, Reading, Writing
from app.flows import subscribe
from app.subscribers import addresses, store
from app.subscribers.consent import State
from app.subscribers.models import Subscriber
from app.web.origin import origin
from app.web.pages import Pages, page_router, pages

router = page_router()


@router.get("/c/{token}")
async def show_confirmation(request: Request, session: Reading, at: InHouse, token: str) -> Response:
    """Show the two buttons; looking changes nothing."""
    who = await _asked(session, at, token)
    shown = await pages(session, at, request, who.language if who else None)
    if who is None:
        return _stale(shown, token)
    chosen = await store.choices(session, who.id or 0)
    here = f"{shown.base}/c/{token}"
    context = {
        "address": addresses.masked(who.address),
        "asked": [one for one in shown.editions if one["id"] in chosen],
        "action": here + shown.keep,
        "refuse_action": f"{here}/refuse{shown.keep}" if who.state == State.PENDING else None,
    }
    return shown.respond("confirm.html", context, private=True)


@router.post("/c/{token}")
async def confirm(request: Request, session: Writing, at: InHouse, token: str) -> Response:
    """Make the reader active and show their preferences."""
    who = await _asked(session, at, token)
    shown = await pages(session, at, request, who.language if who else None)
    if who is None:
        return _stale(shown, token)
    try:
        await subscribe.confirm(session, who.id or 0, origin(request, at, who.source), at.now())
    except Conflict:
        return _stale(shown, token, 409)
    mine = at.composer.signer.sign(Purpose.PREFERENCES, who.id or 0)
    return shown.go(f"/p/{mine}", "?saved=1")


@router.post("/c/{token}/refuse")
async def refuse(request: Request, session: Writing, at: InHouse, token: str) -> Response:
    """Believe whoever opened the letter that it was not them."""
    who = await _asked(session, at, token)
    shown = await _pages(session, at, request, who)
    if who is None:
        return _stale(shown, token)
    try:
        await subscribe.refuse(session, who, origin(request, at, "refused"), at.now())
    except Conflict:
        return _stale(shown, token, 409)
    return shown.note("refused")


@router.post("/c/{token}/again")
async def again(request: Request, session: Writing, at: InHouse, token: str) -> Response:
    """Send a new link where the old one has aged; the answer is the same, whatever became of the request."""
    claim = _claim(at, token)
    who = await store.find(session, claim.subscriber_id)
    shown = await _pages(session, at, request, who)
    if who is not None:
        await subscribe.ask_again(session, at.settings, who, at.now())
    return shown.note("inbox")


async def reader_of(session: Reading, at: House, token: str, purpose: Purpose) -> tuple[Subscriber, int]:
    """Return whose token this is and its scope; raise NotFound for one that is not ours."""
    claim = at.composer.signer.read(token, purpose)
    if claim is None:
        raise NotFound("This link is not complete; open it from the mail once more.")
    return await store.get(session, claim.subscriber_id), claim.scope


def _claim(at: House, token: str) -> Claim:
    claim = at.composer.signer.read(token, Purpose.CONFIRM)
    if claim is None:
        raise NotFound("This link is not complete; open it from the mail once more.")
    return claim


async def _asked(session: Reading, at: House, token: str) -> Subscriber | None:
    """Return who may confirm by this token, or None when it has aged or they are gone."""
    claim = _claim(at, token)
    return None if tokens.is_stale(claim, at.now()) else await store.find(session, claim.subscriber_id)


async def _pages(session: Writing, at: House, request: Request, who: Subscriber | None) -> Pages:
    """Return what renders a page of an address that nobody can open: in the other language, its parent is."""
    shown = await pages(session, at, request, who.language if who else None)
    shown.here = shown.here.rpartition("/")[0]
    return shown


def _stale(shown: Pages, token: str, status: int = 410) -> Response:
    anew = [(shown.say("web.note.stale.button"), f"{shown.base}/c/{token}/again{shown.keep}")]
    front = [(shown.say("web.note.front"), shown.link("/"))]
    return shown.note("stale", status, front, anew if status == 410 else ())

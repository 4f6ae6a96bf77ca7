"""The way out of one edition, for a person and for a mail program, with a slower edition and a pause beside it."""

from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from app.core.errors import Conflict, NotFound
from app.core.tokens import Purpose
from app.edge import InHouse, Reading, Writing
from app.flows import second_thoughts, subscribe
from app.issues import store as issues
from app.subscribers import addresses, store
from app.subscribers.consent import State
from app.web import left, preferences
from app.web.origin import origin
from app.web.pages import Pages, page_router, pages
from app.web.subscribe import reader_of

router = page_router()


@router.get("/u/{token}")
async def show_unsubscribe(request: Request, session: Reading, at: InHouse, token: str) -> Response:
    """Show the button that stops the edition this mail was of; looking changes nothing."""
    who, edition_id = await reader_of(session, at, token, Purpose.UNSUBSCRIBE)
    shown = await pages(session, at, request, who.language)
    edition = _edition(shown, edition_id)
    chosen = await store.choices(session, who.id or 0)
    if edition_id not in chosen:
        return await left.page(session, shown, who, f"/u/{token}", edition_id)
    others = [
        one for one in shown.editions if one["id"] not in chosen and one["language"] == edition["language"]
    ]
    here = f"{shown.base}/u/{token}"
    instead = f"{here}?instead={others[0]['slug']}{shown.keep.replace('?', '&')}" if others else None
    context = {
        "edition": edition,
        "address": addresses.masked(who.address),
        "action": here + shown.keep,
        "alternative": others[0] if others else None,
        "alternative_action": instead,
        "pause_action": f"{here}/pause{shown.keep}" if who.state == State.ACTIVE else None,
        "preferences_url": at.composer.link(Purpose.PREFERENCES, who.id or 0) + shown.keep,
    }
    return shown.respond("unsubscribe.html", context, private=True)


@router.post("/u/{token}")
async def unsubscribe(
    request: Request,
    session: Writing,
    at: InHouse,
    token: str,
    instead: Annotated[str | None, Query(max_length=32)] = None,
) -> Response:
    """Stop the edition at once, for a person or a mail program (RFC 8058 §3.2): 200, no redirect, twice is fine."""
    who, edition_id = await reader_of(session, at, token, Purpose.UNSUBSCRIBE)
    shown = await pages(session, at, request, who.language)
    came_from = origin(request, at, "unsubscribe")
    if instead is not None:
        other = await issues.edition(session, instead)
        try:
            await subscribe.switch(session, who, edition_id, other.id or 0, came_from, at.now())
        except Conflict:
            return left.gone(shown)
        return shown.note("switched", edition=other.name)
    await subscribe.leave(session, who, edition_id, came_from, at.now())
    return await left.page(session, shown, who, f"/u/{token}", edition_id)


@router.post("/u/{token}/pause")
async def pause(request: Request, session: Writing, at: InHouse, token: str) -> Response:
    """Send nothing for a month instead of leaving."""
    who, _ = await reader_of(session, at, token, Purpose.UNSUBSCRIBE)
    shown = await left.parent(session, at, request, who)
    until = at.now() + preferences.PAUSES["month"]
    try:
        await second_thoughts.pause(session, who, until, origin(request, at, "unsubscribe"), at.now())
    except Conflict:
        return left.gone(shown)
    mine = at.composer.link(Purpose.PREFERENCES, who.id or 0) + shown.keep
    return shown.note(
        "paused", links=[(shown.say("web.unsubscribe.preferences"), mine)], day=shown.day(until)
    )


def _edition(shown: Pages, edition_id: int) -> dict[str, Any]:
    for one in shown.editions:
        if one["id"] == edition_id:
            return one
    raise NotFound("This edition is no more.")

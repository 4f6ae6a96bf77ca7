"""What a reader gets, and how they leave: the pages behind the links of every mail, and the one-click POST."""

from typing import Annotated, Any

from fastapi import Form, Query, Request
from starlette.responses import RedirectResponse, Response

from app.core import i18n
from app.core.errors import Conflict, NotFound
from app.core.tokens import Purpose
from app.edge import InHouse, Reading, Writing
from app.flows import subscribe
from app.issues import store as issues
from app.subscribers import addresses, store
from app.subscribers.consent import State
from app.subscribers.models import Subscriber
from app.web.pages import Pages, page_router, pages
from app.web.subscribe import origin, reader_of

router = page_router()


@router.get("/p/{token}")
async def show_preferences(
    request: Request, session: Reading, at: InHouse, token: str, saved: bool = False
) -> Response:
    """Show what a reader gets."""
    who, _ = await reader_of(session, at, token, Purpose.PREFERENCES)
    shown = await pages(session, at, request, who.language)
    if who.state not in (State.ACTIVE, State.PAUSED):
        return _gone(shown, 200)
    chosen = await store.choices(session, who.id or 0)
    context = {
        "address": addresses.masked(who.address),
        "action": f"{at.settings.base_url}/p/{token}{shown.keep}",
        "leave_action": f"{at.settings.base_url}/p/{token}/leave{shown.keep}",
        "values": {
            "editions": [one["slug"] for one in shown.editions if one["id"] in chosen],
            "language": who.language,
        },
        "saved": saved,
    }
    return shown.respond("preferences.html", context, private=True)


@router.post("/p/{token}")
async def change(
    request: Request,
    session: Writing,
    at: InHouse,
    token: str,
    editions: Annotated[list[str], Form()] = [],  # noqa: B006 (FastAPI copies it)
    language: Annotated[str, Form(max_length=8)] = "",
) -> Response:
    """Give the reader the editions they ticked; none is leaving."""
    who, _ = await reader_of(session, at, token, Purpose.PREFERENCES)
    if (
        not language
    ):  # our form always sends it: without, this is no choice, and must not be taken for leaving
        return (await pages(session, at, request, who.language)).note("wrong", 422)
    chosen_language = language if language in i18n.LANGUAGES else who.language
    came_from = origin(request, at, "preferences")
    shown = await pages(session, at, request, chosen_language)
    changes_language = chosen_language != who.language
    try:
        await subscribe.change(session, who, editions, chosen_language, came_from, at.now())
    except Conflict:
        return _gone(shown)
    if not editions:
        return _left(shown, who, None)
    # The page goes on in the language of its address, unless it is the language that they have just changed.
    keep = "" if changes_language else shown.keep.replace("?", "&")
    return RedirectResponse(f"{at.settings.base_url}/p/{token}?saved=1{keep}", 303)


@router.post("/p/{token}/leave")
async def leave_all(request: Request, session: Writing, at: InHouse, token: str) -> Response:
    """Stop everything."""
    who, _ = await reader_of(session, at, token, Purpose.PREFERENCES)
    await subscribe.leave(session, who, None, origin(request, at, "preferences"), at.now())
    shown = await pages(session, at, request, who.language)
    shown.here = shown.here.removesuffix("/leave")  # which nobody can open: in the other language, this is
    return _left(shown, who, None)


@router.get("/u/{token}")
async def show_unsubscribe(request: Request, session: Reading, at: InHouse, token: str) -> Response:
    """Show the button that stops the edition this mail was of; looking changes nothing."""
    who, edition_id = await reader_of(session, at, token, Purpose.UNSUBSCRIBE)
    shown = await pages(session, at, request, who.language)
    edition = _edition(shown, edition_id)
    chosen = await store.choices(session, who.id or 0)
    if edition_id not in chosen:
        return _left(shown, who, edition)
    others = [
        one for one in shown.editions if one["id"] not in chosen and one["language"] == edition["language"]
    ]
    here = f"{at.settings.base_url}/u/{token}"
    preferences = at.composer.link(Purpose.PREFERENCES, who.id or 0)
    context = {
        "edition": edition,
        "address": addresses.masked(who.address),
        "action": here,
        "alternative": others[0] if others else None,
        "alternative_action": f"{here}?instead={others[0]['slug']}" if others else None,
        "preferences_url": preferences + shown.keep,
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
            return _gone(shown)
        return shown.note("switched", edition=other.name)
    await subscribe.leave(session, who, edition_id, came_from, at.now())
    return _left(shown, who, _edition(shown, edition_id))


def _gone(shown: Pages, status: int = 409) -> Response:
    return shown.note("gone", status, _front(shown.house.settings.base_url, shown))


def _left(shown: Pages, who: Subscriber, edition: dict[str, Any] | None) -> Response:
    links = _front(shown.house.settings.base_url, shown)
    if edition is not None and who.state in (State.ACTIVE, State.PAUSED):
        return shown.note("left_one", edition=edition["name"])
    return shown.note("left", links=links)


def _front(base_url: str, shown: Pages) -> list[tuple[str, str]]:
    return [(shown.say("web.note.front"), f"{base_url}/{shown.keep}")]


def _edition(shown: Pages, edition_id: int) -> dict[str, Any]:
    for one in shown.editions:
        if one["id"] == edition_id:
            return one
    raise NotFound("This edition is no more.")

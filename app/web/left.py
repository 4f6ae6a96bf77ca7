"""The page after leaving, whichever link led there: what has stopped, an undo for a day, and why."""

from typing import Annotated, Literal

from fastapi import Form, Request
from starlette.responses import Response

from app.core.errors import Conflict
from app.core.tokens import Purpose
from app.edge import House, InHouse, Reading, Writing
from app.flows import second_thoughts
from app.subscribers import addresses
from app.subscribers.consent import State
from app.subscribers.models import Subscriber
from app.web.origin import origin
from app.web.pages import Pages, page_router, pages
from app.web.subscribe import reader_of

router = page_router()

Door = Literal["p", "u"]
PURPOSES: dict[Door, Purpose] = {"p": Purpose.PREFERENCES, "u": Purpose.UNSUBSCRIBE}


@router.post("/{door}/{token}/undo")
async def undo(request: Request, session: Writing, at: InHouse, door: Door, token: str) -> Response:
    """Take the last leaving back, and say what comes again."""
    who, _ = await reader_of(session, at, token, PURPOSES[door])
    shown = await parent(session, at, request, who)
    try:
        await second_thoughts.undo(session, who, origin(request, at, "undo"), at.now())
    except Conflict:
        return gone(shown)
    mine = at.composer.signer.sign(Purpose.PREFERENCES, who.id or 0)
    return shown.go(f"/p/{mine}", "?saved=1")


@router.post("/{door}/{token}/why")
async def say_why(
    request: Request,
    session: Writing,
    at: InHouse,
    door: Door,
    token: str,
    reason: Annotated[str, Form(max_length=16)],
) -> Response:
    """Keep why a reader left."""
    who, edition_id = await reader_of(session, at, token, PURPOSES[door])
    await second_thoughts.say_why(session, who, reason, at.now())
    shown = await parent(session, at, request, who)
    return await page(session, shown, who, f"/{door}/{token}", edition_id, thanked=True)


async def page(
    session: Reading, shown: Pages, who: Subscriber, here: str, edition_id: int = 0, thanked: bool = False
) -> Response:
    """Return the page; `here` is the link that led to it, and `edition_id` the edition that this link is of, or 0."""
    undoable = await second_thoughts.undoable(session, who, shown.house.now())
    titles = [one.name for one in undoable] or [
        one["name"] for one in shown.editions if one["id"] == edition_id
    ]
    names = shown.say("mail.joiner").join(shown.say("mail.title", name=title) for title in titles)
    key = "left_one" if who.state in (State.ACTIVE, State.PAUSED) else "left"
    context = {
        "heading": shown.say(f"web.note.{key}.heading", editions=names),
        "lead": shown.say(f"web.note.{key}.text", editions=names),
        "address": addresses.masked(who.address),
        "undo_action": f"{shown.base}{here}/undo{shown.keep}" if undoable else None,
        "why_action": f"{shown.base}{here}/why{shown.keep}" if undoable and not thanked else None,
        "reasons": [(reason, shown.say(f"web.left.{reason}")) for reason in second_thoughts.REASONS],
        "thanked": thanked,
        "front_url": shown.link("/"),
    }
    return shown.respond("left.html", context, private=True)


def gone(shown: Pages, status: int = 409) -> Response:
    """Return the page for somebody who is no reader."""
    return shown.note("gone", status, [(shown.say("web.note.front"), shown.link("/"))])


async def parent(session: Reading, at: House, request: Request, who: Subscriber) -> Pages:
    """Return what renders the answer of an address that nobody can open: in the other language, its parent is."""
    shown = await pages(session, at, request, who.language)
    shown.here = shown.here.rpartition("/")[0]
    return shown

"""What a reader gets and how: editions, days, hour, language, a pause; and the way to all that takes a mailed link."""

from datetime import date, datetime, time, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from fastapi import Form, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from app.core import i18n
from app.core.errors import Conflict, Invalid
from app.core.tokens import Purpose
from app.edge import InHouse, Reading, Writing
from app.flows import errands, second_thoughts, subscribe
from app.subscribers import addresses, store
from app.subscribers.consent import State
from app.subscribers.errands import Kind
from app.subscribers.models import Subscriber
from app.web import left, zones
from app.web.origin import origin
from app.web.pages import Pages, page_router, pages
from app.web.subscribe import reader_of

router = page_router()

PAUSES = {"week": timedelta(days=7), "month": timedelta(days=30)}
MAILED = {"address": Kind.ADDRESS, "data": Kind.DATA, "erase": Kind.ERASE}


class Choices(BaseModel):
    """What the page sends: `hour` is empty for “as soon as it is out”, `pause` is one of the words of the page."""

    editions: list[str] = Field(default=[], max_length=50)
    language: str = Field(default="", max_length=8)
    weekdays_only: bool = False
    hour: str = Field(default="", max_length=2)
    timezone: str = Field(default="", max_length=64)
    pause: str = Field(default="keep", max_length=8)
    until: str = Field(default="", max_length=10)


@router.get("/p/{token}")
async def show_preferences(
    request: Request, session: Reading, at: InHouse, token: str, saved: bool = False
) -> Response:
    """Show what a reader gets."""
    who, _ = await reader_of(session, at, token, Purpose.PREFERENCES)
    shown = await pages(session, at, request, who.language)
    if who.state not in (State.ACTIVE, State.PAUSED):
        return left.gone(shown, 200)
    return await _page(session, shown, who, token, saved=saved)


@router.post("/p/{token}")
async def change(
    request: Request, session: Writing, at: InHouse, token: str, form: Annotated[Choices, Form()]
) -> Response:
    """Give the reader what they ticked; no edition at all is leaving."""
    who, _ = await reader_of(session, at, token, Purpose.PREFERENCES)
    # Our form always sends the language: without it this is no choice, and must not be taken for leaving.
    if not form.language:
        return (await pages(session, at, request, who.language)).note("wrong", 422)
    language = form.language if form.language in i18n.LANGUAGES else who.language
    changes_language = language != who.language
    came_from = origin(request, at, "preferences")
    shown = await pages(session, at, request, language)
    try:
        end = _end_of_pause(form, who, at.now())
    except Invalid:
        return await _page(session, shown, who, token, problem="pause")
    try:
        await subscribe.change(session, who, form.editions, language, came_from, at.now())
        if not form.editions:
            return await left.page(session, shown, who, f"/p/{token}")
        await subscribe.suit(session, who, _taste(form))
        if end is not None:
            await second_thoughts.pause(session, who, end, came_from, at.now())
        elif form.pause == "none":
            await second_thoughts.resume(session, who, came_from, at.now())
    except Conflict:
        return left.gone(shown)
    if changes_language:  # the page goes on in the language that they have just chosen
        return shown.go_plainly(f"/p/{token}?saved=1")
    return shown.go(f"/p/{token}", "?saved=1")


@router.post("/p/{token}/leave")
async def leave_all(request: Request, session: Writing, at: InHouse, token: str) -> Response:
    """Stop everything."""
    who, _ = await reader_of(session, at, token, Purpose.PREFERENCES)
    await subscribe.leave(session, who, None, origin(request, at, "preferences"), at.now())
    return await left.page(session, await left.parent(session, at, request, who), who, f"/p/{token}")


@router.post("/p/{token}/mail")
async def mail_link(
    request: Request, session: Writing, at: InHouse, token: str, errand: Annotated[str, Form(max_length=8)]
) -> Response:
    """Mail a reader the link for what only the owner of the mailbox may do."""
    who, _ = await reader_of(session, at, token, Purpose.PREFERENCES)
    shown = await left.parent(session, at, request, who)
    if who.state not in (State.ACTIVE, State.PAUSED):
        return left.gone(shown)
    if errand not in MAILED:
        return shown.note("wrong", 422)
    await errands.mail(session, who, MAILED[errand], at.now())
    back = [(shown.say("web.note.back"), shown.link(f"/p/{token}"))]
    return shown.note("mailed", links=back, address=addresses.masked(who.address))


def _taste(form: Choices) -> subscribe.Taste:
    hour = int(form.hour) if form.hour.isdecimal() and int(form.hour) < 24 else None
    return subscribe.Taste(form.weekdays_only, hour, form.timezone if zones.is_known(form.timezone) else None)


def _end_of_pause(form: Choices, who: Subscriber, now: datetime) -> datetime | None:
    """Return when a pause that the form asks for ends: as a day begins, where the reader is. Raises Invalid."""
    there = now.astimezone(
        ZoneInfo(form.timezone if zones.is_known(form.timezone) else who.timezone or "UTC")
    )
    if form.pause in PAUSES:
        return datetime.combine((there + PAUSES[form.pause]).date(), time(), there.tzinfo)
    if form.pause != "until" and not form.until:
        return None
    try:
        end = datetime.combine(date.fromisoformat(form.until), time(), there.tzinfo)
    except ValueError:
        raise Invalid("A pause ends on a day such as 2026-11-30.") from None
    second_thoughts.check_pause(end, now)
    return end


async def _page(
    session: Reading,
    shown: Pages,
    who: Subscriber,
    token: str,
    problem: str = "",
    saved: bool = False,
) -> Response:
    now = shown.house.now()
    chosen = await store.choices(session, who.id or 0)
    mine = [one for one in shown.editions if one["id"] in chosen]
    zone = who.timezone or next((one["timezone"] for one in mine), "UTC")
    here = f"{shown.base}/p/{token}"
    context: dict[str, Any] = {
        "address": addresses.masked(who.address),
        "action": here + shown.keep,
        "leave_action": f"{here}/leave{shown.keep}",
        "mail_action": f"{here}/mail{shown.keep}",
        "values": {
            "editions": [one["slug"] for one in mine],
            "language": who.language,
            "weekdays_only": who.weekdays_only,
            "hour": who.hour,
            "timezone": zone,
        },
        "zones": zones.choices(shown.language, now, zone),
        "paused_until": who.paused_until.astimezone(ZoneInfo(zone)).date() if who.paused_until else None,
        "is_paused": who.state == State.PAUSED,
        "earliest": (now + timedelta(days=1)).date(),
        "latest": (now + second_thoughts.LONGEST_PAUSE - timedelta(days=2)).date(),
        "saved": saved,
        "problem": shown.say(f"web.preferences.bad_{problem}") if problem else None,
    }
    return shown.respond("preferences.html", context, 422 if problem else 200, private=True)

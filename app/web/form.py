"""The form: on the front page, framed in another site, or as a plain snippet there; and what it says to each."""

from collections.abc import Sequence
from datetime import timedelta
from enum import Enum
from typing import Annotated, Any

from fastapi import Form as FormBody
from fastapi import Request
from pydantic import BaseModel, Field
from sqlalchemy import Connection
from starlette.responses import Response

from app.core.errors import Invalid
from app.edge import House, InHouse, Reading
from app.flows import asking, subscribe
from app.issues import store as issues
from app.subscribers import addresses, typos
from app.web import pages as page
from app.web.origin import origin
from app.web.pages import Pages, page_router, pages

router = page_router()

RECENT = 6
STAMP_LIFE = timedelta(hours=24)
PROBLEMS = {"email": "web.form.bad_address", "editions": "web.form.choose"}


class Fate(Enum):
    """What becomes of a request from the form; where a field is at fault, the value is its name."""

    KEPT = "kept"
    DOUBTED = "doubted"
    ONCE_MORE = "once more"
    BAD_ADDRESS = "email"
    NO_EDITION = "editions"


class Form(BaseModel):
    """What the form sends; `website` is what only a robot fills in, `stamp` says when the page was made."""

    email: str = ""  # its length is judged with the rest of it
    editions: list[str] = Field(default=[], max_length=50)
    language: str = Field(default="", max_length=8)
    website: str = Field(default="", max_length=1000)
    stamp: str = Field(default="", max_length=100)
    sure: bool = False  # the address is right, however it looks


@router.get("/")
async def home(request: Request, session: Reading, at: InHouse) -> Response:
    """Show the form and the recent issues."""
    shown = await pages(session, at, request)
    return shown.respond("home.html", await _context(session, at, shown, _blank(request, shown)))


@router.get("/embed")
async def embed(request: Request, session: Reading, at: InHouse) -> Response:
    """Show the form alone, for a frame on any other site."""
    shown = await pages(session, at, request)
    response = shown.respond("embed.html", await _context(session, at, shown, _blank(request, shown)))
    return page.framed(response, at.settings.base_url)


@router.get("/embed/code")
async def code(request: Request, session: Reading, at: InHouse) -> Response:
    """Show what to paste into another site: the frame, or the plain form."""
    shown = await pages(session, at, request)
    context = {"home_url": at.settings.base_url, "chosen": [one["slug"] for one in shown.editions[:1]]}
    return shown.respond("embed_code.html", context)


@router.post("/subscribe")
async def ask(request: Request, at: InHouse, form: Annotated[Form, FormBody()]) -> Response:
    """Take a request from the form; the answer is the same for every address that can be mailed."""
    shown, fate = await at.db.together(lambda connection: _take(connection, request, at, form))
    if fate is Fate.KEPT:
        at.wake.call()
        return shown.note("inbox")
    if fate is Fate.DOUBTED:
        return _ask_back(at, shown, form)
    async with at.db.reading() as session:
        if fate is Fate.ONCE_MORE:
            context = await _context(session, at, shown, form, notice="web.form.once_more")
            return shown.respond("home.html", context)
        return shown.respond("home.html", await _context(session, at, shown, form, fate.value), 422)


def _take(connection: Connection, request: Request, at: House, form: Form) -> tuple[Pages, Fate]:
    """Keep a request that a person may have meant; return what renders the answer, and which it is."""
    language = page.language_of(request, form.language)
    shown = Pages(at, request, issues.on_offer(connection), language, at.now().date())
    shown.here = "/"  # where the other language is; nobody can open this address
    if form.website:
        return shown, Fate.KEPT  # as far as the robot can tell
    known = {one["slug"] for one in shown.editions}
    wanted = subscribe.Request(form.email, form.editions, shown.language, origin(request, at, "form"))
    try:
        address = addresses.accept(form.email)
    except Invalid:
        return shown, Fate.BAD_ADDRESS
    if not form.editions or not known.issuperset(form.editions):
        return shown, Fate.NO_EDITION
    if not form.sure and typos.suggestion(address.typed) is not None:
        return shown, Fate.DOUBTED
    if not _is_from_a_page(at, form):
        return shown, Fate.ONCE_MORE
    asking.take(connection, at.settings, wanted, address, at.now())
    return shown, Fate.KEPT


def _blank(request: Request, shown: Pages) -> Form:
    first = [one["slug"] for one in shown.editions[:1]]
    return Form(editions=request.query_params.getlist("edition") or first)


def _is_from_a_page(at: House, form: Form) -> bool:
    """Tell whether the form comes from a page of ours of today, and took longer than a robot would."""
    age = at.composer.signer.age(form.stamp, at.now())
    return age is not None and timedelta(seconds=at.settings.form_seconds) <= age < STAMP_LIFE


def _ask_back(at: House, shown: Pages, form: Form) -> Response:
    """Return the question whether another address was meant, since this one looks like a slip of the finger."""
    meant = typos.suggestion(form.email.strip())
    context = {"meant": meant, "form": form, "stamp": _stamp(at, form), "action": f"{shown.base}/subscribe"}
    return shown.respond("meant.html", context, private=True)


def _stamp(at: House, form: Form) -> str:
    """Return the stamp for the next try: the same while it is good, so that nobody waits twice."""
    age = at.composer.signer.age(form.stamp, at.now())
    is_good = age is not None and timedelta() <= age < STAMP_LIFE
    return form.stamp if is_good else at.composer.signer.stamp(at.now())


async def _context(
    session: Reading,
    at: House,
    shown: Pages,
    form: Form,
    faulty: str | None = None,
    notice: str | None = None,
) -> dict[str, Any]:
    return {
        "values": {"email": form.email, "editions": form.editions, "sure": form.sure},
        "problem": shown.say(PROBLEMS[faulty]) if faulty else None,
        "problem_field": faulty or "email",
        "notice": shown.say(notice) if notice else None,
        "stamp": _stamp(at, form),
        "recent": await _recent(session, shown),
    }


async def _recent(session: Reading, shown: Pages) -> Sequence[dict[str, Any]]:
    by_id = {one["id"]: one for one in shown.editions}
    return [
        {
            "date": issue.date,
            "edition": by_id[edition.id],
            "title": subject,
            "url": f"{shown.base}/archive/{edition.slug}/{issue.date}{shown.keep}",
        }
        for issue, edition, subject in await issues.published(session, limit=RECENT)
    ]

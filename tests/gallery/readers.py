"""Readers at every page that they can come to: where it is, and what they press to see it."""

from dataclasses import dataclass
from datetime import datetime

from app.core.tokens import Purpose, day_number
from app.flows import readers, subscribe
from app.subscribers import errands
from app.subscribers.errands import Kind
from app.subscribers.store import Origin
from tests.world import World

Steps = tuple[
    tuple[str, str], ...
]  # selector and what to write there; nothing is written into what is pressed
NAMES = {
    "join": ("form", "meant", "thanks", "confirm", "stale"),
    "keep": ("preferences", "mailed", "address", "move", "data", "erase", "aged"),
    "leave": ("unsubscribe", "left", "why"),
    "about": ("archive", "missing", "privacy", "embed", "code"),
}


@dataclass(frozen=True, slots=True)
class Visit:
    """A page by its path, and the steps from there to what is looked at."""

    path: str
    steps: Steps = ()


async def visits(world: World) -> dict[str, Visit]:
    """Make the readers, and return every page of theirs by its name."""
    who = {
        name: await _reader(world, name, confirm=name == "asked")
        for name in ("stays", "asked", "leaves", "wants")
    }
    now, sign = world.clock(), world.house.composer.signer.sign
    confirm, daily = day_number(now), 1
    left = f"/u/{sign(Purpose.UNSUBSCRIBE, who['leaves'], daily)}"
    await world.web.post(left)
    errand = {
        kind: f"/e/{sign(Purpose.ERRAND, await _errand(world, who['stays'], kind, now))}" for kind in Kind
    }
    mine, out = sign(Purpose.PREFERENCES, who["stays"]), sign(Purpose.UNSUBSCRIBE, who["stays"], daily)
    return {
        "form": Visit("/"),
        "meant": Visit("/", (("#email", "lin@gmial.com"), (".button", ""))),
        "thanks": Visit("/", (("#email", "lin@example.com"), (".button", ""))),
        "confirm": Visit(f"/c/{sign(Purpose.CONFIRM, who['asked'], confirm)}"),
        "stale": Visit(f"/c/{sign(Purpose.CONFIRM, who['asked'], confirm - 30)}"),
        "preferences": Visit(f"/p/{mine}"),
        "mailed": Visit(f"/p/{sign(Purpose.PREFERENCES, who['wants'])}", (("[value=data]", ""),)),
        "aged": Visit(f"/e/{sign(Purpose.ERRAND, 99)}"),
        "unsubscribe": Visit(f"/u/{out}"),
        "left": Visit(left),
        "why": Visit(left, ((".tap", ""),)),
        "archive": Visit("/archive"),
        "missing": Visit("/archive/daily/2020-01-01"),
        "privacy": Visit("/privacy"),
        "embed": Visit("/embed"),
        "code": Visit("/embed/code"),
    } | {str(kind): Visit(path) for kind, path in errand.items()}  # fmt: skip


async def _reader(world: World, name: str, confirm: bool) -> int:
    request = subscribe.Request(f"{name}@example.com", ["daily", "weekly"], "zh", Origin("gallery"))
    async with world.db.transaction() as session:
        who = await readers.add(session, world.house.settings, request, "", confirm, world.clock())
    return who.id or 0


async def _errand(world: World, who: int, kind: Kind, now: datetime) -> int:
    async with world.db.transaction() as session:
        new = "new.address@example.org" if kind == Kind.MOVE else ""
        return await errands.add(session, who, kind, now, new)

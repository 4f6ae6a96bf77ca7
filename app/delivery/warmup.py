"""A relay's warm-up: few mails for each provider on the first day, twice as many on each that follows."""

from datetime import date, datetime

from app.core.db import Database
from app.core.relay_url import RelayUrl
from app.delivery import pace
from app.delivery.pace import Lanes

FIRST = 50  # mails for one provider on day 0
LAST_DAY = 20  # after which there is no limit: it would be fifty million


def cap(first: date, today: date) -> int | None:
    """Return how many mails one provider gets today from a relay that began on a day; None is any number."""
    day = max(0, (today - first).days)
    return FIRST << day if day <= LAST_DAY else None


def cap_of(relay: RelayUrl, lanes: Lanes, today: date) -> int | None:
    """Return the cap of a relay as its lane tells it; None for one that does not warm up."""
    own = lanes.get((relay.name, ""))
    first = relay.warmup if isinstance(relay.warmup, date) else own and own.began
    return cap(first or today, today) if relay.warmup else None


async def began(db: Database, relay: RelayUrl, now: datetime) -> date:
    """Return the day on which a relay's warm-up begins: the one it names, else the first on which it was asked for."""
    return relay.warmup if isinstance(relay.warmup, date) else await pace.began(db, relay.name, now)

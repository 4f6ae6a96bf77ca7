"""When a reader's own hour comes: “08:00 where I am” as an instant, whatever the clocks there do."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

LATE = timedelta(hours=12)  # an hour that passed less than this ago has just been, so the mail goes at once

Hours = list[tuple[str, int]]  # zone and hour of the day


def slot(zone: str, hour: int, start: datetime) -> datetime | None:
    """Return the next time it is `hour` o'clock in `zone`, or None when it was less than 12 hours before `start`.

    An hour that the clocks leave out comes when they have jumped; one that they repeat comes the first time.
    """
    there = start.astimezone(ZoneInfo(zone))
    days = (there + timedelta(days=shift) for shift in (-1, 0, 1))
    moments = [
        day.replace(hour=hour, minute=0, second=0, microsecond=0, fold=0).astimezone(start.tzinfo)
        for day in days
    ]
    if any(start - LATE < moment <= start for moment in moments):
        return None
    return min(moment for moment in moments if moment > start)


def slots(wanted: Iterable[tuple[str, int]], start: datetime) -> dict[datetime, Hours]:
    """Return the instants that are to come, and whose hour each of them is."""
    found: dict[datetime, Hours] = {}
    for zone, hour in wanted:
        if (moment := slot(zone, hour, start)) is not None:
            found.setdefault(moment, []).append((zone, hour))
    return found

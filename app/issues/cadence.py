"""When an edition is due: a cadence is data, weekdays (Monday is 0) or a day of the month."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from app.core.errors import Fault, Invalid


def check(cadence: Mapping[str, Any]) -> None:
    """Raise Invalid unless the cadence names weekdays or a day of the month."""
    match cadence:
        case {"weekdays": [*days]} if days and all(d in range(7) for d in days) and len(cadence) == 1:
            return
        case {"day_of_month": int(day)} if 1 <= day <= 28 and len(cadence) == 1:
            return
    raise Invalid('A cadence is {"weekdays": [0, …, 6]} (Monday is 0) or {"day_of_month": 1…28}.')


def next_date(cadence: Mapping[str, Any], after: date) -> date:
    """Return the first due date later than `after`."""
    day = after + timedelta(days=1)
    while not _is_due(cadence, day):
        day += timedelta(days=1)
    return day


def _is_due(cadence: Mapping[str, Any], day: date) -> bool:
    weekdays: Sequence[int] = cadence.get("weekdays", ())
    return day.weekday() in weekdays or day.day == cadence.get("day_of_month")


def moment(at: datetime | None, zone: str | None) -> datetime | None:
    """Return the instant that a local time in a zone means; a time with an offset needs no zone."""
    if at is None or at.tzinfo is not None:
        return at
    try:
        return at.replace(tzinfo=ZoneInfo(zone or "")).astimezone(UTC)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        sentence = "`at` needs an offset, or a `tz` such as Asia/Shanghai."
        raise Invalid(sentence, [Fault(sentence, field="tz")]) from None

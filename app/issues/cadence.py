"""When an edition is due: a cadence is data, weekdays (Monday is 0) or a day of the month."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from app.core.errors import Fault, Invalid

SATURDAY = 5


def check(cadence: Mapping[str, Any]) -> None:
    """Raise Invalid unless the cadence names weekdays or a day of the month."""
    match cadence:
        case {"weekdays": [*days]} if (
            days and all(_is_one_of(range(7), d) for d in days) and len(cadence) == 1
        ):
            return
        case {"day_of_month": day} if _is_one_of(range(1, 29), day) and len(cadence) == 1:
            return
    raise Invalid('A cadence is {"weekdays": [0, …, 6]} (Monday is 0) or {"day_of_month": 1…28}.')


def _is_one_of(numbers: range, value: object) -> bool:
    return type(value) is int and value in numbers  # True and 1.0 are equal to 1, and are no days


def next_date(cadence: Mapping[str, Any], after: date) -> date:
    """Return the first due date later than `after`."""
    day = after + timedelta(days=1)
    while not _is_due(cadence, day):
        day += timedelta(days=1)
    return day


def is_weekend_extra(cadence: Mapping[str, Any], day: date) -> bool:
    """Tell whether an issue is of a Saturday or Sunday, in an edition that comes on weekdays as well."""
    return day.weekday() >= SATURDAY and comes_on_both(cadence)


def comes_on_both(cadence: Mapping[str, Any]) -> bool:
    """Tell whether an edition comes on weekdays and on weekends."""
    days = cadence.get("weekdays", ())
    return any(day < SATURDAY for day in days) and any(day >= SATURDAY for day in days)


def _is_due(cadence: Mapping[str, Any], day: date) -> bool:
    weekdays: Sequence[int] = cadence.get("weekdays", ())
    return day.weekday() in weekdays or day.day == cadence.get("day_of_month")


def moment(at: datetime | None, zone: str | None) -> datetime | None:
    """Return what `instant` does, None for no time."""
    return None if at is None else instant(at, zone)


def instant(at: datetime, zone: str | None) -> datetime:
    """Return the instant that a local time in a zone means, in UTC; a time with an offset needs no zone.

    Raises Invalid for a zone that nobody knows, and for an instant outside the years 1 to 9999.
    """
    try:
        placed = at if at.tzinfo is not None else at.replace(tzinfo=ZoneInfo(zone or ""))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        sentence = "`at` needs an offset, or a `tz` such as Asia/Shanghai."
        raise Invalid(sentence, [Fault(sentence, field="tz")]) from None
    try:
        return placed.astimezone(UTC)
    except OverflowError:
        sentence = "`at` lies outside the years that a calendar has here."
        raise Invalid(sentence, [Fault(sentence, field="at")]) from None

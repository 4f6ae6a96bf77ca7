"""The time now, which programs hand to whoever needs it; rules get it as an argument."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def clock() -> datetime:
    """Return the time now, in UTC."""
    return datetime.now(UTC)

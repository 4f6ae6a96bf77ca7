"""Time zones to choose from, by the name of a city in the reader's language and what its clocks say today."""

from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from babel import Locale
from babel.dates import get_timezone_location

# One for each clock that people live by; a reader in another sees theirs as well.
COMMON = (
    "Pacific/Honolulu", "America/Anchorage", "America/Los_Angeles", "America/Denver", "America/Chicago",
    "America/Mexico_City", "America/New_York", "America/Toronto", "America/Bogota", "America/Halifax",
    "America/Santiago", "America/Sao_Paulo", "America/Argentina/Buenos_Aires", "Atlantic/Azores", "UTC",
    "Europe/London", "Europe/Lisbon", "Africa/Lagos", "Europe/Berlin", "Europe/Paris", "Europe/Madrid",
    "Europe/Rome", "Europe/Stockholm", "Africa/Johannesburg", "Africa/Cairo", "Europe/Athens", "Europe/Helsinki",
    "Europe/Kyiv", "Asia/Jerusalem", "Europe/Istanbul", "Europe/Moscow", "Africa/Nairobi", "Asia/Riyadh",
    "Asia/Tehran", "Asia/Dubai", "Asia/Karachi", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Dhaka", "Asia/Bangkok",
    "Asia/Jakarta", "Asia/Ho_Chi_Minh", "Asia/Shanghai", "Asia/Urumqi", "Asia/Hong_Kong", "Asia/Taipei",
    "Asia/Singapore", "Asia/Kuala_Lumpur", "Asia/Manila", "Australia/Perth", "Asia/Tokyo", "Asia/Seoul",
    "Australia/Adelaide", "Australia/Brisbane", "Australia/Sydney", "Pacific/Auckland",
)  # fmt: skip


def choices(language: str, now: datetime, chosen: str) -> list[tuple[str, str]]:
    """Return zones and what to call them, from west to east; the one that is `chosen` is among them."""
    wanted = COMMON if chosen in COMMON else (*COMMON, chosen)
    placed = sorted(
        (now.astimezone(ZoneInfo(zone)).utcoffset(), _city(zone, language), zone) for zone in wanted
    )
    return [(zone, f"{city} ({_clock(now.astimezone(ZoneInfo(zone)))})") for _, city, zone in placed]


def is_known(zone: str) -> bool:
    """Tell whether there is such a zone."""
    return zone in available_zones()


@lru_cache(maxsize=1)
def available_zones() -> frozenset[str]:
    """Return the names of all zones."""
    return frozenset(available_timezones())


@lru_cache(maxsize=1_000)
def _city(zone: str, language: str) -> str:
    return (
        "UTC"
        if zone == "UTC"
        else get_timezone_location(zone, locale=Locale.parse(language), return_city=True)
    )


def _clock(there: datetime) -> str:
    ahead = int((there.utcoffset() or timedelta()).total_seconds()) // 60
    sign = "-" if ahead < 0 else "+"
    return f"UTC{sign}{abs(ahead) // 60}" + (f":{abs(ahead) % 60:02}" if ahead % 60 else "")

"""What stands in one cell: times, truth, names, statuses, and the quote that keeps a spreadsheet from calculating."""

import re
import unicodedata
import zoneinfo
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from functools import cache

STATUSES = ("pending", "active", "paused", "ended")
REASONS = ("left", "bounced", "complained", "erased", "editor")
NAME_LIMIT = 120

# What a spreadsheet would calculate; quotes in front count, so that neutral and calm undo each other exactly.
_ALARMING = re.compile(r"'*[=+\-@\t\r]")
_QUOTED = re.compile(r"'+[=+\-@\t\r]")
_NAMED_ADDRESS = re.compile(r"""\s*["']?([^<>]*?)["']?\s*<([^<>]*)>\s*""")
_MOMENT = re.compile(
    r"(\d{4})[-/.年](\d{1,2})[-/.月](\d{1,2})日?"
    r"(?:[T\s]*(\d{1,2})[:时](\d{2})(?:[:分](\d{2})(?:[.,](\d{1,9}))?秒?)?)?"
    r"\s*(?:Z|UTC|GMT|([+-])(\d{2}):?(\d{2})(?:\s+[+-]?\w{2,5})?)?"
)
_FALSE = frozenset({"", "0", "false", "no", "n", "f", "off", "none", "null", "否", "未", "无"})
_LANGUAGES = {"zh": "zh", "chinese": "zh", "中文": "zh", "汉语": "zh", "简体中文": "zh", "cn": "zh"} | {
    "en": "en", "english": "en", "英文": "en", "英语": "en"
}  # fmt: skip


def neutral(value: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: a leading = + - @ tab or CR gets a quote."""
    return f"'{value}" if _ALARMING.match(value) else value


def calm(value: str) -> str:
    """Undo `neutral`, exactly."""
    return value[1:] if _QUOTED.match(value) else value


def clean(value: str) -> str:
    """Return a text as one line without control characters, its spaces single."""
    if not value.isprintable():
        value = "".join(" " if unicodedata.category(each) in ("Cc", "Cs") else each for each in value)
    return " ".join(value.split())[:NAME_LIMIT].rstrip()


def address_and_name(value: str) -> tuple[str, str]:
    """Split `Name <a@example.com>`; a bare address has no name."""
    found = _NAMED_ADDRESS.fullmatch(value) if value.endswith(">") else None
    return (found[2].strip(), clean(found[1])) if found else (value, "")


def is_true(value: str) -> bool:
    """Tell whether a cell says yes; a date says yes, too."""
    return value.strip().casefold() not in _FALSE


def language(value: str) -> str:
    """Return `zh` for zh-CN, Chinese and the like, `en` alike; others in their short form."""
    word = value.casefold().replace("_", "-").partition("-")[0].strip()
    return _LANGUAGES.get(word, word)


def hour(value: str) -> int:
    """Return an hour of the day; raises ValueError."""
    number = int(value) if value.isdecimal() and len(value) <= 2 else 24
    if number > 23:
        raise ValueError("an hour is 0 to 23")
    return number


def zone(value: str) -> str:
    """Return the name of a time zone; raises ValueError."""
    if value not in _zones():
        raise ValueError(f"“{value[:40]}” is no time zone; one is called Asia/Shanghai")
    return value


@cache
def _zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def moment(value: str) -> datetime:
    """Return an instant; one without a zone is UTC. Raises ValueError for what is no year, month and day."""
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        found = _loosely(value)
    try:
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("the time is beyond the calendar") from None


def _loosely(value: str) -> datetime:
    """Read 2026/1/5 8:00, 2026年1月5日, and 2026-01-05 08:00:00.5 +0000 UTC."""
    parts = _MOMENT.fullmatch(value.strip())
    if parts is None:
        raise ValueError("a time looks like 2026-10-26T08:00:00Z")
    year, month, day, hours, minutes, seconds, fraction, sign, ahead, and_minutes = parts.groups()
    zone = UTC
    if sign:
        offset = timedelta(hours=int(ahead), minutes=int(and_minutes))
        zone = timezone(-offset if sign == "-" else offset)
    clock = (int(hours or 0), int(minutes or 0), int(seconds or 0), int((fraction or "0").ljust(6, "0")[:6]))
    return datetime(int(year), int(month), int(day), *clock, tzinfo=zone)


def status(written: str, theirs: Mapping[str, str]) -> tuple[str, str | None, datetime | None]:
    """Return state, reason and the end of a pause; `theirs` maps another system's words. Raises ValueError.

    Ours are a state, a reason alone, `ended (bounced)`, and `paused (until 2026-10-26T08:00:00Z)`.
    """
    words = written.casefold().replace("(", " ").replace(")", " ").replace(":", " ", 1).split()
    if theirs_too := theirs.get(" ".join(words).replace("_", " ")):
        words = [theirs_too]
    match words:
        case [reason] if reason in REASONS:
            return "ended", reason, None
        case ["ended"]:
            return "ended", "left", None
        case [state] if state in STATUSES:
            return state, None, None
        case ["ended" | "pending" as state, reason] if reason in REASONS:
            return state, reason, None
        case ["paused", "until", *_]:
            _, _, end = written.casefold().partition("until")
            return "paused", None, moment(end.strip(" ()").upper())
    raise ValueError(f"“{written[:40]}” is no status; there are: {', '.join(STATUSES)}")

"""Our own CSV, in: a header row with `email` and any of the other columns, then a reader a row."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from app.core.errors import Fault, Invalid

COLUMNS = (
    "email", "name", "language", "editions", "status", "timezone", "hour", "created_at", "confirmed_at", "source",
)  # fmt: skip
STATUSES = ("pending", "active", "paused", "ended")
REASONS = ("left", "bounced", "complained", "erased", "editor")
MOST_COLUMNS = 200


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that can be read; its address is still unchecked, and None is what the file does not say."""

    line: int
    email: str
    name: str = ""
    language: str | None = None
    editions: tuple[str, ...] | None = None
    status: str = "active"
    reason: str | None = None
    timezone: str | None = None
    hour: int | None = None
    created_at: datetime | None = None
    confirmed_at: datetime | None = None
    source: str | None = None


def read(lines: Iterable[str]) -> Iterator[Candidate | Fault]:
    """Yield a Candidate for each row that can be read, and a Fault with its line for each that cannot.

    `lines` keep their line ends, so that a quoted field may hold one. Raises Invalid when the header row has no
    `email`, names a column twice, or has more than 200.
    """
    reader = csv.reader(lines, strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        _check(header)
        while (row := next(reader, None)) is not None:
            if not any(row):
                continue
            if len(row) != len(header):
                yield Fault(f"This row has {len(row)} fields, the header has {len(header)}.", reader.line_num)
                continue
            yield _candidate(reader.line_num, dict(zip(header, row, strict=True)))
    except csv.Error as error:
        raise Invalid("The file is not CSV.", [Fault(f"{error}.", reader.line_num)]) from None


def _check(header: list[str]) -> None:
    if len(header) > MOST_COLUMNS:
        raise Invalid(f"The header has {len(header)} columns; at most {MOST_COLUMNS} are read.")
    if "email" not in header:
        raise Invalid(
            "The first line must name the columns, `email` among them.", [Fault("no email column", 1)]
        )
    if len(set(header)) != len(header):
        raise Invalid("The first line names a column twice.", [Fault("a column twice", 1)])


def _candidate(line: int, row: Mapping[str, str]) -> Candidate | Fault:
    said = {name: row[name].strip() for name in COLUMNS if row.get(name, "").strip()}
    status, reason = _status(said.get("status", "active").lower())
    try:
        if status not in STATUSES:
            raise ValueError(f"“{status[:20]}” is no status; there are: {', '.join(STATUSES)}")
        return Candidate(
            line=line,
            email=said.get("email", ""),
            name=said.get("name", "")[:120],
            language=said.get("language"),
            editions=tuple(said["editions"].split()) if "editions" in said else None,
            status=status,
            reason=reason,
            timezone=said.get("timezone"),
            hour=_hour(said.get("hour")),
            created_at=_moment("created_at", said.get("created_at")),
            confirmed_at=_moment("confirmed_at", said.get("confirmed_at")),
            source=said.get("source"),
        )
    except ValueError as error:
        return Fault(f"{error}.", line)


def _status(written: str) -> tuple[str, str | None]:
    """Read `ended (bounced)` or `ended bounced` as well as a bare reason."""
    words = written.replace("(", " ").replace(")", " ").replace(":", " ").split()
    if len(words) == 1 and words[0] in REASONS:
        return "ended", words[0]
    if len(words) == 2 and words[0] == "ended" and words[1] in REASONS:
        return "ended", words[1]
    return " ".join(words), "left" if words == ["ended"] else None


def _hour(written: str | None) -> int | None:
    if written is None:
        return None
    hour = int(written) if written.isdecimal() and len(written) <= 2 else 24
    if hour > 23:
        raise ValueError("an hour is 0 to 23")
    return hour


def _moment(name: str, written: str | None) -> datetime | None:
    if written is None:
        return None
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        raise ValueError(f"{name} needs a time such as 2026-10-26T08:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

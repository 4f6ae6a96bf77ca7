"""Text with columns, in: a header row that says which, then a reader a row; one bad row spoils no other."""

import csv
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from app.core.errors import Fault
from app.subscribers.imports import cells, headers
from app.subscribers.imports.candidate import Candidate, Preset, Table

DELIMITERS = ",;\t"
SOURCE_LIMIT = 120


class Tape:
    """Lines as they are read, which can be given back; `offset` (bytes of UTF-8) and `line` are where a row ended."""

    def __init__(self, lines: Iterable[str], offset: int = 0, line: int = 0) -> None:
        self.offset, self.line = offset, line
        self._lines = iter(lines)
        self._back: deque[str] = deque()
        self._taken: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Return the next line, its end included."""
        text = self._back.popleft() if self._back else next(self._lines)
        self._taken.append(text)
        return text

    @property
    def first(self) -> str:
        """The first line of this row."""
        return self._taken[0] if self._taken else ""

    def done(self) -> None:
        """What was taken is a row."""
        self.line += len(self._taken)
        for text in self._taken:
            self.offset += len(text) if text.isascii() else len(text.encode())
        self._taken.clear()

    def give_back(self, keep: int) -> None:
        """Keep so many of the lines of this row, and read the others again."""
        self._back.extendleft(reversed(self._taken[keep:]))
        del self._taken[keep:]


def head(tape: Tape, presets: Mapping[str, Preset]) -> Table:
    """Read the header row; raises Invalid when it names no address column, or is no row."""
    found: list[tuple[int, int, str]] = []
    for delimiter in _announced(tape) or DELIMITERS:
        row = _first(tape, delimiter)
        found.append((headers.score(row), len(row), delimiter))
        tape.give_back(0)
    best = max(found, key=lambda each: each[:2])
    row = _first(tape, best[2])
    tape.done()
    return headers.understand(row, best[2], presets)


def _announced(tape: Tape) -> str:
    """Skip empty lines and Excel's `sep=;`, and return the delimiter that it names."""
    delimiter = ""
    for text in tape:
        line = text.strip("\r\n ")
        if line[:4].lower() == "sep=" and len(line) == 5:
            delimiter = line[4]
        elif line == "sep=":
            delimiter = "\t"
        elif line:
            tape.give_back(0)
            break
        tape.done()
    return delimiter if delimiter in DELIMITERS else ""


def _first(tape: Tape, delimiter: str) -> list[str]:
    try:
        return next(csv.reader(tape, delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []


def records(tape: Tape, delimiter: str) -> Iterator[tuple[int, list[str] | str]]:
    """Yield each row with the line where it begins, or why it cannot be read; then the next line is tried.

    A quoted beginning such as `"Ann" <a@example.com>` is no CSV (RFC 4180 §2), and is read all the same.
    """
    reader = csv.reader(tape, delimiter=delimiter, strict=True)
    while True:
        line = tape.line + 1
        try:
            row: list[str] | str | None = next(reader, None)
        except csv.Error as error:
            tape.give_back(1)
            row = _forgiven(tape.first, delimiter) or f"This is no row: {error}."
        if row is None:
            return
        tape.done()
        yield line, row


def _forgiven(line: str, delimiter: str) -> list[str] | None:
    """Read a line by itself whose quotes come in pairs, though not where they should."""
    if line.count('"') % 2:
        return None
    try:
        return next(csv.reader([line], delimiter=delimiter), None)
    except csv.Error:
        return None


def read(tape: Tape, table: Table) -> Iterator[Candidate | Fault]:
    """Yield a Candidate for each row that can be read, and a Fault with its line for each that cannot."""
    for line, row in records(tape, table.delimiter):
        if isinstance(row, str):
            yield Fault(row, line)
        elif any(row):
            if len(row) > table.width and not any(row[table.width :]):
                row = row[: table.width]
            if len(row) != table.width:
                yield Fault(f"This row has {len(row)} fields, the header has {table.width}.", line)
            else:
                yield _candidate(line, row, table)


def _candidate(line: int, row: Sequence[str], table: Table) -> Candidate | Fault:
    said = {
        field: text for field, at in table.places.items() if (text := cells.calm(row[at].strip(" ")).strip())
    }
    email, beside = cells.address_and_name(said.get("email", ""))
    try:
        status, reason, until = _standing(said, table)
        return Candidate(
            line=line,
            email=email,
            name=_name(said) or beside,
            language=cells.language(said["language"]) if "language" in said else None,
            editions=_words(said["editions"]) if "editions" in said else None,
            status=status,
            reason=reason,
            paused_until=until,
            timezone=_zone(said, table),
            hour=cells.hour(said["hour"]) if "hour" in said else None,
            created_at=_moment("created_at", said, table),
            confirmed_at=_moment("confirmed_at", said, table),
            source=cells.clean(said["source"])[:SOURCE_LIMIT] if "source" in said else None,
        )
    except ValueError as error:
        return Fault(f"{error}.", line)


def _name(said: Mapping[str, str]) -> str:
    if "name" in said:
        return cells.clean(said["name"])
    given, family = said.get("first_name", ""), said.get("last_name", "")
    # A Chinese name is written together, the family first.
    both = f"{family}{given}" if "一" <= family[:1] <= "鿿" else f"{given} {family}"
    return cells.clean(both)


def _words(written: str) -> tuple[str, ...]:
    for mark in ",;、，；":
        written = written.replace(mark, " ")
    return tuple(dict.fromkeys(written.split()))


def _standing(said: Mapping[str, str], table: Table) -> tuple[str, str | None, datetime | None]:
    """Return state, reason and pause; what forbids mail outranks what the status says."""
    why = said.get("why_left", "").casefold()
    if cells.is_true(said.get("complained", "")) or any(
        word in why for word in ("spam", "abuse", "complain")
    ):
        return "ended", "complained", None
    if cells.is_true(said.get("bounced", "")):
        return "ended", "bounced", None
    if cells.is_true(said.get("left", "")) or not cells.is_true(said.get("subscribed", "yes")):
        return "ended", "left", None
    return cells.status(said.get("status", table.standing), table.statuses)


def _zone(said: Mapping[str, str], table: Table) -> str | None:
    if "timezone" not in said:
        return None
    try:
        return cells.zone(said["timezone"])
    except ValueError:
        if table.is_ours:
            raise
        return None


def _moment(name: str, said: Mapping[str, str], table: Table) -> datetime | None:
    """Return a time; another system's that cannot be read is no reason to lose a reader."""
    if name not in said:
        return None
    try:
        return cells.moment(said[name])
    except ValueError as error:
        if table.is_ours:
            raise ValueError(f"{name}: {error}") from None
        return None

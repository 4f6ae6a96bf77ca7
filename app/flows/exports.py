"""Readers go out as our own CSV: a page at a time, safe in a spreadsheet, and fit to come in again unchanged."""

import csv
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from io import StringIO
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.core.db import Database
from app.issues import store as issues
from app.subscribers import bulk
from app.subscribers.imports import cells
from app.subscribers.imports.candidate import COLUMNS

PAGE = 2_000


async def write(db: Database, state: str | None = None, edition: str | None = None) -> AsyncIterator[str]:
    """Yield the CSV (RFC 4180, the header first) of all readers, or of those in a state or of an edition.

    Each page has a transaction of its own; its memory is a page's, however many readers there are. Raises NotFound
    for the edition before anything is yielded.
    """
    async with db.reading() as session:
        edition_id = (await issues.edition(session, edition)).id if edition else None
        slugs = {one.id or 0: one.slug for one in await issues.editions(session)}
    yield _text([COLUMNS])
    after: int | None = 0
    while after is not None:
        async with db.reading() as session:
            rows, after = await _page(session, after, state, edition_id, slugs)
        if rows:
            yield _text(rows)


async def _page(
    session: AsyncSession, after: int, state: str | None, edition_id: int | None, slugs: dict[int, str]
) -> tuple[list[list[str]], int | None]:
    found = await bulk.page(session, after, PAGE, state, edition_id)
    chosen = await bulk.choices(session, [one.id for one in found])
    rows = [_cells(one, sorted(slugs[edition] for edition in chosen.get(one.id, ()))) for one in found]
    return rows, found[-1].id if len(found) == PAGE else None


def _cells(one: Any, editions: Sequence[str]) -> list[str]:
    """Return a reader's row in the order of COLUMNS."""
    return [
        cells.neutral(one.address),
        cells.neutral(cells.clean(one.name)),
        one.language,
        " ".join(editions),
        _status(one.state, one.reason, one.paused_until),
        one.timezone or "",
        "" if one.hour is None else str(one.hour),
        _moment(one.created_at),
        _moment(one.confirmed_at),
        cells.neutral(cells.clean(one.source)),
    ]


def _status(state: str, reason: str | None, until: datetime | None) -> str:
    if reason is not None:
        return f"{state} ({reason})"
    return f"{state} (until {_moment(until)})" if state == "paused" and until else state


def _moment(value: datetime | None) -> str:
    return value.isoformat().replace("+00:00", "Z") if value else ""


def _text(rows: Sequence[Sequence[str]]) -> str:
    page = StringIO(newline="")
    csv.writer(page).writerows(rows)
    return page.getvalue()

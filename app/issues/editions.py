"""New editions and changed ones: a series is a row, checked before it is kept."""

import re
from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy.ext.asyncio import AsyncSession

from app.core.errors import Conflict, Fault, Invalid
from app.core.i18n import LANGUAGES
from app.issues import cadence, store
from app.issues.models import LETTERS, Edition
from app.mail import headers

SLUG = re.compile(r"[a-z][a-z0-9-]{0,31}")
COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
LIST_ID = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+")
WORDS = {"name": (1, 80), "label": (1, 20), "description": (0, 200), "sender_name": (1, 80)}
DEFAULTS: dict[str, Any] = {
    "language": LANGUAGES[0],
    "accent": "#b4371e",
    "accent_dark": "#f08a6e",
    "cadence": {"weekdays": [0, 1, 2, 3, 4, 5, 6]},
    "timezone": "UTC",
    "max_lateness": 6 * 3600,
    "time_to_live": 20 * 3600,
}
CHANGEABLE = frozenset(
    ("name", "label", "description", "language", "list_id", "sender", "sender_name", "accent", "accent_dark",
     "cadence", "timezone", "max_lateness", "time_to_live", "position", "footer", "letters")
)  # fmt: skip


async def add(session: AsyncSession, slug: str, given: Mapping[str, Any]) -> Edition:
    """Add an edition; what is not given has a default, the label is the name.

    Raises Invalid naming every field that cannot be taken, Conflict when the slug is taken.
    """
    values = DEFAULTS | {name: value for name, value in given.items() if value is not None}
    values.setdefault("label", values.get("name", "")[:20])
    _check({"slug": slug, "name": ""} | values)
    known = await store.editions(session)
    if slug in {one.slug for one in known}:
        raise Conflict(f"There is an edition “{slug}” already; `editions edit` changes it.")
    values.setdefault("position", max((one.position for one in known), default=0) + 1)
    row = Edition(slug=slug, **values)
    session.add(row)
    await session.flush()
    return row


async def edit(session: AsyncSession, slug: str, given: Mapping[str, Any]) -> Edition:
    """Change an edition; None leaves a field. A List-Id is for ever once a mailing has used it.

    Raises NotFound, Invalid naming every field that cannot be taken, Conflict for the List-Id.
    """
    row = await store.edition(session, slug)
    values = {name: value for name, value in given.items() if value is not None and name in CHANGEABLE}
    _check(values)
    if row.list_id not in (None, values.get("list_id", row.list_id)) and await store.has_published(
        session, row
    ):
        raise Conflict(f"Mail has gone out as {row.list_id}; readers' filters know it, so it never changes.")
    for name, value in values.items():
        setattr(row, name, value)
    await session.flush()
    return row


def _check(values: Mapping[str, Any]) -> None:
    faults = [
        Fault(message, field=name)
        for name, pattern, message in (
            ("slug", SLUG, "small letters, digits and hyphens, a letter first"),
            ("accent", COLOUR, "a colour such as #b4371e"),
            ("accent_dark", COLOUR, "a colour such as #f08a6e"),
            ("list_id", LIST_ID, "a lasting name with a dot, such as daily.news.example.com"),
        )
        if name in values and not pattern.fullmatch(str(values[name]))
    ]
    if values.get("language", LANGUAGES[0]) not in LANGUAGES:
        faults.append(Fault(f"one of {', '.join(LANGUAGES)}", field="language"))
    if set(values.get("letters", ())) - set(LETTERS):
        faults.append(Fault(f"some of {', '.join(LETTERS)}, or none", field="letters"))
    faults += _faults_of_words(values) + _faults_of_sender(values) + _faults_of_time(values)
    if faults:
        raise Invalid("This edition cannot be kept; `errors` says what each field needs.", faults)


def _faults_of_words(values: Mapping[str, Any]) -> list[Fault]:
    faults = []
    for name, (least, most) in WORDS.items():
        words = str(values.get(name, "x"))
        is_one_line = headers.clean(words) == words.strip(" ")
        if not least <= len(words.strip()) <= len(words) <= most or not is_one_line:
            faults.append(Fault(f"one line of {least} to {most} characters", field=name))
    footer = str(values.get("footer", ""))
    if len(footer) > 500 or any(headers.clean(line) != line.strip(" ") for line in footer.split("\n")):
        faults.append(Fault("lines of 500 characters in all", field="footer"))
    return faults


def _faults_of_sender(values: Mapping[str, Any]) -> list[Fault]:
    try:
        headers.envelope_address(str(values.get("sender", "newsletter@example.com")))
    except ValueError:
        return [Fault("an address such as daily@news.example.com", field="sender")]
    return []


def _faults_of_time(values: Mapping[str, Any]) -> list[Fault]:
    faults = []
    try:
        ZoneInfo(str(values.get("timezone", "UTC")))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        faults.append(Fault("a zone such as Asia/Shanghai", field="timezone"))
    if "cadence" in values:
        try:
            cadence.check(values["cadence"])
        except Invalid as error:
            faults.append(Fault(error.detail, field="cadence"))
    faults += [
        Fault("seconds, from a minute to 30 days", field=name)
        for name in ("max_lateness", "time_to_live")
        if not 60 <= int(values.get(name, 60)) <= 30 * 86_400
    ]
    return faults

"""The mails of the gallery: issues of both kinds of text and every letter, in both languages, as a reader gets them."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from app.core import config
from app.core.i18n import LANGUAGES
from app.flows.compose import SAMPLE_ADDRESS, Composer, Reader
from app.issues import document, sources
from app.issues.models import Edition, IssueText

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = {"zh": (ROOT / "app/cli/samples", ""), "en": (Path(__file__).parent, ".en")}
DAY = date(2026, 10, 26)
MADE = datetime(2026, 10, 26, 0, 0, tzinfo=UTC)
COLOURS = {"daily": ("#b4371e", "#f08a6e"), "weekly": ("#1d5785", "#86b7e8")}
NAMES = {
    "zh": {"daily": ("AI 技术日报", "日报"), "weekly": ("AI 技术周报", "周报")},
    "en": {"daily": ("The Systems Daily", "Daily"), "weekly": ("The Systems Weekly", "Weekly")},
}
HOUSE = {
    "zh": {"name": "AI 技术报", "postal_address": "北京市海淀区中关村大街 1 号"},
    "en": {"name": "The Systems Press", "postal_address": "1 Example Street, Exampletown"},
}
LETTERS = ("confirm", "welcome", "goodbye")
NOTICES = ("manage", "address", "data", "erase", "move", "moved", "back")  # on a template that they share


def text(slug: str, language: str, folder: Path | None = None) -> str:
    """Return the text of the daily or the weekly; `folder` may hold other Chinese ones."""
    samples, suffix = SAMPLES[language]
    if folder and language == "zh":
        samples = folder
    return (samples / f"{slug}{suffix}.txt").read_text(encoding="utf-8")


def composer(language: str) -> Composer:
    """Return what composes for a house of this language."""
    return Composer(
        config.load(
            base_url="https://news.example.com", secret_key="k" * 32, suppression_key="s" * 32,
            relays="smtp+plain://127.0.0.1", contact="desk@news.example.com", _env_file=None, **HOUSE[language],
        )
    )  # fmt: skip


def edition(slug: str, language: str) -> Edition:
    """Return the daily or the weekly."""
    name, label = NAMES[language][slug]
    accent, accent_dark = COLOURS[slug]
    return Edition(
        id=1, slug=slug, name=name, label=label, language=language, accent=accent, accent_dark=accent_dark,
        cadence={}, timezone="UTC", max_lateness=60, time_to_live=60, letters=[], footer="",
    )  # fmt: skip


def markdown(language: str) -> str:
    """Return a daily in Markdown that has a block of each kind."""
    return (Path(__file__).parent / f"daily.{language}.md").read_text(encoding="utf-8")


def issue(slug: str, language: str, source: str, format: str = "text") -> bytes:
    """Return an issue as one reader gets it."""
    house, one = composer(language), edition(slug, language)
    written = IssueText(
        issue_id=1, language=language, format=format, source=source,
        subject=document.subject_of(sources.parse(source, format)),
    )  # fmt: skip
    other = NAMES[language]["weekly" if slug == "daily" else "daily"][1]
    rendered = house.render_issue(one, DAY, written, (other,))
    press = house.press(one, 1, DAY, language, MADE, rendered)
    return house.issue_message(press, Reader(7, SAMPLE_ADDRESS)).message


def letter(kind: str, language: str) -> bytes:
    """Return a letter as its reader gets it."""
    daily, weekly = (NAMES[language][slug] for slug in ("daily", "weekly"))
    subject = document.subject_of(sources.parse(text("daily", language), "text"))
    missed = [
        [
            f"{day} {label}",
            document.subject_of(sources.parse(text(slug, language), "text")),
            f"https://news.example.com/archive/{slug}/{day}",
        ]
        for slug, (_, label), day in (("daily", daily, "2026-10-26"), ("weekly", weekly, "2026-10-25"))
    ]
    more: dict[str, Mapping[str, Any]] = {
        **{kind: {"action": "errand", "errand": 1} for kind in ("address", "data", "erase", "move")},
        "moved": {"action": "home", "words": {"address": "ne***w@example.org"}},
        "back": {"missed": missed},
    }
    said: dict[str, Mapping[str, Any]] = {
        "welcome": {
            "coming": [[daily[1], "2026-10-27"], [weekly[1], "2026-11-01"]],
            "recent": [[daily[1], str(DAY), subject, f"/archive/daily/{DAY}"]],
        },
        "goodbye": {"remaining": [weekly[0]]},
    }
    data = {
        "editions": [daily[0], weekly[0]] if kind == "welcome" else [daily[0]],
        "accent": COLOURS["daily"][0],
        "accent_dark": COLOURS["daily"][1],
        "action": "confirm" if kind == "confirm" else "preferences",
        "slug": "daily",
        "said": said.get(kind, {}),
    } | dict(more.get(kind, {}))
    return composer(language).letter_message(
        {"id": 1, "kind": kind, "address": SAMPLE_ADDRESS, "subscriber_id": 7, "language": language,
         "data": data, "created_at": MADE}
    ).message  # fmt: skip


def every(folder: Path | None = None) -> dict[str, bytes]:
    """Return each mail by its name, such as daily-zh."""
    made = {}
    for language in LANGUAGES:
        for slug in ("daily", "weekly"):
            made[f"{slug}-{language}"] = issue(slug, language, text(slug, language, folder))
        made[f"markdown-{language}"] = issue("daily", language, markdown(language), "markdown")
        for kind in (*LETTERS, *NOTICES):
            made[f"{kind}-{language}"] = letter(kind, language)
    return made


def html(raw: bytes) -> str:
    """Return the HTML of a mail."""
    mail: EmailMessage = message_from_bytes(raw, policy=policy.default)
    part = mail.get_body(("html",))
    assert part is not None
    shown: str = part.get_content()
    return shown

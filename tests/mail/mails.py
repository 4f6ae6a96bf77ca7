"""Issues and letters for the tests of what a mail looks like: our own, the two real ones, letters."""

from collections.abc import Callable
from datetime import date
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lxml import html  # type: ignore[import-untyped]

from app.issues import sources
from app.issues.document import Document, Item, Question, Section, subject_of
from app.mail.render import Renderer, Rendition

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
RED, BLUE = ("#b4371e", "#f08a6e"), ("#1d5785", "#86b7e8")
ISSUE_SLOTS = {"__BS_ADDRESS__", "__BS_MANAGE__", "__BS_UNSUBSCRIBE__"}
LETTER_SLOTS = {"__BS_ACTION__", "__BS_ADDRESS__"}

TIDES = Item(
    "潮汐：算得准，也要量得到",
    (
        "2026-05-04 的一次大潮，让“预报”与实测差了 12 cm。",
        "两者 <并不> 矛盾 & 各有用处，见 2026-05-01 日报中的讨论。",
    ),
    ("https://example.org/tides?station=7&year=2026", "https://example.net/a/very/long/path-to-a-table/"),
)
CLOCKS = Item("钟表：同一根发条，为什么快慢不同，又为什么每天都要重新校一次", ("温度改变发条。",), ())
DAILY = Document(
    "海边日报",
    ("今天看潮汐。", "也看钟表。"),
    (Section("要闻", (TIDES,)), Section("旧文", (CLOCKS,))),
    Question("想一想", "钟慢了，潮水会等吗？"),
)
WEEKLY = Document(
    "海边周报", ("2026-05-01 至 2026-05-07，两件事。",), (Section(None, (TIDES, CLOCKS)),), None
)
ENGLISH = Document(
    "The Seaside Daily",
    ("Today: tides.",),
    (
        Section(
            "Highlights", (Item("Tides: easy to compute", ("Don't trust {{ tables }}.",), TIDES.sources),)
        ),
    ),
    Question(None, "Does the tide wait for a slow clock?"),
)
RENDERER = Renderer()


def context(document: Document, language: str = "zh", accents: tuple[str, str] = RED) -> dict[str, object]:
    """Return what an issue is rendered with."""
    edition = SimpleNamespace(
        slug="daily", name=document.title, label="日报", language=language, sender_name="海边编辑部"
    )
    edition.accent, edition.accent_dark = accents
    return {
        "language": language,
        "edition": edition,
        "document": document,
        "issue_date": date(2026, 5, 4),
        "subject": subject_of(document),
        "web_url": "https://news.example.com/archive/daily/2026-05-04",
        "archive_url": "https://news.example.com/archive/daily",
        "home_url": "https://news.example.com/",
        "postal_address": "海滨路 1 号",
        "contact": "desk@news.example.com",
        "other_edition_label": "周报",
    }


def letter(language: str, **more: object) -> dict[str, object]:
    """Return what a letter is rendered with."""
    shared = {"publication": "海边日报", "home_url": "https://news.example.com/", "postal_address": ""}
    return {"language": language, **shared, "accent": BLUE[0], "accent_dark": BLUE[1], **more}


def seed(name: str) -> Document:
    """Return a real issue, or skip the test."""
    file = SEEDS / f"{name}.txt"
    if not file.exists():
        pytest.skip("The two real issues lie beside the checkout only where the project is made.")
    return sources.parse(file.read_bytes())


DOCUMENTS: dict[str, Callable[[], Document]] = {
    "daily": lambda: DAILY,
    "weekly": lambda: WEEKLY,
    "english": lambda: ENGLISH,
    "seed daily": lambda: seed("daily"),
    "seed weekly": lambda: seed("weekly"),
}
NOTICE = {"title": "你已经订阅了", "paragraph": "想改收，点下面的按钮。", "button": "管理"}
LETTERS = ("confirm", "confirm english", "notice")
MAILS = (*DOCUMENTS, *LETTERS)


@cache
def mail(name: str) -> Rendition:
    """Return one of MAILS."""
    match name:
        case "confirm":
            return RENDERER.render("confirm", letter("zh", edition_names=["海边日报", "海边周报"]))
        case "confirm english":
            return RENDERER.render("confirm", letter("en", edition_names=["A & B", "C"]))
        case "notice":
            return RENDERER.render("notice", letter("zh", **NOTICE))
    language, accents = "en" if name == "english" else "zh", BLUE if "weekly" in name else RED
    return RENDERER.render("issue", context(DOCUMENTS[name](), language, accents))


def tree(page: str) -> Any:
    """Return the page as lxml reads it."""
    return html.fromstring(page)


def paragraphs(page: str) -> list[str]:
    """Return what each paragraph and heading of a page says."""
    return [element.text_content() for element in tree(page).iter("p", "h1", "h2", "h3")]

"""Preflight: what an editor is told of a text, of the mail it becomes, and of the message that carries it."""

import re
from dataclasses import replace
from datetime import date

import pytest

from app.core.errors import Fault
from app.issues import sources
from app.issues.checks import clients, contrast
from app.issues.checks.page import Page, dark_rules
from app.issues.document import CrossReference, Period
from app.issues.preflight import Parts, Past, Surroundings, errors_of, look_over, warnings_of
from tests.issues.samples import DAILY, MARKDOWN, WEEKLY, seed
from tests.mail import mails

DAY = date(2026, 10, 26)
AROUND = Surroundings("日报", ["日报", "周报"], DAY)
SLOTS = ("__BS_MANAGE__", "__BS_UNSUBSCRIBE__")
HEAD = (
    b"From: a@example.org\r\nSubject: =?utf-8?b?5rW3?=\r\n"
    b"List-Unsubscribe: <https://news.example.org/u/x>\r\n\r\nbody\r\n"
)
SOUND = DAILY.replace("握手少了一次往返。", "握手少了一次往返。\nhttps://example.org/handshake")


def told(
    text: str, around: Surroundings = AROUND, format: str = "text"
) -> list[tuple[int | str | None, str]]:
    found = look_over(sources.parse(text, format), around)
    return [(fault.line or fault.field, fault.message) for fault in found]


def sheet(text: str = SOUND, format: str = "text") -> Parts:
    document = sources.parse(text, format)
    made = mails.RENDERER.render("issue", mails.context(document))
    return Parts(made.subject, made.html, made.text, HEAD)


def errors(parts: Parts, text: str = SOUND, format: str = "text") -> list[tuple[int | str | None, str]]:
    found = errors_of(sources.parse(text, format), parts, SLOTS)
    return [(fault.line or fault.field, fault.message) for fault in found]


def one(found: list[tuple[int | str | None, str]], place: int | str | None, words: str) -> None:
    assert len(found) == 1, found
    assert found[0][0] == place
    assert words in found[0][1]


# -- the text


@pytest.mark.parametrize("name", ["daily", "weekly"])
def test_a_real_issue_has_nothing_to_be_told(name: str) -> None:
    label = {"daily": "日报", "weekly": "周报"}[name]
    day = {"daily": DAY, "weekly": date(2026, 10, 25)}[name]
    assert told(seed(name).decode(), replace(AROUND, label=label, day=day)) == []


def test_a_sound_issue_has_nothing_to_be_told() -> None:
    assert told(SOUND) == []
    assert errors(sheet()) == []


def test_the_title_of_another_edition_is_told() -> None:
    one(told(SOUND.replace("技术日报", "技术周报")), 1, "correct one of them")


@pytest.mark.parametrize(
    ("day", "words"),
    [(date(2026, 10, 25), "after its own date"), (date(2026, 10, 27), "check both")],
)
def test_a_date_that_may_be_a_slip_is_told_on_its_line(day: date, words: str) -> None:
    one(told(SOUND, replace(AROUND, day=day)), 5, words)


def test_a_date_long_past_is_history() -> None:
    assert told(SOUND, replace(AROUND, day=date(2026, 11, 9))) == []


def test_a_weekly_that_does_not_follow_the_last_is_told() -> None:
    text = WEEKLY.replace("2026-10-22 日报", "旧文")
    around = replace(AROUND, label="周报")
    last = Past(date(2026, 10, 18), "上周", Period(date(2026, 10, 11), date(2026, 10, 18)), frozenset())
    assert told(text, replace(around, past=[last])) == []
    gap = replace(last, period=Period(date(2026, 10, 4), date(2026, 10, 11)))
    one(told(text, replace(around, past=[gap])), "lead", "starts on 2026-10-18")
    one(told(text.replace("2026-10-18", "2026-10-17"), around), "lead", "9 days")


def test_a_reference_to_no_issue_is_told_on_its_line() -> None:
    missing = [CrossReference(date(2026, 10, 22), "日报")]
    one(told(WEEKLY, replace(AROUND, label="周报", missing=missing)), 4, "not in the archive")


def test_a_source_that_comes_twice_is_told_on_its_second_line() -> None:
    one(told(SOUND.replace("compiler/notes", "cache")), 12, "a source of “缓存” already")
    past = [
        Past(date(2026, 10, 25), "昨天", None, frozenset({"https://example.org/cache"})),
        Past(date(2026, 10, 24), "前天", None, frozenset({"https://example.org/cache"})),
    ]
    one(told(SOUND, replace(AROUND, past=past)), 7, "was a source on 2026-10-25")


def test_an_item_without_source_is_told_unless_it_is_a_classic() -> None:
    one(told(DAILY), 13, "“网络” has no source")


def test_a_source_in_the_clear_is_told() -> None:
    one(
        told(SOUND.replace("https://example.org/compiler\n", "http://example.org/compiler\n")), 11, "https://"
    )


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ("编译器：把检查提前", "把检查提前的编译器", 9, "has no ：, as most"),
        ("编译器：把检查提前", "检查", 9, "name of a section"),
        ("编译器：把检查提前", f"编译器：{'提前' * 15}", 9, "characters wide"),
        ("错误更早出现。", f"错误更早出现{'得多' * 150}。", 10, "divide it"),
        ("错误更早出现。", "GPU错误 10% 更早出现。", 10, "No space within “U错”"),
        ("错误更早出现。", "错误,更早出现。", 10, "write “，”"),
        ("错误更早出现。", "错误更早（出现。", 10, "“（” is not closed"),
        ("错误更早出现。", "错误更早”出现。", 10, "“”” closes nothing"),
        ("错误更早出现。", "错误见 https://example.org/x 。", 10, "within a paragraph"),
        ("错误更早出现。", "错误见https://example.org/x。", 10, "https://example.org/x stands"),
    ],
)
def test_a_slip_of_the_pen_is_told_on_its_line(before: str, after: str, line: int, words: str) -> None:
    text = SOUND.replace("比较了两种缓存", "比较了 2 种缓存").replace(before, after)
    one(told(text), line, words)


@pytest.mark.parametrize(
    "after", ["60元与60毫秒。", "C++。", "它说“don’t（真的）”。", "在 12:30，比例 1:2。", "v1.0。"]
)
def test_what_is_well_set_is_not_told(after: str) -> None:
    text = DAILY.replace("2026-10-26 的一项研究", "一项研究").replace(
        "握手少了一次往返。", after + "\nhttps://a.org/"
    )
    assert told(text) == []


def test_the_same_is_told_of_markdown() -> None:
    text = (
        MARKDOWN.replace("差别在于何时写回：", "差别,在于何时写回：")
        .replace("，见https://example.org/notes", "")
        .replace("先改缓存；", "先改（缓存；")
    )
    found = told(text, format="markdown")
    assert [(place, words[:12]) for place, words in found if place in (9, 12)] == [
        (9, "“别,” has a h"),
        (12, "“（” is not c"),
    ]


# -- links


@pytest.mark.parametrize(
    "url",
    ["https://localhost/a", "https://10.0.0.7/a", "https://[::1]/", "https://wiki/a", "https://a.internal/x"],
)
def test_a_link_that_only_we_could_open_is_an_error_on_its_line(url: str) -> None:
    text = SOUND.replace("https://example.org/cache\n", f"{url}\n")
    one(errors(sheet(text), text), 7, "private host")


def test_a_link_whose_words_name_another_host_is_an_error() -> None:
    text = MARKDOWN.replace("[一篇论文](https://arxiv.org", "[bank.example/login](https://arxiv.org")
    one(errors(sheet(text, "markdown"), text, "markdown"), "lead", "says bank.example and leads to arxiv.org")
    text = MARKDOWN.replace("[一篇论文](https://arxiv.org", "[www.arxiv.org](https://arxiv.org")
    assert errors(sheet(text, "markdown"), text, "markdown") == []


# -- the parts


@pytest.mark.parametrize("name", mails.DOCUMENTS)
def test_our_own_templates_pass(name: str) -> None:
    made, document = mails.mail(name), mails.DOCUMENTS[name]()
    found = errors_of(document, Parts(made.subject, made.html, made.text, HEAD), SLOTS)
    assert [fault for fault in found if "{{" not in fault.message] == []


def test_markdown_of_every_kind_passes() -> None:
    assert errors(sheet(MARKDOWN, "markdown"), MARKDOWN, "markdown") == []


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (' lang="zh-CN"', "", "no lang"),
        ("<title>", "<b>", "no <title>"),
        (' role="presentation"', "", "role=presentation"),
        ("</body>", '<img src="https://a.org/a.png" width="1"></body>', "has no alt"),
        ("</body>", '<img src="data:image/png;base64,AA" alt="a" width="1"></body>', "data:"),
        ("</body>", "<form></form></body>", "<form>"),
        ("</body>", "<script></script></body>", "<script>"),
        ("</body>", '<a href="/archive">a</a></body>', "whole URL"),
        ("</body>", '<a href="">a</a></body>', "whole URL"),
        ("</body>", "__BS_ELSE__</body>", "Nothing fills __BS_ELSE__"),
        ("__BS_MANAGE__", "", "no place for __BS_MANAGE__"),
        ("</head>", "<style>@import url(a)</style></head>", "@import"),
        ("</head>", f"<style>{'a' * 17_000}</style></head>", "16,384"),
        ("</body>", f"{'a' * 100_000}</body>", "Gmail cuts it off"),
        ("</body>", '<p style="color:#999">a</p></body>', "contrast of 2."),
        ("</body>", '<p style="display:flex">a</p></body>', "Outlook (Windows)"),
        ("</body>", '<p style="width:calc(1px)">a</p></body>', "calc()"),
        ("https://example.org/cache", "https://example.org/other", "https://example.org/cache is not in it"),
        ("</body>", "{% if %}</body>", "unfilled"),
    ],
)
def test_what_no_mail_may_have_is_an_error_of_the_html(before: str, after: str, words: str) -> None:
    parts = sheet()
    assert before in parts.html
    found = errors(replace(parts, html=parts.html.replace(before, after)))
    assert any(place == "html" and words in message for place, message in found), found


@pytest.mark.parametrize(
    ("change", "words"),
    [("", "empty"), ("https://example.org/cache gone", "not in it"), ("{{ x }}", "unfilled")],
)
def test_a_text_part_that_lost_something_is_an_error(change: str, words: str) -> None:
    found = errors(replace(sheet(), text=change))
    assert any(place == "text" and words in message for place, message in found), found


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (HEAD.replace(b"body\r\n", b"body\n"), "bare LF"),
        (HEAD.replace(b"body", b"b" * 999), "998"),
        (HEAD.replace(b"5rW3", b"5rW3" * 20), "75"),
        (HEAD.replace(b"<https://news.example.org/u/x>", b"=?utf-8?q?=3Chttps?="), "encoded"),
        (HEAD.replace(b"List-Unsubscribe", b"List-Help"), "missing"),
    ],
)
def test_a_message_that_breaks_the_rules_of_mail_is_an_error(message: bytes, words: str) -> None:
    one(errors(replace(sheet(), message=message)), "headers", words)


def test_a_subject_of_no_words_is_an_error() -> None:
    one(errors(replace(sheet(), subject=" ")), "subject", "empty")
    one(errors(replace(sheet(), subject="a\nb")), "subject", "several lines")


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        ("缓" * 41, "41 characters wide"),
        ("TMA 与 GPU 的比较", "capitals"),
        ("Re: 缓存", "answer"),
        ("转发：缓存", "answer"),
        ("昨天的题", "the same subject"),
    ],
)
def test_a_subject_that_readers_or_filters_dislike_is_told(subject: str, words: str) -> None:
    last = Past(date(2026, 10, 25), "昨天的题", None, frozenset())
    found = warnings_of(replace(sheet(), subject=subject), replace(AROUND, past=[last]))
    assert [fault.field for fault in found] == ["subject"]
    assert words in found[0].message


def test_a_mail_near_the_limit_is_told() -> None:
    found = warnings_of(replace(sheet(), html="a" * 90_000), AROUND)
    assert found == [Fault("The HTML has 90,000 bytes; beyond 100,000 Gmail cuts it off.", field="html")]


# -- what it computes with


@pytest.mark.parametrize(
    ("one_colour", "other", "expected"),
    [
        ("#000000", "#ffffff", 21.0),
        ("#777777", "#ffffff", 4.48),
        ("#b4371e", "#ffffff", 6.0),
        ("#fff", "#fff", 1.0),
    ],
)
def test_contrast_is_that_of_wcag(one_colour: str, other: str, expected: float) -> None:
    assert round(contrast.ratio(one_colour, other), 2) == pytest.approx(expected, abs=0.05)


def test_the_dark_palette_is_looked_at_too() -> None:
    html = (
        "<style>@media (prefers-color-scheme:dark){.card{background-color:#000 !important}.x,.y{color:#fff}}</style>"
        '<div class="card" style="background-color:#ffffff"><p class="y">a</p><p style="color:#222222">b</p></div>'
    )
    page = Page(html)
    assert dark_rules(page.styles)["y"] == {"color": "#fff"}
    (found,) = contrast.findings(page)
    assert "“b” is #222222 on #000 in the dark palette" in found.message


def test_the_data_on_mail_programs_names_its_source_its_licence_and_its_day() -> None:
    data = clients.data()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", data["date"])
    assert "MIT" in data["licence"]
    assert data["features"]["css-display-flex"]["lacking"] == ["Outlook (Windows)"]
    assert set(data["features"]) > clients.GRACEFUL | set(clients._VALUES)

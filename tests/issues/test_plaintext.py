"""The house format: what is read, what is refused on which line, and that writing and reading agree."""

from datetime import date

import pytest

from app.core.errors import Fault, Invalid
from app.issues import sources
from app.issues.document import (
    FAULTS_SHOWN,
    CrossReference,
    Document,
    Item,
    Period,
    Question,
    Section,
    SourceError,
    outline,
    subject_of,
)
from app.issues.sources.plaintext import parse, write
from tests.issues.samples import DAILY, ENGLISH, WEEKLY, seed


def shape(document: Document) -> list[tuple[str | None, list[tuple[int, int]]]]:
    return [
        (section.name, [(len(item.paragraphs), len(item.sources)) for item in section.items])
        for section in document.sections
    ]


def faults_of(source: str | bytes) -> tuple[Fault, ...]:
    with pytest.raises(SourceError) as caught:
        parse(source)
    return caught.value.faults


def edited(text: str, **changes: str | None) -> str:
    """The text with lines replaced: `line4="…"`; None deletes, and a replacement may hold several lines."""
    rows: list[str | None] = list(text.split("\n"))
    for name, change in changes.items():
        rows[int(name.removeprefix("line")) - 1] = change
    return "\n".join(row for row in rows if row is not None)


# -- what is read


def test_the_daily_seed_is_read_as_its_editors_mean_it() -> None:
    document = parse(seed("daily"))
    assert document.title == "AI 技术日报"
    assert len(document.lead) == 1
    brief = [(1, 2), (1, 1), (1, 1), (1, 1), (1, 1), (1, 1)]
    assert shape(document) == [("重点", [(3, 1)]), ("简讯", brief), ("经典回顾", [(1, 0)])]
    assert document.question == Question(
        "带着一个问题读", "每张 GPU 分到相同 token 数，为何仍可能比不均分更慢？"
    )
    assert document.items[-1].paragraphs[-1].endswith("而不只是预测一个总耗时。")
    assert document.keys[:3] == ("TMA", "TorchTitan", "SmoothScore")
    assert document.latest_date == date(2026, 10, 26)
    assert document.period is None
    assert subject_of(document) == "TMA：少发搬运指令，能否变快还要看瓶颈"
    assert [item["line"] for part in outline(document) for item in part["items"]] == [
        4,
        10,
        14,
        17,
        20,
        23,
        26,
        30,
    ]


def test_the_weekly_seed_is_read_as_its_editors_mean_it() -> None:
    document = parse(seed("weekly"))
    assert shape(document) == [(None, [(3, 2), (3, 4), (4, 4), (3, 2), (3, 2)])]
    assert document.question is None
    assert document.period == Period(date(2026, 10, 18), date(2026, 10, 25))
    assert document.cross_references == (
        CrossReference(date(2026, 10, 22), "日报"),
        CrossReference(date(2026, 10, 21), "日报"),
    )
    assert document.latest_date == date(2026, 10, 25)
    assert subject_of(document) == "Checkpoint、四位推理、RL、Agent、TorchTPU"


@pytest.mark.parametrize("name", ["daily", "weekly"])
def test_a_seed_is_written_down_as_it_came(name: str) -> None:
    source = seed(name)
    assert write(parse(source)) == source.decode() + "\n"


def test_every_text_of_a_document_is_one_of_the_source() -> None:
    rows = DAILY.split("\n")
    document = parse(DAILY)
    for item in document.items:
        texts = (item.title, *item.paragraphs, *item.sources)
        assert [rows[number - 1].startswith(text) for number, text in zip(item.lines, texts, strict=True)]


@pytest.mark.parametrize(
    "dressed",
    [
        DAILY.replace("\n", "\n\n").encode(),
        DAILY.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + DAILY.encode(),
        "\n".join(f"\u3000\u3000{row}\u3000\t \xa0" for row in DAILY.split("\n")).encode(),
        ("\n\n \u3000\n" + DAILY + "\n \n\n").encode(),
        DAILY,
        bytearray(DAILY.encode()),
    ],
    ids=["blank lines", "CRLF", "BOM", "padding", "blank ends", "text", "bytearray"],
)
def test_blanks_carry_no_meaning(dressed: str | bytes) -> None:
    assert parse(dressed) == parse(DAILY.encode())


def test_what_looks_alike_is_made_alike() -> None:
    assert parse(DAILY.replace("缓存：", "Cafe\u0301：")).items[0].key == "Caf\u00e9"


def test_an_english_issue_is_read_in_the_same_format() -> None:
    document = parse(ENGLISH)
    assert shape(document) == [("Features", [(1, 1)]), ("From the archive", [(1, 0)])]
    assert document.question == Question("A question to read with", "what is left when the power fails?")
    assert document.keys == ("Caches", "Journals")
    assert write(document) == ENGLISH


def test_a_lead_may_have_several_paragraphs() -> None:
    assert parse(edited(WEEKLY, line2="第一段。\n第二段！\n第三段……")).lead == (
        "第一段。",
        "第二段！",
        "第三段……",
    )


def test_a_title_that_asks_is_known_by_its_place_after_a_url() -> None:
    document = parse(edited(WEEKLY, line6="往返还是带宽？"))
    assert document.items[1].title == "往返还是带宽？"
    assert write(document) == edited(WEEKLY, line6="往返还是带宽？")


def test_a_title_that_asks_is_known_by_its_place_after_a_marked_section() -> None:
    document = parse(edited(DAILY, line3="# 重点", line4="缓存变快了吗？"))
    assert document.sections[0] == Section(
        "重点", (Item("缓存变快了吗？", document.items[0].paragraphs, ("https://example.org/cache",)),)
    )


def test_a_title_that_asks_after_an_item_without_url_reads_as_a_paragraph_unless_it_is_marked() -> None:
    plain = parse(edited(WEEKLY, line5=None, line6="往返还是带宽？"))
    assert shape(plain) == [(None, [(3, 1)])]
    marked = parse(edited(WEEKLY, line5=None, line6="## 往返还是带宽？"))
    assert shape(marked) == [(None, [(1, 0), (1, 1)])]
    assert write(marked) == edited(WEEKLY, line5=None, line6="## 往返还是带宽？")


@pytest.mark.parametrize(
    ("mark", "titles"),
    [
        ("# 短题\n为什么？\n一段。", ["为什么？"]),
        ("短题\n## 为什么？\n一段。", ["为什么？"]),
        ("缓存\n又一段。\n## 短题\n为什么？\n一段。", ["缓存", "短题"]),
    ],
)
def test_a_mark_settles_what_is_unclear(mark: str, titles: list[str]) -> None:
    document = parse(f"技术周报\n导语。\n{mark}")
    assert [item.title for item in document.items] == titles
    assert parse(write(document)) == document


def test_a_mark_makes_a_long_section_name() -> None:
    text = edited(DAILY, line8="# 一个超过十二个字符的栏目名称。")
    assert parse(text).sections[1].name == "一个超过十二个字符的栏目名称。"
    assert write(parse(text)) == text + "\n"


def test_marks_are_taken_off_where_nothing_is_gained() -> None:
    text = edited(DAILY, line3="#  重点", line4="##\u3000缓存：先看瓶颈，再谈提速", line8="# 简讯")
    assert write(parse(text)) == DAILY + "\n"


def test_a_question_on_a_line_of_its_own_closes_the_issue() -> None:
    text = edited(DAILY, line17="先写日志，再改数据。\n带着一个问题读：断电之后还剩什么？")
    assert parse(text) == parse(DAILY)


def test_an_item_that_is_one_question_keeps_it() -> None:
    document = parse(edited(DAILY, line17="断电之后还剩什么？"))
    assert document.question is None
    assert document.items[-1].paragraphs == ("断电之后还剩什么？",)


# -- what is refused


REFUSED: list[tuple[str, str | bytes, int, str]] = [
    ("empty", "", 1, "empty"),
    ("too many lines", "题\n" * 5_001, 5_001, "5,000 are the most"),
    ("blank", " \n\u3000\n\ufeff", 1, "empty"),
    ("first line a paragraph", edited(DAILY, line1=None), 1, "first line is the newsletter's title"),
    ("first line asks", edited(DAILY, line1="技术日报？"), 1, "found “技术日报？”"),
    ("first line a URL", edited(DAILY, line1="https://example.org/"), 1, "first line"),
    ("first line marked", edited(DAILY, line1="# 技术日报"), 1, "without a mark"),
    ("lead missing", edited(DAILY, line2=None), 2, "the lead is missing"),
    ("only a title", "技术日报", 1, "the lead is missing"),
    ("no item", "技术日报\n导语。", 2, "no item"),
    ("no final stop", edited(DAILY, line5="字" * 131), 5, "131 characters without a final 。"),
    ("no final stop in English", edited(ENGLISH, line5="word " * 30), 5, "149 characters without a final ."),
    (
        "item without paragraph",
        edited(DAILY, line10=None, line11=None, line12=None),
        8,
        "“编译器：把检查提前” reads as a section name",
    ),
    (
        "long item without paragraph",
        edited(DAILY, line9="编译器：把检查大大提前之后", line10=None, line11=None, line12=None),
        9,
        "above the title",
    ),
    (
        "short item without paragraph",
        edited(WEEKLY, line3="缓存", line4=None),
        4,
        "directly under the section name “缓存”",
    ),
    ("item without paragraph, with URL", edited(DAILY, line10=None), 9, "has no paragraph"),
    ("item without paragraph at the end", edited(DAILY, line17=None), 16, "has no paragraph"),
    (
        "URL before paragraph",
        edited(DAILY, line10="https://example.org/x\n检查提前。", line11=None, line12=None),
        10,
        "URL before",
    ),
    (
        "URL under a section name",
        edited(DAILY, line8="简讯\nhttps://example.org/x"),
        9,
        "URL directly under the section name “简讯”",
    ),
    (
        "URL under a marked section",
        edited(DAILY, line8="# 简讯\nhttps://example.org/x"),
        9,
        "URL directly under",
    ),
    ("URL in the lead", edited(DAILY, line2="导语。\nhttps://example.org/x"), 3, "URL in the lead"),
    (
        "paragraph after a URL",
        edited(DAILY, line7="https://example.org/cache\n又一段。"),
        8,
        "“又一段。” follows a URL",
    ),
    (
        "title lost above two paragraphs",
        edited(DAILY, line7="https://example.org/cache\n又一段。\n再一段。"),
        8,
        "follows a URL",
    ),
    (
        "title lost in the first section",
        edited(DAILY, line4=None),
        7,
        "follows “重点” (line 3), an item without one",
    ),
    ("title lost", edited(DAILY, line13=None), 13, "follows a URL"),
    (
        "paragraph under a marked section",
        edited(DAILY, line8="# 简讯\n一段。"),
        9,
        "paragraph directly under",
    ),
    ("section without items", edited(DAILY, line15="空栏\n经典回顾"), 15, "“空栏” has no item"),
    ("section without items at the end", DAILY + "\n# 空栏", 18, "“空栏” has no item"),
    ("section twice", edited(DAILY, line15="简讯"), 15, "was begun on line 8"),
    (
        "section after loose items",
        edited(WEEKLY, line6="栏目\n网络：往返"),
        6,
        "follows “缓存：写回与写穿” (line 3), an item without one",
    ),
    ("long head above a head", edited(DAILY, line15="一个超过十二个字符的栏目名称"), 15, "from 14 to 12"),
    (
        "URL with words",
        edited(DAILY, line7="https://example.org/cache 见此"),
        7,
        "without spaces; move “见此”",
    ),
    ("URL with a space", edited(DAILY, line7="https://example.org/ca che"), 7, "without spaces"),
    ("URL not ASCII", edited(DAILY, line7="https://example.org/v1。"), 7, "“。” cannot stand in a URL"),
    ("URL with punctuation", edited(DAILY, line7="https://example.org/v1."), 7, "ends in “.”"),
    ("URL with a bracket", edited(DAILY, line7="https://example.org/v1)"), 7, "ends in “)”"),
    ("URL with no host", edited(DAILY, line7="https:///cache"), 7, "no valid host"),
    ("URL with nothing", edited(DAILY, line7="https://"), 7, "no valid host"),
    ("URL with a bad port", edited(DAILY, line7="https://example.org:99999/"), 7, "no valid host"),
    ("URL with a bad bracket", edited(DAILY, line7="http://[::1/"), 7, "no valid host"),
    ("URL with a user", edited(DAILY, line7="https://example.org@evil.example/"), 7, "up to the @"),
    ("URL too long", edited(DAILY, line7="https://example.org/" + "x" * 2000), 7, "2,020 characters"),
    ("URL in a title", edited(DAILY, line7="来源：https://example.org/cache"), 7, "alone on its line"),
    ("URL without scheme", edited(DAILY, line7="www.example.org/cache"), 7, "with its https://"),
    ("period reversed", edited(WEEKLY, line2="2026-10-25 至 2026-10-18，几件事。"), 2, "runs backwards"),
    ("impossible date", edited(DAILY, line5="2026-02-30 的研究。"), 5, "2026-02-30 is no day"),
    ("impossible period", edited(WEEKLY, line2="2026-10-18 至 2026-10-32，几件事。"), 2, "2026-10-32"),
    ("control character", edited(DAILY, line5="两种\x07缓存。"), 5, "U+0007"),
    ("C1 control", edited(DAILY, line4="缓存\x85写回"), 4, "U+0085"),
    ("line separator", edited(DAILY, line4="缓存\u2028写回"), 4, "U+2028"),
    ("lone CR", edited(DAILY, line4="缓存\r写回"), 4, "U+000D"),
    ("tab", edited(DAILY, line5="两种\t缓存。"), 5, "a tab stands after “两种”"),
    ("replacement character", edited(DAILY, line5="两种\ufffd缓存。"), 5, "U+FFFD"),
    (
        "private use",
        edited(DAILY, line5="\ue123缓存。"),
        5,
        "U+E123, which no reader sees, stands at the start",
    ),
    ("turned direction", edited(DAILY, line5="两种\u202e缓存。"), 5, "U+202E"),
    ("lone surrogate", edited(DAILY, line5="两种\ud800缓存。"), 5, "U+D800"),
    ("unclear title", edited(DAILY, line8="简讯", line9="检查能提前吗？"), 8, "“# 简讯” or “## 简讯”"),
    ("no word", edited(DAILY, line5="————\n两种缓存。"), 5, "holds no word"),
    ("bare mark", edited(DAILY, line3="#"), 3, "holds no word"),
    ("three marks", edited(DAILY, line3="### 重点"), 3, "### is no mark"),
    ("marked line too long", edited(DAILY, line4="## " + "字" * 61), 4, "61 characters"),
    ("line too long", edited(DAILY, line5="字" * 10_000 + "。"), 5, "10,001 characters"),
    ("text too long", DAILY + "\n" + "字。\n" * 200_000, 142_800, "1,000,000 are the most"),
    ("not UTF-8", DAILY.encode().replace("两种".encode(), "两种".encode("gbk")), 5, "0xC1 is not UTF-8"),
    ("UTF-16", DAILY.encode("utf-16"), 1, "is not UTF-8"),
]


@pytest.mark.parametrize(
    ("source", "line", "piece"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_malformed_text_is_refused_with_its_line(source: str | bytes, line: int, piece: str) -> None:
    faults = faults_of(source)
    assert any(fault.line == line and piece in fault.message for fault in faults), faults
    assert len(faults) <= 2


def test_all_faults_are_told_at_once_in_the_order_of_lines() -> None:
    faults = faults_of(
        edited(DAILY, line2=None, line5="字" * 99, line7="https://", line15="简讯", line17="2026-13-01。")
    )
    assert [fault.line for fault in faults] == [2, 4, 6, 14, 16]


def test_the_error_itself_tells_the_first_fault() -> None:
    with pytest.raises(SourceError, match=r"line 2: the lead is missing.*\(1 more\)"):
        parse(edited(DAILY, line2=None, line7="https://"))


def test_a_hopeless_text_gives_no_more_faults_than_one_can_read() -> None:
    assert len(faults_of("题\n" * 5000)) == FAULTS_SHOWN


def test_a_title_with_balanced_brackets_in_its_url_is_fine() -> None:
    text = edited(DAILY, line7="https://example.org/Cache_(computing)")
    assert parse(text).items[0].sources == ("https://example.org/Cache_(computing)",)


def test_a_format_is_asked_for_by_name() -> None:
    assert sources.parse(DAILY) == sources.parse(DAILY.encode(), "text") == parse(DAILY)
    with pytest.raises(Invalid, match="“docx” is no source format; use text"):
        sources.parse(DAILY, "docx")

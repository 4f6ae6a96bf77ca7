"""A Document answers for itself: its keys, dates, subject, outline, and where its closing question stands."""

import json
from datetime import date

import pytest

from app.issues import prose
from app.issues.document import (
    CrossReference,
    Document,
    Item,
    Period,
    Question,
    Section,
    join_question,
    outline,
    split_question,
    subject_of,
)


def an_item(title: str, *paragraphs: str) -> Item:
    return Item(title, paragraphs or ("一段话。",), ("https://example.org/a",))


def a_daily(*titles: str) -> Document:
    return Document("日报", ("导语。",), (Section("重点", tuple(an_item(title) for title in titles)),))


def a_weekly(*titles: str, lead: str = "这是导语。") -> Document:
    return Document("周报", (lead,), (Section(None, tuple(an_item(title) for title in titles)),))


@pytest.mark.parametrize(
    ("title", "key"),
    [
        ("TMA：少发搬运指令，能否变快", "TMA"),
        ("MXFP8 RL：采样：再采样", "MXFP8 RL"),
        ("vLLM: a new release", "vLLM"),
        ("At 12:30 nothing happened", "At 12:30 nothing happened"),
        ("：没有名字", "：没有名字"),
        ("没有冒号的题目", "没有冒号的题目"),
    ],
)
def test_the_key_of_an_item_is_what_stands_before_the_first_colon(title: str, key: str) -> None:
    assert an_item(title).key == key


def test_where_an_item_stood_does_not_change_what_it_is() -> None:
    read, made = Item("题", ("段。",), (), (7, 8)), Item("题", ("段。",))
    assert read == made
    assert hash(read) == hash(made)
    assert (read.line, made.line) == (7, None)


def test_the_subject_of_an_issue_with_sections_is_its_first_headline() -> None:
    assert subject_of(a_daily("TMA：少发指令", "RL：采样")) == "TMA：少发指令"


def test_the_subject_of_an_issue_without_sections_joins_its_keys() -> None:
    assert subject_of(a_weekly("TMA：少发", "四位推理：分开", "TMA：又一条")) == "TMA、四位推理"


def test_an_english_subject_is_joined_by_commas() -> None:
    items = (an_item("TMA: fewer", "A paragraph."), an_item("Agents: more", "Another."))
    assert subject_of(Document("Weekly", ("A lead.",), (Section(None, items),))) == "TMA, Agents"


def test_a_subject_that_grows_too_long_says_that_there_is_more() -> None:
    subject = subject_of(a_weekly(*(f"第{number}个相当长的名字：题" for number in range(10))))
    assert subject == "第0个相当长的名字、第1个相当长的名字、第2个相当长的名字、第3个相当长的名字 等"


def test_one_key_is_a_subject_however_long() -> None:
    assert subject_of(a_weekly("很长" * 30)) == "很长" * 30


def test_dates_are_read_from_the_text_and_not_from_the_sources() -> None:
    item = Item(
        "题：2026-10-20",
        ("2026-10-22 日报说过，2026-10-22 日报，2026-10-21 周报。",),
        ("https://a.org/2027-01-01",),
    )
    document = Document("周报", ("2026-10-18 至 2026-10-25，导语。",), (Section(None, (item,)),))
    assert document.period == Period(date(2026, 10, 18), date(2026, 10, 25))
    assert document.latest_date == date(2026, 10, 25)
    assert document.cross_references == (
        CrossReference(date(2026, 10, 22), "日报"),
        CrossReference(date(2026, 10, 21), "周报"),
    )


def test_a_document_without_dates_has_none() -> None:
    document = a_weekly("题")
    assert (document.period, document.latest_date, document.cross_references) == (None, None, ())


def test_an_english_period_is_read_too() -> None:
    document = a_weekly("题", lead="From 2026-10-18 to 2026-10-25 we read on, see 2026-10-22 daily.")
    assert document.period == Period(date(2026, 10, 18), date(2026, 10, 25))
    assert document.cross_references == (CrossReference(date(2026, 10, 22), "daily"),)


def test_the_outline_is_ready_for_json() -> None:
    document = Document(
        "日报", ("导语。",), (Section("重点", (Item("题", ("段。",), ("https://a.org/",), (4, 5, 6)),)),)
    )
    assert json.loads(json.dumps(outline(document))) == [
        {
            "section": "重点",
            "items": [{"title": "题", "paragraphs": ["段。"], "sources": ["https://a.org/"], "line": 4}],
        }
    ]


@pytest.mark.parametrize(
    ("paragraph", "rest", "question"),
    [
        ("说完了。带着一个问题读：为何？", "说完了。", Question("带着一个问题读", "为何？")),
        ("说完了。为何？", "说完了。", Question(None, "为何？")),
        (
            "说完了。一个超过十二个字符的很长的标签：为何？",
            "说完了。",
            Question(None, "一个超过十二个字符的很长的标签：为何？"),
        ),
        ("为何？", "", Question(None, "为何？")),
        ("他说“好。”你呢？", "他说“好。”", Question(None, "你呢？")),
        ("前文。他问“为什么？”，对吗？", "前文。", Question(None, "他问“为什么？”，对吗？")),
        ("前文。（这是什么？又如何）最后呢？", "前文。", Question(None, "（这是什么？又如何）最后呢？")),
        ("前文。1) 值得吗？", "前文。", Question(None, "1) 值得吗？")),
        ("带着一个问题读：这……为何？", "", Question("带着一个问题读", "这……为何？")),
        (
            "调用 torch.save() 与 v0.1.1 有何不同？",
            "",
            Question(None, "调用 torch.save() 与 v0.1.1 有何不同？"),
        ),
        ("真的？？", "", Question(None, "真的？？")),
    ],
)
def test_the_closing_question_is_the_last_sentence(paragraph: str, rest: str, question: Question) -> None:
    assert split_question(paragraph, han=True) == (rest, question)


@pytest.mark.parametrize("paragraph", ["说完了。", "他问：“为什么？”", "好！", "（为什么？）"])
def test_what_does_not_end_in_a_question_mark_is_no_question(paragraph: str) -> None:
    assert split_question(paragraph, han=True) == (paragraph, None)


@pytest.mark.parametrize(
    ("paragraph", "rest", "question"),
    [
        ("All said. One question: why?", "All said.", Question("One question", "why?")),
        (
            "Done in 0.1.1. Why do tools, e.g. PyTorch, matter?",
            "Done in 0.1.1.",
            Question(None, "Why do tools, e.g. PyTorch, matter?"),
        ),
        (
            "It works! Is Dr. Who vs. all others right?",
            "It works!",
            Question(None, "Is Dr. Who vs. all others right?"),
        ),
        ("He said “go.” Why?", "He said “go.”", Question(None, "Why?")),
    ],
)
def test_an_english_question_is_found_behind_a_dot(paragraph: str, rest: str, question: Question) -> None:
    assert split_question(paragraph, han=False) == (rest, question)
    assert join_question(rest, question, han=False) == paragraph


def test_one_chinese_name_leaves_an_english_text_english() -> None:
    assert not prose.written_in_han(
        ["Qwen (通义) is a family of models that many readers know by now, and they use it daily."]
    )
    assert prose.written_in_han(["TMA：少发搬运指令，能否变快还要看 FlashAttention-3"])
    assert not prose.written_in_han(["", "123"])

"""Markdown: what is read, how it becomes blocks and runs, and what is refused on which line."""

import pytest

from app.core.errors import Fault
from app.issues.blocks import Block, Code, Image, Listing, Mark, Passage, Quote, Run
from app.issues.document import Document, Question, SourceError
from app.issues.sources import format_of
from app.issues.sources.markdown import parse, write
from tests.issues.samples import MARKDOWN

START = "# 技术周报\n\n导语。\n\n## 缓存：写回\n\n"
STRONG, EM, CODE = (frozenset({mark}) for mark in Mark)


def blocks(text: str) -> tuple[Block, ...]:
    return parse(START + text).items[0].blocks


def runs(text: str) -> tuple[Run, ...]:
    (block,) = blocks(text)
    assert isinstance(block, Passage)
    return block.runs


def faults_of(source: str | bytes) -> tuple[Fault, ...]:
    with pytest.raises(SourceError) as caught:
        parse(source)
    return caught.value.faults


def shape(document: Document) -> list[tuple[str | None, list[tuple[str, int, int]]]]:
    return [
        (section.name, [(item.title, len(item.blocks), len(item.sources)) for item in section.items])
        for section in document.sections
    ]


# -- what is read


def test_an_issue_is_read_as_its_editors_mean_it() -> None:
    document = parse(MARKDOWN)
    assert document.title == "技术日报"
    assert document.summary == "本期重点：缓存为何没有变快。先看一篇论文。"
    assert shape(document) == [
        ("重点", [("缓存：先看瓶颈，再谈提速", 5, 2)]),
        ("经典回顾", [("日志：先写再改", 1, 0)]),
    ]
    assert document.question == Question("带着一个问题读", "断电之后还剩什么？")
    assert document.keys == ("缓存", "日志")
    assert document.items[0].lines == (7, 9, 12, 17, 19, 23, 25, 26)
    rows = MARKDOWN.split("\n")
    assert [rows[line - 1][:2] for line in document.items[0].lines[-2:]] == ["- ", "- "]


def test_without_sections_each_second_heading_is_an_item() -> None:
    document = parse("# 周报\n\n导语。\n\n又一段。\n\n## 一\n\n段。\n\n- https://a.org/\n\n## 二\n\n段。\n")
    assert len(document.lead) == 2
    assert shape(document) == [(None, [("一", 1, 1), ("二", 1, 0)])]


def test_a_paragraph_without_markup_is_its_text() -> None:
    assert blocks("一段话，\n换了行；\nEnglish words\nand more 字\nword。") == (
        "一段话，换了行； English words and more 字 word。",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**重点。**然后", [("重点。", STRONG), ("然后", None)]),
        ("他说**“重点”**之后", [("他说", None), ("“重点”", STRONG), ("之后", None)]),
        ("看**（一）**看", [("看", None), ("（一）", STRONG), ("看", None)]),
        ("**《书》**a", [("《书》", STRONG), ("a", None)]),
        ("*真的？*好", [("真的？", EM), ("好", None)]),
        ("用`a_b`。", [("用", None), ("a_b", CODE), ("。", None)]),
        ("a ***b*** c", [("a ", None), ("b", STRONG | EM), (" c", None)]),
        ("snake_case_word 与 **b**", [("snake_case_word 与 ", None), ("b", STRONG)]),
        ("2 * 3 * 4 与 **b**", [("2 * 3 * 4 与 ", None), ("b", STRONG)]),
    ],
)
def test_emphasis_stands_right_beside_chinese(
    text: str, expected: list[tuple[str, frozenset[Mark] | None]]
) -> None:
    assert runs(text) == tuple(Run(words, marks or frozenset()) for words, marks in expected)


@pytest.mark.parametrize(
    "text",
    ['a*"b"*c', "a**(b)**c", "foo_bar_baz", "** a **", "a_“b”_c"],
)
def test_beside_other_scripts_emphasis_is_that_of_commonmark(text: str) -> None:
    assert blocks(text) == (text,)


@pytest.mark.parametrize(
    ("before", "url", "after"),
    [
        ("见", "https://example.org/a", "。然后"),
        ("（", "https://example.org/a_b_c", "）"),
        ("见 ", "http://example.org/p_(q)", "，又"),
        ("(see ", "https://example.org/a?b=1&c=2#d", ")."),
        ("a ", "HTTPS://example.org/", "!"),
        ("“", "https://example.org/a", "”、"),
    ],
)
def test_a_bare_url_ends_where_the_sentence_goes_on(before: str, url: str, after: str) -> None:
    assert runs(before + url + after) == (Run(before), Run(url, url=url), Run(after))


def test_a_link_holds_what_stands_between_its_brackets() -> None:
    assert runs("看[论文 **一**](https://a.org/x)。") == (
        Run("看"),
        Run("论文 ", url="https://a.org/x"),
        Run("一", STRONG, "https://a.org/x"),
        Run("。"),
    )
    assert runs("看[论文][x]。\n\n[x]: https://a.org/x")[1] == Run("论文", url="https://a.org/x")


@pytest.mark.parametrize("marked", ["[one](https://a.org/)", "**one**", "*one*", "`one`"])
def test_a_line_that_ends_beside_marked_words_leaves_its_space_outside_them(marked: str) -> None:
    before, words, after = runs(f"See\n{marked}\nand more.")
    assert (before.text, words.text, after.text) == ("See ", "one", " and more.")


def test_a_line_that_ends_within_marked_words_keeps_its_space_there() -> None:
    assert [run.text for run in runs("See **all\nof them** [and\nmore](https://a.org/).")] == [
        "See ", "all of them", " ", "and more", ".",
    ]  # fmt: skip


def test_lists_quotes_code_and_images_are_blocks() -> None:
    assert blocks("3. 一\n4. 二\n   - 三") == (Listing((("一",), ("二", Listing((("三",),)))), 3),)
    assert blocks("> 引。\n>\n> 又。") == (Quote(("引。", "又。")),)
    assert blocks("```python\nx = 1\n\n  y\n```") == (Code("x = 1\n\n  y", "python"),)
    assert blocks("段。\n\n    x = 1") == ("段。", Code("x = 1"))
    assert blocks("![图](https://a.org/a.png)") == (Image("https://a.org/a.png", "图"),)


def test_only_the_last_list_of_nothing_but_bare_urls_is_the_sources() -> None:
    assert parse(START + "段。\n\n- <https://a.org/>\n- https://b.org/\n").items[0].sources == (
        "https://a.org/",
        "https://b.org/",
    )
    for text in (
        "- https://a.org/\n- 二",
        "1. https://a.org/",
        "- [a](https://a.org/)",
        "- https://a.org/ 二",
    ):
        assert parse(f"{START}段。\n\n{text}\n").items[0].sources == ()
    assert parse(START + "- https://a.org/\n\n段。\n").items[0].sources == ()


def test_a_question_in_strong_words_stays_where_it_is() -> None:
    assert parse(START + "说完了。**为什么？**").question is None
    document = parse(START + "**说完了。**为什么？")
    assert document.question == Question(None, "为什么？")
    assert document.items[0].blocks == (Passage((Run("说完了。", STRONG),)),)


def test_a_bom_crlf_and_tabs_are_read() -> None:
    dressed = b"\xef\xbb\xbf" + MARKDOWN.replace("\n", "\r\n").replace("   ", "\t").encode()
    assert parse(dressed) == parse(MARKDOWN)


def test_what_is_written_is_good_markdown() -> None:
    written = write(parse(MARKDOWN))
    for row in (
        "本期重点：**缓存为何没有变快。**先看[一篇论文](https://arxiv.org/abs/2410.12345)。",
        "- <https://github.com/example/cache/pull/12>",
        "> 没有测量，就没有结论。",
        "### 日志：先写再改",
    ):
        assert row in written.split("\n")


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.md", "markdown"),
        ("A.MD", "markdown"),
        ("a.markdown", "markdown"),
        ("a.txt", "text"),
        ("md", "text"),
    ],
)
def test_the_name_of_a_file_tells_its_format(name: str, format: str) -> None:
    assert format_of(name) == format


# -- what is refused

REFUSED: list[tuple[str | bytes, int, str]] = [
    ("", 1, "empty"),
    ("\n　\n", 1, "empty"),
    ("技术周报\n\n导语。\n\n## 一\n\n段。", 1, "behind one #"),
    ("## 一\n\n段。", 1, "behind one #"),
    ("# 报\n\n## 一\n\n段。", 1, "lead is missing"),
    ("# 报\n\n导语。", 3, "no item follows"),
    ("# 报\n\n- 导语\n\n## 一\n\n段。", 3, "the lead has paragraphs only"),
    ("# 报\n\n2026-10-25 至 2026-10-18。\n\n## 一\n\n段。", 3, "runs backwards"),
    (START + "段。\n\n# 二\n\n段。", 9, "second title"),
    ("# 报\n\n导语。\n\n### 一\n\n段。", 5, "in no section"),
    (START + "段。\n\n### 二\n\n段。", 7, "directly under the section"),
    ("# 报\n\n导语。\n\n## 甲\n\n### 一\n\n段。\n\n## 乙\n\n段。", 11, "an item, and"),
    ("# 报\n\n导语。\n\n## 甲\n\n段。\n\n## 乙\n\n### 一\n\n段。", 9, "a section, and"),
    ("# 报\n\n导语。\n\n## 甲\n\n### 一\n\n段。\n\n## 甲\n\n### 二\n\n段。", 11, "begun on line 5"),
    (START, 5, "no paragraph"),
    (START + "- https://a.org/", 5, "no paragraph"),
    (START + "#### 深", 7, "too deep"),
    (START + "段\n===", 7, "underlined"),
    (START + "段\n---", 7, "underlined"),
    (START + "---", 7, "a rule"),
    ("# 报\n\n导语。\n\n## 一 **二**\n\n段。", 5, "holds markup"),
    ("# 报\n\n导语。\n\n##\n\n段。", 5, "heading without words"),
    (f"# 报\n\n导语。\n\n## {'长' * 61}\n\n段。", 5, "61 characters; 60"),
    (START + "一\n<b>二</b>", 8, "raw HTML"),
    (START + "<div>\n二\n</div>", 7, "raw HTML"),
    (START + "<!-- 二 -->", 7, "raw HTML"),
    (START + "一  \n二", 7, "forced line break"),
    (START + "一\\\n二", 7, "forced line break"),
    (START + "| 一 | 二 |\n|---|---|\n| 三 | 四 |", 7, "a table"),
    (START + "~~一~~", 7, "struck-out"),
    (START + "[一](二)", 7, "no web address"),
    (START + "[一](javascript:alert)", 7, "no web address"),
    (START + "<mailto:a@b.org>", 7, "no web address"),
    (START + "[一](https://a.org/ '二')", 7, "has a title"),
    (START + "[](https://a.org/)", 7, "has no words"),
    (START + "[一](https:///b)", 7, "no valid host"),
    (START + "[一](https://u@a.org/)", 7, "names a user"),
    (START + "[一](<https://a.org/二>)", 7, "percent-encoded"),
    (START + "段。\n\n[一]: https://a.org/", 9, "no link uses the definition"),
    (START + "[一]\n\n[一]: https://a.org/\n[一]: https://b.org/", 10, "defined twice"),
    (START + "![](https://a.org/a.png)", 7, "without words"),
    (START + "![图](http://a.org/a.png)", 7, "over https://"),
    (START + "![图](https://a.org/a.svg)", 7, "PNG, JPEG and GIF"),
    (START + "一 ![图](https://a.org/a.png)", 7, "paragraph of its own"),
    (START + "- 一\n-\n- 三", 8, "list entry without words"),
    (START + "> ", 7, "quote without words"),
    (START + "- - - - 一", 7, "more than 3 deep"),
    (START + "- # 一", 7, "heading within"),
    (START + "99999. 一", 7, "9,999 is the most"),
    (START + "```\n\n```", 7, "code block without code"),
    (START + "```a b\nx\n```", 7, "names no language"),
    (START + "……", 7, "no word"),
    (START + "2026-02-30。", 7, "no day of the calendar"),
    (START + "零\u200b宽", 7, "no reader sees"),
    (START + "零&#8203;宽", 7, "no reader sees"),
    (START + "长" * 10_001, 7, "10,000 are the most"),
    (START + ("长" * 9_000 + "\n") * 2, 7, "10,000 are the most"),
    (START + "a\n" * 5_000, 5_001, "5,000 are the most"),
    (START + "长" * 70_000, 7, "200,000 are the most"),
    (START + ("*" * 5_001 + "\n") * 2, 9, "10,000 are the most"),
    (b"# \xff", 1, "not UTF-8"),
]


@pytest.mark.parametrize(("source", "line", "words"), REFUSED)
def test_what_is_no_issue_is_refused_with_its_line(source: str | bytes, line: int, words: str) -> None:
    assert any(fault.line == line and words in fault.message for fault in faults_of(source)), faults_of(
        source
    )


def test_all_faults_come_at_once_and_only_those_that_are_there() -> None:
    found = faults_of(START + "<b>一</b>\n\n---\n\n## 二\n\n| 一 |\n|---|\n| 二 |\n")
    assert [fault.line for fault in found] == [7, 7, 9, 13]

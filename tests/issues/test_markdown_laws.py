"""What holds for every Markdown text and every Document: it is read or refused, and writing undoes reading."""

import re
import unicodedata
from itertools import groupby

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.issues import lines
from app.issues.blocks import Block, Code, Image, Listing, Mark, Passage, Quote, Run, paragraph
from app.issues.document import Document, Item, Section, SourceError, with_question
from app.issues.sources import markdown, plaintext
from tests.issues.samples import DAILY, ENGLISH, MARKDOWN, WEEKLY
from tests.issues.test_plaintext_laws import documents as plain_documents

EVERY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
PIECES = re.split(
    r"[|]",
    "重点|缓存|word|v_1_b|_|*|**|。|，|（|）|“|”|。”| |  |\xa0|\u3000|!|!|[|](|]|)|`|``|#|##|-|+|1.|2)|>|=|~~|&|&amp;"
    "|&#42;|\\|<|https://|http:|://a.b|e\u0301|👩\u200d💻|…|？|?|:|：|~|[a]: |2026-10-26|==|--|---|$|e|é|ⅷ|́",
)
URLS = [
    "https://example.org/a",
    "http://b.example/x?y=1&copy;=2#z",
    "https://[::1]:80/",
    "HTTPS://Example.org/p_(q)",
    "https://example.org/a_b_c/*d*/~e",
]
PICTURES = ["https://example.org/a.png", "https://example.org/b_(c).jpeg?d=1"]
PLAIN: frozenset[Mark] = frozenset()


def normal(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def fits(text: str) -> bool:
    return lines.classify(1, f"字{text}。", han=True).complaint is None


words = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map(lambda parts: normal("".join(parts)))
fit_words = words.filter(fits)
marks = st.sets(st.sampled_from([Mark.STRONG, Mark.EM])).map(frozenset)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A run of any kind: plain, marked, code, a link with words, a bare URL."""
    kind = draw(st.sampled_from(["plain", "marked", "code", "link", "bare"]))
    text = draw(fit_words)
    given_marks = draw(marks) if kind != "plain" else PLAIN
    url = draw(st.sampled_from(URLS)) if kind in ("link", "bare") else None
    if kind == "code" or (kind == "link" and draw(st.booleans())):
        given_marks |= {Mark.CODE}
    if kind == "bare" and url:
        return Run(url, given_marks - {Mark.CODE}, url)
    return Run(text, given_marks, url)


def passages() -> st.SearchStrategy[str | Passage]:
    """Paragraphs as they come from a text: in NFC, with something to read in them, no blanks around them."""

    def framed(parts: list[Run]) -> str | Passage:
        return paragraph([Run("始"), *parts, Run("终")])

    bare = st.lists(runs(), min_size=1, max_size=5).map(paragraph)
    return st.one_of(bare, st.lists(runs(), max_size=5).map(framed)).filter(is_canonical)


def is_canonical(block: str | Passage) -> bool:
    found = [Run(block)] if isinstance(block, str) else list(block.runs)
    whole = "".join(run.text for run in found)
    links = [
        "".join(run.text for run in link) for url, link in groupby(found, key=lambda run: run.url) if url
    ]
    return (
        whole.strip(lines.PADDING) == whole
        and fits(whole)
        and any(char.isalnum() for char in whole)
        and all(run.text == normal(run.text) for run in found)
        and all(text.strip(lines.PADDING) for text in links)
    )


def blocks(depth: int = 2) -> st.SearchStrategy[Block]:
    """Blocks of every kind, lists and quotes within each other."""
    code_rows = st.lists(
        st.sampled_from(["x = 1", "", "  y", "```", "~~~", "# z", "缓存", "<b>", "> a"]), max_size=4
    )
    codes = code_rows.map(lambda rows: "\n".join(["a", *rows, "b"]))
    leaves: list[st.SearchStrategy[Block]] = [
        passages(),
        passages(),
        st.builds(Code, codes, st.sampled_from(["", "python", "c++"])),
        st.builds(Image, st.sampled_from(PICTURES), passages().filter(lambda block: isinstance(block, str))),
    ]
    if not depth:
        return st.one_of(leaves)
    inner = st.lists(blocks(depth - 1), min_size=1, max_size=3).map(tuple)
    entries = st.lists(inner, min_size=1, max_size=3).map(tuple)
    start = st.one_of(st.none(), st.integers(0, 9_999))
    return st.one_of(*leaves, st.builds(Listing, entries, start), st.builds(Quote, inner))


def is_sources(block: Block) -> bool:
    return (
        isinstance(block, Listing)
        and block.start is None
        and all(
            len(entry) == 1
            and isinstance(entry[0], Passage)
            and len(entry[0].runs) == 1
            and entry[0].runs[0].is_bare
            for entry in block.entries
        )
    )


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Documents of every kind that Markdown can give."""
    title = words.map(lambda text: f"题{text}".strip(lines.PADDING)).filter(
        lambda text: fits(text) and len(text) < 50
    )

    def items() -> st.SearchStrategy[tuple[Item, ...]]:
        some = st.lists(blocks(), min_size=1, max_size=3).map(tuple)
        item = st.builds(Item, title, some, st.lists(st.sampled_from(URLS), max_size=2).map(tuple))
        sound = item.filter(lambda one: bool(one.sources) or not is_sources(one.blocks[-1]))
        return st.lists(sound, min_size=1, max_size=2).map(tuple)

    if draw(st.booleans()):
        names = draw(st.lists(title, min_size=1, max_size=2, unique=True))
        sections = tuple(Section(name, draw(items())) for name in names)
    else:
        sections = (Section(None, draw(items())),)
    lead = tuple(draw(st.lists(passages(), min_size=1, max_size=2)))
    return with_question(Document(draw(title), lead, sections))


@EVERY
@given(documents())
def test_what_is_written_is_read_back(document: Document) -> None:
    assert markdown.parse(markdown.write(document)) == document


@EVERY
@given(plain_documents())
def test_an_issue_in_the_house_format_can_be_set_down_in_markdown(document: Document) -> None:
    assert markdown.parse(markdown.write(document)) == document


def check(source: str | bytes) -> None:
    """Read a text; one that is refused has its lines, and anything but SourceError is a bug."""
    try:
        document = markdown.parse(source)
    except SourceError as error:
        refusal = error
    else:
        check_rewritten(document)
        return
    assert refusal.faults
    assert all(fault.line and fault.message for fault in refusal.faults)


def check_rewritten(document: Document) -> None:
    """Writing a document and reading it gives it back, and writing it again changes nothing."""
    written = markdown.write(document)
    assert markdown.parse(written) == document
    assert markdown.write(markdown.parse(written)) == written


ROWS = re.split(
    r"[|]",
    "# 技术周报|## 简讯|## 重点|### 缓存：快|#### 深|导语。|一段话。|为什么？|说。标签：为什么？|- https://example.org/a|"
    "- <https://example.org/b>|* 一|1. 二|  - 三|   四|> 引|```|~~~|x = 1|    y|---|===|**重点。**然后|*a*b|"
    "_a_。|<b>|[a]|[a]: https://a.b|![图](https://a.b/c.png)|https://a.b/c。|`code`||||  |\\\\",
)


@EVERY
@given(st.lists(st.sampled_from(ROWS), max_size=16), st.booleans())
def test_any_order_of_lines_is_read_or_refused(rows: list[str], begun: bool) -> None:
    check("\n".join(["# 技术周报", "", "导语。", "", "## 一"] * begun + rows))


@EVERY
@given(words)
def test_any_paragraph_is_read_or_refused(text: str) -> None:
    check(f"# 技术周报\n\n导语。\n\n## 一\n\n{text}\n\n{text} 终\n\n- {text}")


@EVERY
@given(st.one_of(st.text(), st.binary(), st.lists(st.text(max_size=12)).map("\n".join)))
def test_any_text_and_any_bytes_are_read_or_refused(source: str | bytes) -> None:
    check(source)
    if isinstance(source, str):
        check(f"# 技术周报\n\n导语。\n\n## 一\n\n{source}")


@EVERY
@given(st.data())
def test_a_damaged_issue_is_read_or_refused(data: st.DataObject) -> None:
    text = MARKDOWN
    for _ in range(data.draw(st.integers(1, 4))):
        at, end = (data.draw(st.integers(0, len(text))) for _ in range(2))
        text = (
            text[:at]
            + data.draw(st.sampled_from(["", *PIECES, "\n", "\n\n"]))
            + text[max(at, min(end, at + 9)) :]
        )
    check(text)


@pytest.mark.parametrize("text", [DAILY, WEEKLY, ENGLISH], ids=["daily", "weekly", "english"])
def test_a_sample_says_the_same_in_both_formats(text: str) -> None:
    document = plaintext.parse(text)
    assert markdown.parse(markdown.write(document)) == document


HEAVY = re.split(
    r"\|",
    "a |*a |**a** |_a_ |[|![|`|``` |a`|<|&|&amp;|[a](|](|\\|https://a |https://a/(|>|> |- |*|_|**a*|~~a|&#1;|<a |[a]|"
    "重**。|1. |x://|:|<!--|#",
)


@pytest.mark.parametrize("piece", HEAVY)
def test_the_heaviest_text_that_is_allowed_is_read_in_one_pass(piece: str) -> None:
    weight = sum(map("\\`*_[]<>&!:~".count, piece))
    row = piece * min(
        4_900 // len(piece), 4_900 // max(1, weight)
    )  # written down it has a mark for each mark
    check("# 题\n\n导语。\n\n## 题\n\n字" + row)


@pytest.mark.parametrize("piece", HEAVY)
def test_a_line_that_is_too_long_is_refused_at_once(piece: str) -> None:
    with pytest.raises(SourceError):
        markdown.parse(f"# 题\n\n导语。\n\n## 题\n\n字{piece * (180_000 // len(piece.encode()))}")


@pytest.mark.parametrize("row", ["a", "- a", "> a", "# a", "[a]: https://a.b", "```", "|-|-|", ""])
def test_a_text_of_a_hundred_thousand_lines_is_refused_at_once(row: str) -> None:
    with pytest.raises(SourceError):
        markdown.parse("# 题\n\n导语。\n\n## 题\n\n" + f"{row}\n" * (190_000 // (len(row) + 1)))

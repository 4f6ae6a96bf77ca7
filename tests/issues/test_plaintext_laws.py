"""What holds for every text and every Document: a text is read or refused, and writing undoes reading."""

import re
import unicodedata

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from app.issues import lines
from app.issues.document import Document, Item, Section, SourceError, split_question
from app.issues.lines import Kind
from app.issues.sources.plaintext import parse, write
from tests.issues.samples import DAILY, ENGLISH, WEEKLY, seed

EVERY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
HAN_PIECES = re.split(
    r"[|]",
    "模型|训练|TMA| GPU |，|：|“快。”|（为何？）|……|v0.1|。|？|！|? |# |## |2026-10-26|2026-10-22 日报|"
    "2026-10-18 至 2026-10-25|e\u0301|👩\u200d💻|”|（|: |\u3000|\xa0|'|http://a.b ",
)
ENGLISH_PIECES = re.split(
    r"[|]",
    "model|Training |e.g. |v0.1|. |, |: |“fast.” |(why?) |…|? |! |?|.|# |2026-10-26 |"
    "2026-10-18 to 2026-10-25 |：|。|？|Dr. |通|'|)|https://a.b ",
)
URLS = ["https://example.org/a", "http://b.example/x?y=1#z", "https://[::1]:80/", "HTTPS://Example.org/p_(q)"]


def normal(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip(lines.PADDING)


def texts(han: bool, *kinds: Kind, ends: tuple[str, ...] = ("",)) -> st.SearchStrategy[str]:
    """Texts that a reader of lines takes for one of the kinds and has no complaint about."""
    pieces = st.lists(st.sampled_from(HAN_PIECES if han else ENGLISH_PIECES), min_size=1, max_size=8)
    begun = "型" if han else "Model"

    def fits(text: str) -> bool:
        line = lines.classify(1, text, han)
        return not line.complaint and line.kind in kinds and text.strip(lines.PADDING) == text

    whole = st.tuples(st.booleans(), pieces, st.sampled_from(ends))
    return whole.map(lambda parts: normal(begun * parts[0] + "".join(parts[1]) + parts[2])).filter(fits)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Documents of every kind a text can give: with and without sections, a question, sources."""
    han = draw(st.booleans())
    stops = ("。", "！", "？", "……", "。”", "？", "?") if han else (".", "!", "?", "…", ".”", "?)")
    paragraph = texts(han, Kind.PARAGRAPH, ends=stops)
    head = texts(han, Kind.HEAD)
    title = texts(han, Kind.HEAD, Kind.PARAGRAPH, ends=("", "", "？", "！", "?")).filter(
        lambda text: len(text) <= 60
    )

    def items(least: int) -> st.SearchStrategy[list[Item]]:
        paragraphs = st.lists(paragraph, min_size=1, max_size=3).map(tuple)
        urls = st.lists(st.sampled_from(URLS), max_size=2).map(tuple)
        return st.lists(st.builds(Item, title, paragraphs, urls), min_size=least, max_size=3)

    if draw(st.booleans()):
        names = draw(st.lists(title, min_size=1, max_size=3, unique=True))
        sections = [Section(name, tuple(draw(items(1)))) for name in names]
    else:
        sections = [Section(None, tuple(draw(items(1))))]
    *before, final = sections[-1].items[-1].paragraphs
    rest, question = split_question(final, han)
    kept = (*before, rest) if rest else tuple(before) or (final,)
    question = question if kept != (final,) else None
    last = Item(sections[-1].items[-1].title, kept, sections[-1].items[-1].sources)
    sections[-1] = Section(sections[-1].name, (*sections[-1].items[:-1], last))
    document = Document(
        draw(head), tuple(draw(st.lists(paragraph, min_size=1, max_size=2))), tuple(sections), question
    )
    assume(document.in_han == han)
    return document


@EVERY
@given(documents())
def test_what_is_written_is_read_back(document: Document) -> None:
    assert parse(write(document)) == document


@EVERY
@given(documents())
def test_no_mark_is_written_that_could_be_left_out(document: Document) -> None:
    rows = write(document).splitlines()
    for at, row in enumerate(rows):
        if row.startswith(("# ", "## ")):
            without = [*rows[:at], row.split(" ", 1)[1], *rows[at + 1 :]]
            assert read_or_none("\n".join(without)) != document


def read_or_none(source: str | bytes) -> Document | None:
    """Read a text; one that is refused has its lines, and anything but SourceError is a bug."""
    try:
        return parse(source)
    except SourceError as error:
        refusal = error
    assert refusal.faults
    assert all(fault.line and fault.message for fault in refusal.faults)
    return None


def check(source: str | bytes) -> None:
    if document := read_or_none(source):
        written = write(document)
        assert parse(written) == document
        assert write(parse(written)) == written


ROWS = re.split(
    r"[|]",
    "技术日报|简讯|重点|缓存：一个超过十二个字符的题目|一段话。|为什么？|“为什么？”|真好！|完了……|说。为什么？|"
    "说。标签：为什么？|https://example.org/a|# 简讯|# 为什么？|## 为什么？|## 缓存||#|Model|A sentence.",
)


@EVERY
@given(st.lists(st.sampled_from(ROWS), max_size=14), st.booleans())
def test_any_order_of_lines_is_read_or_refused(rows: list[str], begun: bool) -> None:
    check("\n".join(["技术周报", "导语。"] * begun + rows))


@EVERY
@given(st.one_of(st.text(), st.binary(), st.lists(st.text(max_size=12)).map("\n".join)))
def test_any_text_and_any_bytes_are_read_or_refused(source: str | bytes) -> None:
    check(source)


@EVERY
@given(st.data(), st.sampled_from(["daily", "weekly", "english"]))
def test_a_damaged_issue_is_read_or_refused(data: st.DataObject, name: str) -> None:
    rows = {"daily": DAILY, "weekly": WEEKLY, "english": ENGLISH}[name].split("\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at, other = (data.draw(st.integers(0, len(rows) - 1)) for _ in range(2))
        cut = data.draw(st.integers(0, 80))
        char = data.draw(st.characters())
        damage = {
            "delete": rows[:at] + rows[at + 1 :] or [""],
            "repeat": [*rows[: at + 1], *rows[at:]],
            "move": [*rows[:at], rows[other], *rows[at:]],
            "cut": [*rows[:at], rows[at][:cut], *rows[at + 1 :]],
            "break": [*rows[:at], rows[at][:cut], rows[at][cut:], *rows[at + 1 :]],
            "insert": [*rows[:at], rows[at][:cut] + char + rows[at][cut:], *rows[at + 1 :]],
            "join": [*rows[:at], "".join(rows[at : at + 2]), *rows[at + 2 :]],
        }
        rows = damage[data.draw(st.sampled_from(sorted(damage)))]
    check("\n".join(rows))


@pytest.mark.parametrize("name", ["daily", "weekly"])
def test_a_seed_that_lost_any_line_is_read_or_refused(name: str) -> None:
    rows = seed(name).decode().split("\n")
    for at in range(len(rows)):
        check("\n".join([*rows[:at], *rows[at + 1 :]]))
        check("\n".join([*rows[:at], rows[at][: len(rows[at]) // 2], *rows[at + 1 :]]))


HEAVY = [
    "a ",
    "。",
    "？",
    "”",
    "'",
    "（",
    "a. ",
    "# ",
    "#",
    "https://",
    "2026-",
    "：",
    "x/",
    "？ ",
    "“？”",
    "a\u3000",
]


@pytest.mark.parametrize("piece", HEAVY)
def test_a_line_of_a_million_bytes_is_refused_at_once(piece: str) -> None:
    million = piece * (900_000 // len(piece.encode()))
    for text in (million, f"题\n导。\n题\n{million}。", f"题\n导。\n题\n段。\nhttps://a{million}"):
        assert read_or_none(text) is None


@pytest.mark.parametrize("piece", [*HEAVY, " ", "\u3000"])
def test_a_million_bytes_in_long_lines_are_read_in_one_pass(piece: str) -> None:
    row = "字" + piece * (9_900 // len(piece)) + "字？"
    rows = [row] * (900_000 // len(row.encode()))
    document = read_or_none("\n".join(["题", "导。", "题", *rows]))
    assert document is not None
    assert parse(write(document)) == document

"""Files of readers are read whatever they are: encodings, delimiters, quotes, names of columns, hostile bytes."""

import io
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.errors import Fault, Invalid
from app.subscribers import addresses
from app.subscribers.imports import PRESETS, cells, csv, encodings, quick
from app.subscribers.imports.candidate import Candidate, Table, Unreadable

READERS = "email,name,编号\nlin@example.com,林一,1\nchen@example.com,陈二,2\n"


def opened(data: bytes) -> tuple[Table, list[Candidate | Fault]]:
    """Read a file as it comes: the table, and each row."""
    text = b"".join(encodings.recoded(io.BytesIO(data))).decode()
    tape = csv.Tape(io.StringIO(text, newline="\n"))
    table = csv.head(tape, PRESETS)
    return table, list(csv.read(tape, table))


def rows_of(text: str) -> list[Candidate]:
    """Read a text all of whose rows are good."""
    rows = opened(text.encode())[1]
    assert not [row for row in rows if isinstance(row, Fault)]
    return [row for row in rows if isinstance(row, Candidate)]


def faults_of(text: str) -> list[tuple[int | None, str]]:
    return [(row.line, row.message) for row in opened(text.encode())[1] if isinstance(row, Fault)]


def only(text: str) -> Candidate:
    rows = rows_of(text)
    assert len(rows) == 1
    return rows[0]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_an_encoding_is_told_by_its_bytes(encoding: str) -> None:
    _, rows = opened(READERS.encode(encoding))
    assert [(row.email, row.name) for row in rows if isinstance(row, Candidate)] == [
        ("lin@example.com", "林一"),
        ("chen@example.com", "陈二"),
    ]


def test_a_chinese_name_far_down_still_tells_the_encoding() -> None:
    text = "email,name\n" + "a@example.com,plain\n" * 200_000 + "z@example.com,赵六\n"
    _, rows = opened(text.encode("gb18030"))
    assert isinstance(rows[-1], Candidate)
    assert rows[-1].name == "赵六"


def test_bytes_of_no_known_encoding_are_refused_with_their_line() -> None:
    with pytest.raises(Unreadable, match="save the file as UTF-8") as caught:
        opened(b"email,name\na@example.com,x\nb@example.com,\xff\xff\n")
    assert caught.value.faults[0].line == 3


@pytest.mark.parametrize("start", [b"PK\x03\x04", b"\x1f\x8b\x08"])
def test_an_archive_or_a_spreadsheet_is_refused(start: bytes) -> None:
    with pytest.raises(Unreadable, match="export CSV"):
        opened(start + b"email\n")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_delimiter_is_told_by_the_header(delimiter: str) -> None:
    text = delimiter.join(["名字", "邮箱", "note, or; not"]).replace("note, or; not", '"note, or; not"')
    rows = rows_of(f"{text}\n{delimiter.join(['林一', 'lin@example.com', 'x'])}\n")
    assert [(row.email, row.name) for row in rows] == [("lin@example.com", "林一")]


def test_a_spreadsheets_word_on_its_delimiter_is_taken() -> None:
    assert only("sep=;\nemail;name\na@example.com;Ann\n").name == "Ann"


def test_quoted_fields_hold_newlines_and_delimiters() -> None:
    rows = rows_of('email,name\na@example.com,"Ann\nof, the ""North"""\nb@example.com,Bo\n')
    assert [(row.line, row.name) for row in rows] == [(2, 'Ann of, the "North"'), (4, "Bo")]


def test_the_line_ends_of_every_system_are_read() -> None:
    for end in ("\n", "\r\n", "\r"):
        assert [row.email for row in rows_of(f"email{end}a@example.com{end}b@example.com{end}")] == [
            "a@example.com",
            "b@example.com",
        ]


def test_a_name_beside_its_address_is_kept() -> None:
    rows = rows_of('email\nAnn <a@example.com>\n"陈二" <b@example.com>\n<c@example.com>\n')
    assert [(row.email, row.name) for row in rows] == [
        ("a@example.com", "Ann"),
        ("b@example.com", "陈二"),
        ("c@example.com", ""),
    ]


@pytest.mark.parametrize("name", ["邮箱", "电子邮箱", "E-mail Address", "email_address", " EMAIL ", "Ｅmail"])
def test_an_address_column_is_known_by_its_names(name: str) -> None:
    table, rows = opened(f"{name},别的\na@example.com,1\n".encode())
    assert isinstance(rows[0], Candidate)
    assert rows[0].email == "a@example.com"
    assert table.taken == {"email": name.strip()}
    assert table.ignored == ("别的",)


def test_names_in_two_columns_are_joined_as_their_language_has_it() -> None:
    assert only("邮箱,姓,名\na@example.com,林,一\n").name == "林一"
    assert only("email,First Name,Last Name\na@example.com,Ann,Lee\n").name == "Ann Lee"


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("", "must name the columns"),
        ("name,city\n", "must name the columns"),
        ("a@example.com,Ann\n", "is a reader already"),
        ("email,name,Email\n", "names a column twice"),
        ('"email\n', "must name the columns"),
    ],
)
def test_a_header_that_says_nothing_is_refused(header: str, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        opened(header.encode())


def test_a_million_columns_are_refused_at_once() -> None:
    with pytest.raises(Unreadable) as caught:
        opened(b"email" + b"," * 1_000_000 + b"\n")
    assert caught.value.status == 400
    with pytest.raises(Unreadable, match="201 columns"):
        opened(b"email" + b"," * 200 + b"\n")


def test_a_line_without_an_end_is_refused() -> None:
    with pytest.raises(Unreadable, match="longer than"):
        opened(b"email\n" + b"x" * 3_000_000)


def test_a_bad_row_spoils_no_other() -> None:
    text = 'email,name\na@example.com,"Ann Lee\nb@example.com\n"c@example.com,Cy\nd@example.com,Di\n'
    assert [line for line, _ in faults_of(text)] == [2, 3, 4]
    good = [row.email for row in opened(text.encode())[1] if isinstance(row, Candidate)]
    assert good == ["d@example.com"]


def test_a_quote_that_never_ends_costs_its_own_line() -> None:
    text = 'email,name\na@example.com,"Ann\n' + "b@example.com,Bo\n" * 10_000
    rows = opened(text.encode())[1]
    assert isinstance(rows[0], Fault)
    assert len(rows) == 10_001


def test_zeros_are_no_reader() -> None:
    rows = opened(b"email,name\na\0@example.com,x\nb@example.com,B\0o\n")[1]
    assert all(isinstance(row, Candidate) and "\0" not in row.name for row in rows)
    with pytest.raises(Invalid):
        addresses.accept(rows[0].email if isinstance(rows[0], Candidate) else "a@example.com")


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("active", ("active", None)),
        ("ended (bounced)", ("ended", "bounced")),
        ("ended complained", ("ended", "complained")),
        ("Unsubscribed", ("ended", "left")),
        ("cleaned", ("ended", "bounced")),
        ("pending (left)", ("pending", "left")),
        ("已退订", ("ended", "left")),
        ("", ("active", None)),
    ],
)
def test_a_status_is_understood(written: str, wanted: tuple[str, str | None]) -> None:
    row = only(f"email,status\na@example.com,{written}\n")
    assert (row.status, row.reason) == wanted


def test_a_status_nobody_knows_is_a_fault_and_no_reader() -> None:
    assert faults_of("email,status\na@example.com,zombie\n") == [
        (2, "“zombie” is no status; there are: pending, active, paused, ended.")
    ]


def test_a_pause_keeps_its_end() -> None:
    row = only("email,status\na@example.com,paused (until 2027-01-05T00:00:00Z)\n")
    assert row.status == "paused"
    assert row.paused_until == cells.moment("2027-01-05T00:00:00Z")


@pytest.mark.parametrize(
    "written",
    [
        "2026-01-05T00:30:00Z",
        "2026-01-05 08:30:00+08:00",
        "2026-01-05 00:30:00",
        "2026-01-05 00:30:00.000000000 +0000 UTC",
        "2026-01-05 00:30:00 UTC",
        "2026/1/5 0:30",
        "2026年1月5日 0:30",
    ],
)
def test_a_time_is_understood_as_systems_write_it(written: str) -> None:
    assert cells.moment(written) == cells.moment("2026-01-05T00:30:00Z")


def test_our_own_file_is_held_to_its_word_and_a_strangers_time_is_no_reason_to_lose_a_reader() -> None:
    assert [line for line, _ in faults_of("email,created_at\na@example.com,yesterday\n")] == [2]
    assert only("邮箱,创建时间\na@example.com,yesterday\n").created_at is None


@given(st.text(max_size=200))
def test_the_quote_against_formulas_is_undone_exactly(value: str) -> None:
    safe = cells.neutral(value)
    assert not safe.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert cells.calm(safe) == value


@given(st.text(max_size=300))
def test_cleaning_twice_changes_nothing(value: str) -> None:
    once = cells.clean(value)
    assert cells.clean(once) == once
    assert len(once) <= cells.NAME_LIMIT


LOCALS = st.text("ab.'+=!@\"\\ ü-_" + "A", min_size=0, max_size=12) | st.just("a" * 64) | st.just("a" * 65)
DOMAINS = st.sampled_from(
    ["example.com", "EXAMPLE.com", "bücher.example", "a..b", "-x.com", "example", "[127.0.0.1]", "x.test", ""]
) | st.text("ab.-ü中", max_size=12)


@given(LOCALS, DOMAINS)
@settings(max_examples=300)
def test_accepting_in_bulk_is_accepting(local: str, domain: str) -> None:
    def outcome(accept: object) -> object:
        try:
            return accept(f"{local}@{domain}")  # type: ignore[operator]
        except Invalid as error:
            return error.faults

    assert outcome(quick.accept) == outcome(addresses.accept)


LIKELY = st.lists(
    st.sampled_from(
        [b"email", b"name", b"status", b"created_at", b"hour", b",", b";", b"\t", b"\n", b"\r\n", b"\r", b'"', b'""',
         b"a@example.com", b"A <b@example.com>", b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe6\x9e\x97", b"\xc1\xd6",
         b"=1+1", b"'=", b"2026-01-05", b"0001-01-01T00:00:00+23:59", b"9999-12-31T23:59:59-23:59", b"ended (left)",
         b"paused (until ", b")", b"25", "٣".encode(), b"sep=;", b" "]
    ),
    max_size=60,
).map(b"".join)  # fmt: skip


def survives(data: bytes) -> Iterator[Candidate | Fault]:
    try:
        _, rows = opened(data)
    except Invalid:
        return
    yield from rows


@given(
    st.binary(max_size=400) | LIKELY | LIKELY.map(lambda rest: b"email,name,status,created_at,hour\n" + rest)
)
@settings(max_examples=600, deadline=None)
def test_any_bytes_are_refused_or_give_rows_and_faults(data: bytes) -> None:
    last = 0
    for row in survives(data):
        assert isinstance(row, Candidate | Fault)
        assert (row.line or 0) > last
        last = row.line or 0


@given(st.lists(st.sampled_from(['"', "a", ",", "\n", '""', "\r\n"]), max_size=80).map("".join))
def test_reading_may_begin_anew_at_any_row(body: str) -> None:
    text = "email,name\n" + body
    tape = csv.Tape(io.StringIO(text, newline="\n"))
    table = csv.head(tape, PRESETS)
    whole = list(csv.read(tape, table))
    tape = csv.Tape(io.StringIO(text, newline="\n"))
    csv.head(tape, PRESETS)
    pieces: list[Candidate | Fault] = []
    while piece := next(csv.read(tape, table), None):
        pieces.append(piece)
        rest = text.encode()[tape.offset :].decode()
        tape = csv.Tape(io.StringIO(rest, newline="\n"), tape.offset, tape.line)
    assert pieces == whole

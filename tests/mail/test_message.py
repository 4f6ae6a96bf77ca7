"""Whatever an editor or a reader is called, the bytes of a message are canonical and say what was meant."""

import base64
import html
import re
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from email import message_from_bytes
from email.header import decode_header, make_header
from email.headerregistry import AddressHeader
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.mail import headers, message

ENCODED_WORD = re.compile(rb"=\?[^?\s]+\?[bBqQ]\?[^?\s]*\?=")
SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
URL = "https://news.example.com/u/" + "Ab3-_xYz" * 4
MAILTO = "mailto:unsubscribe+" + "Ab3-_xYz" * 4 + "@bounce.example.com"
VALUES = {"__BS_ADDRESS__": "a&b@example.org", "__BS_MANAGE__": f"{URL}?a=1&b=2", "__BS_UNSUBSCRIBE__": URL}

HOSTILE = [
    "日报\r\nBcc: victim@example.org",
    "日报\r\n\r\n<script>alert(1)</script>",
    "日报\nBcc: victim@example.org",
    "日报\rBcc: victim@example.org",
    "News\r\n.\r\nMAIL FROM:<evil@example.org>\r\nRCPT TO:<victim@example.org>\r\nDATA",
    "News\n.\nQUIT",
    "News\r.\rQUIT",
    "\r\n.\r\n",
    ".",
    "..",
    ". leading dot",
    "\r\n folded already",
    "\r\n\tfolded already",
    "NUL\x00in the middle",
    "escape \x1b[31mred\x1b[0m",
    "vertical\x0btab and form\x0cfeed",
    "separators\x1c\x1d\x1e\x1f here",
    "delete\x7fd",
    "next line\x85Bcc: victim@example.org",
    "control \x9b31m sequence",
    "line separator\u2028Bcc: victim@example.org",
    "paragraph separator\u2029Bcc: victim@example.org",
    "lone high \ud83d surrogate",
    "lone low \ude00 surrogate",
    "=?utf-8?q?=0D=0ABcc:_victim@example.org?=",
    "=?utf-8?b?DQpCY2M6IHZpY3RpbUBleGFtcGxlLm9yZw==?=",
    "=?utf-8?q?broken",
    "a =?utf-8?q?b?= =?utf-8?q?c?= d",
    "日报 =?utf-8?q?b?=",
    'quote " and \\ backslash \\" both',
    "comma, semicolon; colon: <angle@example.org>",
    "reader@example.org",
    "(comment) [literal] @",
    "\u202eright to left override",
    "\ufeffbyte order mark",
    "z\u0351\u0489\u0300\u0301" * 40,
    "x" * 2000,
    "=" * 200,
    "?=" * 100,
    "a" + " " * 500 + "b",
    "   ",
    "",
    "\x00" * 100,
    "\U0010ffff\ufffe",
]

TITLES = [
    "TMA：少发搬运指令，能否变快还要看瓶颈",
    "A plain title",
    "Two  spaces and   three",
    "An ASCII title that is long enough to be folded, " * 8,
    "🚀 rockets 👩‍👩‍👧‍👦 families 🇨🇳 flags",
    "𠮷野家 𝒜𝒷𝒸 astral",
    "مرحبا بالعالم، هذا عنوان",
    "שלום עולם",
    "Ünïcödé in Latin, mostly ASCII and therefore shorter when quoted",
    "_underscore_ = equals ? question",
    "漢" * 2000,
    "👩‍👩‍👧‍👦" * 285,
    "word " * 400,
    "é" * 2000,
]

any_text = st.text(st.characters(exclude_categories=())) | st.lists(
    st.sampled_from([*HOSTILE, "\r\n", " ", "漢字", "é", "=?", "?=", '"', "\\", "x" * 70])
    | st.text(max_size=5)
).map("".join)


def parsed(block: bytes) -> EmailMessage:
    made = message_from_bytes(block + b"\r\n", policy=default)
    assert isinstance(made, EmailMessage)
    return made


def decoded(line: bytes) -> str:
    """A second reader of encoded-words: the older one of the standard library."""
    value = line.partition(b":")[2].strip().decode("ascii")
    return str(make_header(decode_header(value)))


def assert_canonical(block: bytes) -> None:
    assert block.endswith(b"\r\n")
    assert block.isascii()
    assert not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", block)
    assert not re.search(rb"(?<!\r)\n|\r(?!\n)", block)
    for line in block[:-2].split(b"\r\n"):
        assert len(line) <= 998
        assert not line.startswith(b".")


def assert_one_header(block: bytes, name: str) -> None:
    assert_canonical(block)
    assert block.startswith(f"{name}:".encode())
    for line in block[:-2].split(b"\r\n")[1:]:
        assert line.startswith(b" ")
        assert line.strip(b" ")
    for line in block.split(b"\r\n"):
        words = ENCODED_WORD.findall(line)
        assert not words or len(line) <= 76
        assert all(len(word) <= 75 for word in words)
        for word in words:
            assert str(make_header(decode_header(word.decode())))  # whole characters, or decoding fails
    assert list(parsed(block).keys()) == [name]


# Free text


@pytest.mark.parametrize("title", [*TITLES, *HOSTILE])
def test_a_subject_comes_back_as_it_was_meant(title: str) -> None:
    line = headers.unstructured("Subject", title)
    assert_one_header(line, "Subject")
    assert parsed(line)["Subject"] == headers.clean(title)


@pytest.mark.parametrize("title", [title for title in [*TITLES, *HOSTILE] if not title.isascii()])
def test_another_decoder_reads_the_same_subject(title: str) -> None:
    assert decoded(headers.unstructured("Subject", title)) == headers.clean(title)


def test_there_are_enough_hostile_titles() -> None:
    assert len(set(HOSTILE)) >= 27


@given(any_text)
@example("x" * 67 + " y")
@example("x" * 68 + " y")
@example("a" + " " * 75 + "b")
def test_any_text_makes_one_canonical_subject(text: str) -> None:
    line = headers.unstructured("Subject", text)
    assert_one_header(line, "Subject")
    assert parsed(line)["Subject"] == headers.clean(text)


@given(any_text, st.integers(1, 40))
def test_a_name_of_any_length_leaves_room_for_the_text(text: str, length: int) -> None:
    name = "X" * length
    assert_one_header(headers.unstructured(name, text), name)


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=400))
def test_ascii_of_short_words_stays_readable(text: str) -> None:
    words = " ".join(word[:40] for word in text.replace("=?", "").replace("=?", "").split())
    if "=?" not in words:
        line = headers.unstructured("Subject", words)
        assert b"=?" not in line
        assert line[:-2].replace(b"\r\n", b"") == f"Subject: {words}".encode().rstrip()
        assert all(len(part) <= 76 for part in line.split(b"\r\n"))


def test_cleaning_leaves_one_space_for_a_line_break() -> None:
    assert headers.clean("a\r\nb\u2028c\ud800d\x85e\x00\x1ff ") == "a b c d e f"


def test_text_that_looks_encoded_is_read_as_it_stands() -> None:
    line = headers.unstructured("Subject", "=?utf-8?q?caf=C3=A9?=")
    assert parsed(line)["Subject"] == "=?utf-8?q?caf=C3=A9?="


def test_a_line_is_filled_to_its_last_column_and_no_further() -> None:
    assert headers.unstructured("Subject", "x" * 67) == b"Subject: " + b"x" * 67 + b"\r\n"
    assert b"=?" in headers.unstructured("Subject", "x" * 68)
    assert headers.unstructured("Subject", "x " + "y" * 75).endswith(b"x\r\n " + b"y" * 75 + b"\r\n")
    assert b"=?" in headers.unstructured("Subject", "x " + "y" * 76)
    assert b"=?" not in headers.mailbox("From", "x" * 70, "daily@news.example.com")
    assert b"=?" in headers.mailbox("From", "x" * 71, "daily@news.example.com")


def test_latin_is_quoted_and_han_is_in_base64() -> None:
    assert (
        headers.unstructured("Subject", "Le café du matin")
        == b"Subject: =?utf-8?q?Le_caf=C3=A9_du_matin?=\r\n"
    )
    assert headers.unstructured("Subject", "日报") == b"Subject: =?utf-8?b?5pel5oql?=\r\n"


def test_no_character_is_split_between_encoded_words() -> None:
    line = headers.unstructured("Subject", "a" + "𠮷" * 200 + "é" * 200)
    words = ENCODED_WORD.findall(line)
    assert len(words) > 10
    for word in words:
        base64.b64decode(word[10:-2], validate=True).decode("utf-8")


@pytest.mark.parametrize("name", ["", "Sub ject", "Subject:", "Sub\r\nject", "Sübject", ".Subject", "X" * 41])
def test_a_name_that_is_no_header_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a header"):
        headers.unstructured(name, "text")
    with pytest.raises(ValueError, match="not the name of a header"):
        headers.structured(name, "text")


# Mailboxes

NAMES = [
    "AI 技术日报",
    "Plain Name",
    'The "Daily", or so',
    "Doe, Jane",
    "back\\slash",
    "dots. and (comments)",
    "someone@example.org",
    "=?utf-8?q?x?=",
    "Ünï Cödé",
    "漢字かな交じり文の長い名前" * 20,
    "a very long plain name " * 10,
    "quoted, and long; " * 10,
    "Two  spaces",
    "🚀 daily",
]


def display_name(line: bytes) -> str:
    header = parsed(line)["From"]
    assert isinstance(header, AddressHeader)
    assert len(header.addresses) == 1
    assert header.addresses[0].addr_spec == "daily@news.example.com"
    return str(header.addresses[0].display_name)


@pytest.mark.parametrize("name", [*NAMES, *HOSTILE])
def test_a_display_name_comes_back_as_it_was_meant(name: str) -> None:
    line = headers.mailbox("From", name, "daily@news.example.com")
    assert_one_header(line, "From")
    assert line.endswith(b"<daily@news.example.com>\r\n")
    meant = headers.clean(name)
    if len(ENCODED_WORD.findall(line)) < 2:
        assert display_name(line) == meant
    else:  # older Pythons put a space between encoded-words in a phrase, against RFC 2047 §6.2
        phrase = line[: line.rindex(b"<")].rstrip()
        assert decoded(phrase) == meant
        assert display_name(line).replace(" ", "") == meant.replace(" ", "")


@given(any_text)
def test_any_display_name_leaves_one_address_and_no_encoded_word_in_quotes(name: str) -> None:
    line = headers.mailbox("From", name, "daily@news.example.com")
    assert_one_header(line, "From")
    display_name(line)
    if line.startswith(b'From: "'):
        assert b"=?" not in line
    assert b"=?" not in line[line.rindex(b"<") :]


def test_a_display_name_is_plain_quoted_or_encoded() -> None:
    write = headers.mailbox
    assert write("To", "", "r@example.org") == b"To: <r@example.org>\r\n"
    assert write("To", "Jane Doe", "r@example.org") == b"To: Jane Doe <r@example.org>\r\n"
    assert write("To", 'Doe, "J"', "r@example.org") == b'To: "Doe, \\"J\\"" <r@example.org>\r\n'
    assert write("To", "日报", "r@example.org") == b"To: =?utf-8?b?5pel5oql?= <r@example.org>\r\n"


def test_a_long_address_goes_to_a_line_of_its_own() -> None:
    address = "a" * 64 + "@" + "b" * 60 + ".example"
    line = headers.mailbox("From", "日报", address)
    assert line == f"From: =?utf-8?b?5pel5oql?=\r\n <{address}>\r\n".encode()


def test_an_international_domain_is_written_in_a_labels() -> None:
    assert headers.mailbox("To", "", "r@例子.example") == b"To: <r@xn--fsqu00a.example>\r\n"


# Addresses


@pytest.mark.parametrize(
    ("address", "written"),
    [
        ("reader@example.org", "reader@example.org"),
        ("Reader+Tag@EXAMPLE.org", "Reader+Tag@example.org"),
        ("o'neil!#$%&*/=?^_`{|}~-@example.org", "o'neil!#$%&*/=?^_`{|}~-@example.org"),
        ("dotted..twice.@example.org", "dotted..twice.@example.org"),
        ("r@localhost", "r@localhost"),
        ("r@xn--fsqu00a.example", "r@xn--fsqu00a.example"),
        ("r@例子.example", "r@xn--fsqu00a.example"),
        ("r@例子。example", "r@xn--fsqu00a.example"),
        ("r@BÜCHER.example", "r@xn--bcher-kva.example"),
        ("r@faß.example", "r@xn--fa-hia.example"),
        ("r@bu\u0308cher.example", "r@xn--bcher-kva.example"),
    ],
)
def test_an_address_is_written_for_the_envelope(address: str, written: str) -> None:
    assert message.envelope_address(address) == written


@pytest.mark.parametrize(
    "address",
    [
        "",
        "@",
        "reader",
        "@example.org",
        "reader@",
        "r@exa mple.org",
        "r @example.org",
        " r@example.org",
        "r@example.org ",
        "r\n@example.org",
        "r@example.org\r\nRCPT TO:<victim@example.org>",
        "r@example.org\n",
        "r>@example.org",
        "<r@example.org>",
        "Name <r@example.org>",
        "a,b@example.org",
        "a@b@example.org",
        '"quoted"@example.org',
        "r@[192.0.2.1]",
        "r@example..org",
        "r@.example.org",
        "r@example.org.",
        "r@-example.org",
        "r@under_score.example",
        "r\x00@example.org",
        "r@exam\x00ple.org",
        "r@exam\u00adple.org",
        "r@exam\u200bple.org",
        "r@exam\ufe0fple.org",
        "r@exam\u2028ple.org",
        "r@exam\ud800ple.org",
        "r@exam\u3000ple.org",
        "r@ex／ample.org",
        "读者@example.org",
        "r\u00e9@example.org",
        "r＠example.org",
        "a" * 65 + "@example.org",
        "r@" + "a" * 64 + ".org",
        "r@" + "a." * 126 + "org",
        "r@" + "例" * 100 + ".example",
    ],
)
def test_an_address_that_would_need_repair_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="the address") as refused:
        message.envelope_address(address)
    assert "example.org" not in str(refused.value)
    with pytest.raises(ValueError, match="the address"):
        headers.mailbox("To", "", address)


def test_an_address_may_have_254_octets_and_no_more() -> None:
    longest = "r" * 60 + "@" + ".".join(["a" * 63, "b" * 63, "c" * 63, "d"])
    assert len(longest) == 254
    assert message.envelope_address(longest) == longest
    with pytest.raises(ValueError, match="254"):
        message.envelope_address("r" + longest)


@given(any_text, any_text)
def test_an_address_that_is_taken_is_safe_in_a_command(local: str, domain: str) -> None:
    try:
        written = message.envelope_address(f"{local}@{domain}")
    except ValueError:
        return
    assert re.fullmatch(r"[!-;=?-~]+@[a-z0-9.-]+", written)
    assert len(written) <= 254


# Values with a syntax


@given(any_text)
def test_a_structured_value_is_written_as_it_is_or_refused(value: str) -> None:
    try:
        line = headers.structured("Message-ID", value)
    except ValueError:
        return
    assert line == f"Message-ID: {value}\r\n".encode("ascii")
    assert_canonical(line)


@pytest.mark.parametrize(
    "value",
    ["", " ", "a\r\nb", "a\nb", "a\x00", "a\tb", "é", "\u2028", "\ud800", " a", "a ", "=?utf-8?q?a?="],
)
def test_what_cannot_stand_in_a_structured_header_is_refused_unquoted(value: str) -> None:
    with pytest.raises(ValueError, match="Message-ID was given what cannot stand in it"):
        headers.structured("Message-ID", value)


def test_a_structured_line_is_never_folded_and_never_too_long() -> None:
    assert headers.structured("X-Long", "x" * 990) == b"X-Long: " + b"x" * 990 + b"\r\n"
    with pytest.raises(ValueError, match="998"):
        headers.structured("X-Long", "x" * 991)


def test_parts_fold_only_between_each_other_and_only_when_they_must() -> None:
    assert headers.structured("X-Parts", "one;", "two") == b"X-Parts: one; two\r\n"
    assert headers.structured("X-Parts", "a" * 60 + ";", "b" * 20) == (
        b"X-Parts: " + b"a" * 60 + b";\r\n " + b"b" * 20 + b"\r\n"
    )
    with pytest.raises(ValueError, match="needs a value"):
        headers.structured("X-Parts")


def test_a_date_is_the_same_moment_whatever_its_zone() -> None:
    seven = datetime(2026, 10, 26, 7, 0, tzinfo=timezone(timedelta(hours=8)))
    assert headers.date(seven) == b"Date: Sun, 25 Oct 2026 23:00:00 +0000\r\n"
    assert headers.date(seven) == headers.date(seven.astimezone(UTC))
    assert parsed(headers.date(seven))["Date"].datetime == seven
    with pytest.raises(ValueError, match="time zone"):
        headers.date(datetime(2026, 10, 26, 7, 0))


def test_a_feedback_id_has_one_to_four_fields() -> None:
    line = headers.feedback_id("daily20261026", "daily", "issue", "broadsheet")
    assert line == b"Feedback-ID: daily20261026:daily:issue:broadsheet\r\n"
    for fields in [(), ("a", "b", "c", "d", "e"), ("a:b",), ("",), ("a b",)]:
        with pytest.raises(ValueError, match="Feedback-ID"):
            headers.feedback_id(*fields)
    with pytest.raises(ValueError, match="Feedback-ID"):
        headers.feedback_id("日报")


# The headers of a list


@pytest.mark.parametrize("name", ["AI 技术日报", "", "Daily, the", "Ünï", *HOSTILE])
def test_a_list_keeps_its_lasting_name_whatever_it_is_called(name: str) -> None:
    line = headers.list_id(name, "daily.news.example.com")
    assert_one_header(line, "List-Id")
    assert line.endswith(b"<daily.news.example.com>\r\n")


@pytest.mark.parametrize(
    "name", ["", "daily", "daily.", ".daily", "a b.c", "日报.example", "a.b>\r\n", "a." * 128 + "a"]
)
def test_a_lasting_name_is_ascii_labels_with_a_dot(name: str) -> None:
    with pytest.raises(ValueError, match="List-Id"):
        headers.list_id("Daily", name)


def test_the_headers_of_a_list_are_whole() -> None:
    links = message.ListLinks(
        help="https://news.example.com/help",
        subscribe="https://news.example.com/",
        owner="mailto:editor@news.example.com",
        archive="https://news.example.com/daily",
    )
    block = message.list_headers("Daily", "daily.news.example.com", links)
    assert_canonical(block)
    assert [*parsed(block).items()] == [
        ("List-Id", "Daily <daily.news.example.com>"),
        ("List-Help", "<https://news.example.com/help>"),
        ("List-Subscribe", "<https://news.example.com/>"),
        ("List-Owner", "<mailto:editor@news.example.com>"),
        ("List-Archive", "<https://news.example.com/daily>"),
        ("List-Post", "NO"),
        ("Precedence", "list"),
        ("X-Auto-Response-Suppress", "OOF, AutoReply"),
    ]


def test_a_link_that_a_list_does_not_have_is_left_out() -> None:
    block = message.list_headers("Daily", "daily.news.example.com", message.ListLinks())
    assert parsed(block).keys() == ["List-Id", "List-Post", "Precedence", "X-Auto-Response-Suppress"]


def test_one_click_has_both_headers_with_the_web_first_on_one_line() -> None:
    assert message.unsubscribe_headers(URL, MAILTO) == (
        f"List-Unsubscribe: <{URL}>, <{MAILTO}>\r\n"
        "List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n".encode()
    )
    assert message.unsubscribe_headers(URL).startswith(f"List-Unsubscribe: <{URL}>\r\n".encode())


@given(any_text)
def test_an_unsubscribe_url_is_never_encoded_and_never_folded(text: str) -> None:
    try:
        block = message.unsubscribe_headers(f"https://news.example.com/{text}")
    except ValueError:
        return
    assert block.startswith(f"List-Unsubscribe: <https://news.example.com/{text}>\r\n".encode("ascii"))
    assert b"=?" not in block
    assert_canonical(block)


@pytest.mark.parametrize(
    ("url", "mailto"),
    [
        (MAILTO, None),
        (URL, URL),
        (URL, ""),
        ("javascript:alert(1)", None),
        ("//news.example.com/u", None),
        (f"{URL}>, <https://evil.example/", None),
        (f"{URL}\r\nBcc: victim@example.org", None),
        (f"{URL} x", None),
        ("https://例子.example/u", None),
        (URL + "x" * 950, None),
        (URL + "?=?utf-8?q?x?=", None),
    ],
)
def test_what_is_no_url_for_leaving_is_refused_without_its_token(url: str, mailto: str | None) -> None:
    with pytest.raises(ValueError, match=r"List-Unsubscribe|one-click") as refused:
        message.unsubscribe_headers(url, mailto)
    assert "Ab3-_xYz" not in str(refused.value)


# The body

slot = st.sampled_from(message.SLOTS)
some_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=200) | st.sampled_from(
    ["\r\n", "\n", "\r", "é", "e\u0301", "漢" * 70, "<p>", "&", "__BS_", "BS_MANAGE__", "-- \n", "x" * 57]
)
templates = st.lists(some_text | slot, max_size=12).map("".join)
values = st.fixed_dictionaries(dict.fromkeys(message.SLOTS, some_text | slot))


def filled(template: str, given: dict[str, str], written: Callable[[str], str]) -> bytes:
    """The whole body in one go, as the splice must equal it."""
    pattern = "|".join(message.SLOTS)
    return re.sub(pattern, lambda found: written(given[found[0]]), template).encode()


def crlf(text: str) -> str:
    return "\r\n".join(re.split(r"\r\n|\n|\r", text))


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", crlf(text))


def in_base64(octets: bytes) -> bytes:
    return base64.encodebytes(octets).replace(b"\n", b"\r\n")


def usable(template: str) -> bool:
    return set(re.findall(r"__BS_[A-Z]+__", template)) <= set(message.SLOTS)


@given(templates.filter(usable), templates.filter(usable), values)
def test_a_spliced_body_equals_the_whole_one(rich: str, plain: str, given: dict[str, str]) -> None:
    body = message.prepare(rich, plain)
    whole_text = in_base64(filled(nfc(plain), given, nfc))
    whole_html = in_base64(filled(crlf(rich), given, lambda value: html.escape(crlf(value))))
    assert body.text.head + body.text.fill(given) == whole_text
    assert body.html.head + body.html.fill(given) == whole_html
    written = b"".join(message.compose(body, b"", b"", given))
    assert body.opening + body.text.fill(given) in written
    assert_canonical(written)
    parts = [*parsed(written[:-2]).iter_parts()]
    assert [part.get_content_type() for part in parts] == ["text/plain", "text/html"]
    assert [part.get_payload(decode=True) for part in parts] == [
        filled(nfc(plain), given, nfc),
        filled(crlf(rich), given, lambda value: html.escape(crlf(value))),
    ]


@pytest.mark.parametrize("length", range(50, 120))
def test_the_cut_falls_on_a_whole_line_wherever_the_slot_stands(length: int) -> None:
    body = message.prepare("é" * length + "__BS_ADDRESS__", "x" * length + "__BS_ADDRESS__")
    assert len(body.text.head) == length // 57 * 78
    assert body.text.head + body.text.fill(VALUES) == in_base64(b"x" * length + b"a&b@example.org")
    assert body.html.head + body.html.fill(VALUES) == in_base64(
        ("é" * length + "a&amp;b@example.org").encode()
    )


def a_message(rich: str, plain: str) -> bytes:
    fixed = (
        headers.mailbox("From", "AI 技术日报", "daily@news.example.com")
        + headers.unstructured("Subject", "TMA：少发搬运指令 🚀")
        + headers.date(datetime(2026, 10, 26, 7, 0, tzinfo=UTC))
        + headers.structured("Content-Language", "zh-CN")
        + message.list_headers("AI 技术日报", "daily.news.example.com", message.ListLinks())
    )
    personal = (
        headers.mailbox("To", "", "a&b@example.org")
        + headers.structured("Message-ID", "<daily-20261026.ABC@news.example.com>")
        + message.unsubscribe_headers(URL, MAILTO)
    )
    return b"".join(message.compose(message.prepare(rich, plain), fixed, personal, VALUES))


RICH = '<p>日报</p>\n<a href="__BS_MANAGE__">管理</a> __BS_ADDRESS__ <a href="__BS_UNSUBSCRIBE__">退订</a>\n'
PLAIN = "日报\n\n-- \n__BS_ADDRESS__\n__BS_MANAGE__\n__BS_UNSUBSCRIBE__\n"


def test_a_message_is_read_as_it_was_meant() -> None:
    written = a_message(RICH, PLAIN)
    assert_canonical(written)
    read = message_from_bytes(written, policy=default)
    assert isinstance(read, EmailMessage)
    assert read["Subject"] == "TMA：少发搬运指令 🚀"
    assert read["From"] == "AI 技术日报 <daily@news.example.com>"
    assert read["List-Unsubscribe"] == f"<{URL}>, <{MAILTO}>"
    assert read["MIME-Version"] == "1.0"
    assert read.get_content_type() == "multipart/alternative"
    plain, rich = read.iter_parts()
    assert (plain.get_content_type(), rich.get_content_type()) == ("text/plain", "text/html")
    assert plain.get_content_charset() == rich.get_content_charset() == "utf-8"
    assert plain["Content-Transfer-Encoding"] == rich["Content-Transfer-Encoding"] == "base64"
    footer = f'<a href="{URL}?a=1&amp;b=2">管理</a> a&amp;b@example.org <a href="{URL}">退订</a>'
    meant = f"日报\n\n-- \na&b@example.org\n{URL}?a=1&b=2\n{URL}\n", f"<p>日报</p>\n{footer}\n"
    octets = plain.get_payload(decode=True), rich.get_payload(decode=True)
    assert octets == tuple(crlf(body).encode() for body in meant)
    assert not [part.defects for part in read.walk() if part.defects]


def test_the_same_input_gives_the_same_octets() -> None:
    assert a_message(RICH, PLAIN) == a_message(RICH, PLAIN)


def test_another_rendition_has_another_boundary_and_none_occurs_in_base64() -> None:
    boundaries = {parsed(a_message(rich, PLAIN)).get_boundary() for rich in (RICH, f"{RICH} ", f"{RICH}  ")}
    assert len(boundaries) == 3
    assert all(str(boundary).startswith("=_") for boundary in boundaries)


def test_a_value_is_never_read_as_markup_or_as_another_slot() -> None:
    body = message.prepare("<p>__BS_ADDRESS__</p>", "__BS_ADDRESS__")
    hostile = VALUES | {"__BS_ADDRESS__": "\"><script>'&__BS_MANAGE__"}
    assert base64.b64decode(body.html.fill(hostile)) == (
        b"<p>&quot;&gt;&lt;script&gt;&#x27;&amp;__BS_MANAGE__</p>"
    )
    assert base64.b64decode(body.text.fill(hostile)) == b"\"><script>'&__BS_MANAGE__"


def test_the_text_is_composed_and_the_markup_is_left_alone() -> None:
    body = message.prepare("<b>\u0338 e\u0301</b>", "e\u0301 -- \rx")
    assert base64.b64decode(body.html.fill({})).decode() == "<b>\u0338 e\u0301</b>"
    assert base64.b64decode(body.text.fill({})).decode() == "\u00e9 -- \r\nx"


def test_the_slots_of_a_rendition_are_the_ones_it_names() -> None:
    body = message.prepare("__BS_CODE__", "", slots=["__BS_CODE__"])
    assert base64.b64decode(body.html.fill({"__BS_CODE__": "7"})) == b"7"
    with pytest.raises(ValueError, match="__BS_CODE__, __BS_MANGE__"):
        message.prepare("__BS_MANGE__ __BS_CODE__ __BS_MANAGE__", "")
    with pytest.raises(KeyError):
        body.html.fill({})


@pytest.mark.parametrize(
    ("fixed", "personal"),
    [
        (b"Subject: a", b"To: <b@example.org>\r\n"),
        (b"Subject: a\r\n", b"To: <b@example.org>"),
        (b"Subject: a\n", b""),
        (b"Subject: a\r\n\r\n", b""),
        (b"", b"\r\nTo: <b@example.org>\r\n"),
        (b"A: a\r\n\r\nB: b\r\n", b""),
    ],
)
def test_headers_that_are_no_whole_lines_are_refused(fixed: bytes, personal: bytes) -> None:
    with pytest.raises(ValueError, match="whole lines"):
        message.compose(message.prepare("a", "b"), fixed, personal, {})


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_leaves_canonical_octets_wherever_it_stands(text: str) -> None:
    sayable = text.encode("utf-8", "replace").decode("utf-8")
    body = message.prepare(f"{sayable}__BS_ADDRESS__", f"{sayable}__BS_ADDRESS__")
    fixed = headers.unstructured("Subject", text) + headers.mailbox("From", text, "daily@news.example.com")
    personal = headers.mailbox("To", text, "reader@example.org")
    written = b"".join(message.compose(body, fixed, personal, VALUES | {"__BS_ADDRESS__": sayable}))
    assert_canonical(written)
    assert parsed(written).keys() == ["Subject", "From", "To", "MIME-Version", "Content-Type"]
    assert b"\r\n.\r\n" not in written


@pytest.mark.parametrize("where", ["html", "text", "value"])
def test_a_lone_surrogate_in_a_body_is_refused(where: str) -> None:
    bad = {place: "\ud800" if place == where else "" for place in ("html", "text", "value")}
    with pytest.raises(ValueError, match="surrogates not allowed"):
        message.compose(
            message.prepare(bad["html"], f"{bad['text']}__BS_ADDRESS__"),
            b"",
            b"",
            {"__BS_ADDRESS__": bad["value"]},
        )


@pytest.mark.parametrize("seed", ["daily.txt", "weekly.txt"])
def test_a_real_issue_goes_through_unharmed(seed: str) -> None:
    if not (SEEDS / seed).exists():
        pytest.skip("The seeds are not beside this repository.")
    source = (SEEDS / seed).read_text(encoding="utf-8")
    written = a_message(f"<pre>{html.escape(source)}</pre>{RICH}", source + "\n" + PLAIN)
    assert_canonical(written)
    plain, rich = parsed(written).iter_parts()
    assert plain.get_content().startswith(crlf(source))
    assert crlf(html.escape(source)) in rich.get_content()

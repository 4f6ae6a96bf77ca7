"""One address is one reader however it is written, and what nobody could mail is refused at the door."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import Invalid
from app.mail import headers
from app.subscribers import addresses
from app.subscribers.addresses import accept

SPELLINGS = [
    ("Reader@Example.COM", "reader@example.com"),
    (" reader@example.com\t", "reader@example.com"),
    ("reader@bücher.example", "reader@xn--bcher-kva.example"),
    ("reader@BÜCHER.example", "reader@xn--bcher-kva.example"),
    ("reader@bu\u0308cher.example", "reader@XN--BCHER-KVA.example"),
    ("reader@例子.测试", "reader@xn--fsqu00a.xn--0zwm56d"),
    ("reader@ｅｘａｍｐｌｅ.com", "reader@example.com"),
]
REFUSED = [
    "",
    " ",
    "reader",
    "@example.com",
    "reader@",
    "a@b@example.com",
    "r@exa mple.org",
    "r\n@example.org",
    "r@example.org\nBcc: x@example.com",
    "r@example.org,s@example.org",
    "Reader <r@example.org>",
    "<r@example.org>",
    "(a) r@example.org",
    '"r s"@example.org',
    "r@[127.0.0.1]",
    "r@localhost",
    "r@example",
    ".r@example.org",
    "r..s@example.org",
    "r@-example.org",
    "r@exam_ple.org",
    "r@example..org",
    "r@exam\u00adple.org",
    "r@exam\u200bple.org",
    "读者@example.org",
    "r\u0301@example.org",
    "r@example.org\u202e",
    "r\x00@example.org",
    "r＠example.org",
    f"{'r' * 65}@example.org",
    f"r@{'e' * 64}.org",
    f"r@{'.'.join(['e' * 60] * 5)}.org",
    "r@" + "e." * 100_000 + "org",
]


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_two_spellings_are_one_address(one: str, other: str) -> None:
    assert accept(one).key == accept(other).key
    assert accept(one).hashed("key") == accept(other).hashed("key")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("r@example.com", "r@example.org"),
        ("a.b@example.com", "ab@example.com"),
        ("a+b@example.com", "a@example.com"),
        ("r@straße.example", "r@strasse.example"),
    ],
)
def test_addresses_that_may_be_two_people_are_two(one: str, other: str) -> None:
    assert accept(one).key != accept(other).key


def test_an_address_is_kept_as_it_was_typed() -> None:
    assert accept(" Reader.Name@Example.com ").typed == "Reader.Name@Example.com"


@pytest.mark.parametrize("raw", REFUSED, ids=lambda raw: ascii(raw[:40]))
def test_what_nobody_could_mail_is_refused_with_a_sentence(raw: str) -> None:
    with pytest.raises(Invalid) as refused:
        accept(raw)
    assert refused.value.status == 422
    assert "name@example.com" in refused.value.detail
    assert [fault.field for fault in refused.value.faults] == ["email"]
    assert "email" not in refused.value.faults[0].message
    assert raw.strip() == "" or len(raw) < 5 or raw not in refused.value.faults[0].message


LETTERS = st.sampled_from("abRZ019.+-_'\u00fc\u4f8b\u00ad\u200d@ \n\r\x00\u2028<>\",;:\\()[]%ß\u0130")


@given(
    st.text(LETTERS, max_size=20), st.text(LETTERS, max_size=20), st.sampled_from([".com", ".测试", "", "."])
)
def test_whatever_is_accepted_is_sent_to_that_very_address(local: str, domain: str, end: str) -> None:
    raw = f"{local}@{domain}{end}"
    try:
        found = accept(raw)
    except Invalid:
        return
    written = headers.envelope_address(found.typed)
    assert written.lower() == found.key.lower()
    assert written.partition("@")[0] == raw.strip().rpartition("@")[0]
    assert found.typed == raw.strip()
    assert not set(written) & set(' \r\n\x00<>,;:"\\()[]')


@given(st.text(max_size=60))
def test_any_text_is_accepted_or_refused_and_nothing_else(raw: str) -> None:
    try:
        found = accept(raw)
    except Invalid:
        return
    assert "@" in found.key


def test_the_hash_of_an_address_is_nothing_without_its_key() -> None:
    one = accept("r@example.com")
    assert len(one.hashed("a" * 40)) == 32
    assert one.hashed("a" * 40) != one.hashed("b" * 40)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("reader@example.com", "re***r@example.com"),
        ("abcd@example.com", "a***@example.com"),
        ("a@example.com", "a***@example.com"),
    ],
)
def test_a_masked_address_is_known_to_its_owner_only(address: str, shown: str) -> None:
    assert addresses.masked(address) == shown

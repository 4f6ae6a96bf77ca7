"""A return path names its delivery, survives a change of case, and is refused once a character differs."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.mail import verp
from app.mail.verp import Claimed, Kind

KEY = bytes(range(32))
OLD = bytes(range(100, 132))
DOMAIN = "bounce.example.com"
ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
IDS = st.integers(0, 2**56 - 1)


@given(IDS, IDS, st.sampled_from(Kind))
def test_what_is_written_is_read(issue_id: int, subscriber_id: int, kind: Kind) -> None:
    address = verp.return_path(KEY, issue_id, subscriber_id, DOMAIN, kind)
    assert verp.read([KEY], address) == Claimed(kind, issue_id, subscriber_id)


@given(IDS, IDS)
def test_the_local_part_fits_in_smtp(issue_id: int, subscriber_id: int) -> None:
    local, _, domain = verp.return_path(KEY, issue_id, subscriber_id, DOMAIN).partition("@")
    assert len(local) == 42
    assert local == local.lower()
    assert domain == DOMAIN


def test_the_form_of_a_return_path_never_changes() -> None:
    """Addresses are out for months; whoever changes this line loses the bounces to them."""
    written = verp.return_path(KEY, 12, 345, DOMAIN)
    assert written == "b+aeaaaaaaaaaayaaaaaaaaakzxfuulyiqt3glk642@bounce.example.com"


@pytest.mark.parametrize("place", range(40))
def test_another_character_anywhere_in_the_token_is_refused(place: int) -> None:
    address = verp.return_path(KEY, 12, 345, DOMAIN)
    at = 2 + place
    for other in ALPHABET:
        changed = address[:at] + other + address[at + 1 :]
        assert (verp.read([KEY], changed) is not None) == (changed == address)


@pytest.mark.parametrize("place", range(40))
def test_a_byte_outside_the_alphabet_is_refused(place: int) -> None:
    address = verp.return_path(KEY, 12, 345, DOMAIN)
    at = 2 + place
    for other in map(chr, range(256)):
        if other.lower() not in ALPHABET:
            assert verp.read([KEY], address[:at] + other + address[at + 1 :]) is None


def test_every_single_bit_of_the_token_counts() -> None:
    address = verp.return_path(KEY, 12, 345, DOMAIN)
    token = base64.b32decode(address[2:42], casefold=True)
    for bit in range(8 * len(token)):
        flipped = (int.from_bytes(token, "big") ^ 1 << bit).to_bytes(len(token), "big")
        assert verp.read([KEY], f"b+{base64.b32encode(flipped).decode().lower()}@{DOMAIN}") is None


@pytest.mark.parametrize(
    "folded",
    [
        str.upper,
        str.title,
        str.swapcase,
        lambda address: f"<{address}>",
        lambda a: a.replace(DOMAIN, "x.org"),
    ],
)
def test_case_brackets_and_domain_do_not_matter(folded: object) -> None:
    assert callable(folded)
    address = folded(verp.return_path(KEY, 12, 345, DOMAIN))
    assert verp.read([KEY], address) == Claimed(Kind.DELIVERY, 12, 345)


def test_an_old_key_still_reads_and_a_foreign_one_does_not() -> None:
    address = verp.return_path(OLD, 12, 345, DOMAIN)
    assert verp.read([KEY, OLD], address) == Claimed(Kind.DELIVERY, 12, 345)
    assert verp.read([KEY], address) is None
    assert verp.read([], address) is None


def test_a_letter_is_not_taken_for_a_delivery_of_the_same_number() -> None:
    letter = verp.return_path(KEY, 12, 0, DOMAIN, Kind.LETTER)
    assert letter != verp.return_path(KEY, 12, 0, DOMAIN)
    assert verp.read([KEY], letter) == Claimed(Kind.LETTER, 12, 0)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "@",
        "b+@bounce.example.com",
        "bounce.example.com",
        "b+" + "a" * 40,
        "b+" + "a" * 39 + "@bounce.example.com",
        "b+" + "a" * 41 + "@bounce.example.com",
        "b-" + "a" * 40 + "@bounce.example.com",
        "b+" + "a" * 40 + "@bounce.example.com\n",
        "b+" + "ſ" * 40 + "@bounce.example.com",
        "b+" + "ı" * 40 + "@bounce.example.com",
        "b+" + "1" * 40 + "@bounce.example.com",
        "b+" + "a" * 40 + "@例子.example",
        "unsubscribe+" + "a" * 32 + "@bounce.example.com",
        "reader@example.org",
        "MAILER-DAEMON",
    ],
)
def test_what_is_no_return_path_claims_nothing(address: str) -> None:
    assert verp.read([KEY], address) is None


@given(st.text())
def test_arbitrary_text_claims_nothing_and_breaks_nothing(text: str) -> None:
    assert verp.read([KEY], text) is None
    assert verp.read([KEY], f"b+{text}@{DOMAIN}") is None


@pytest.mark.parametrize("ids", [(-1, 1), (1, -1), (2**56, 1), (1, 2**56)])
def test_an_id_that_does_not_fit_is_refused(ids: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="56 bits"):
        verp.return_path(KEY, *ids, DOMAIN)


@pytest.mark.parametrize("domain", ["", "例子.example", "a b.example", "x.example\r\n", "x@y.example"])
def test_a_domain_that_is_not_ascii_is_refused(domain: str) -> None:
    with pytest.raises(ValueError, match="A-labels"):
        verp.return_path(KEY, 1, 1, domain)


def test_a_missing_key_never_signs_and_never_reads() -> None:
    with pytest.raises(ValueError, match="16 octets"):
        verp.return_path(b"", 1, 1, DOMAIN)
    with pytest.raises(ValueError, match="16 octets"):
        verp.read([b""], verp.return_path(KEY, 1, 1, DOMAIN))


def test_a_kind_that_we_do_not_know_claims_nothing() -> None:
    """A newer version may have written it; guessing would report on the wrong row."""
    unknown = verp.return_path(KEY, 1, 1, DOMAIN, kind=9)  # type: ignore[arg-type]
    assert verp.read([KEY], unknown) is None

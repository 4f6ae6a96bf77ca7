"""A link names what it is for and whose it is, cannot be forged, and outlives a change of keys."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core import tokens
from app.core.tokens import Claim, Purpose, Signer

KEYS = [f"{letter * 40}" for letter in "abcd"]
SIGNER = Signer(KEYS[:1])

ids = st.integers(0, (1 << 40) - 1)
scopes = st.integers(0, (1 << 16) - 1)
purposes = st.sampled_from(Purpose)


@given(purposes, ids, scopes)
def test_what_was_signed_is_what_is_read(purpose: Purpose, who: int, scope: int) -> None:
    token = SIGNER.sign(purpose, who, scope)
    assert len(token) == 32
    assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert SIGNER.read(token, purpose) == Claim(purpose, who, scope)
    assert SIGNER.sign(purpose, who, scope) == token


@given(purposes, purposes, ids, scopes)
def test_a_token_of_one_purpose_is_nothing_for_another(
    given_for: Purpose, used_for: Purpose, who: int, scope: int
) -> None:
    found = SIGNER.read(SIGNER.sign(given_for, who, scope), used_for)
    assert (found is None) == (given_for != used_for)


def test_no_byte_of_a_token_can_be_changed() -> None:
    raw = urlsafe_b64decode(SIGNER.sign(Purpose.UNSUBSCRIBE, 4711, 2))
    for at in range(len(raw)):
        for flip in (1, 128, 255):
            changed = bytearray(raw)
            changed[at] ^= flip
            token = urlsafe_b64encode(changed).decode()
            assert all(SIGNER.read(token, purpose) is None for purpose in Purpose)


def test_no_character_of_a_token_can_be_changed() -> None:
    token = SIGNER.sign(Purpose.PREFERENCES, 1)
    for at in range(len(token)):
        for other in "Aa0-_=+/. \n\x00é":
            if token[at] != other:
                assert SIGNER.read(token[:at] + other + token[at + 1 :], Purpose.PREFERENCES) is None


@given(
    st.text(max_size=40)
    | st.binary(min_size=24, max_size=24).map(lambda raw: urlsafe_b64encode(raw).decode())
)
def test_whatever_somebody_types_is_no_token(text: str) -> None:
    assert all(SIGNER.read(text, purpose) is None for purpose in Purpose)


@pytest.mark.parametrize("extra", ["=", "A", "AAAA", "\n", " "])
def test_a_token_with_something_around_it_is_none(extra: str) -> None:
    token = SIGNER.sign(Purpose.CONFIRM, 1, 1)
    assert SIGNER.read(token + extra, Purpose.CONFIRM) is None
    assert SIGNER.read(extra + token, Purpose.CONFIRM) is None


def test_a_new_key_signs_and_the_old_ones_still_count() -> None:
    old = Signer(KEYS[1:2]).sign(Purpose.UNSUBSCRIBE, 7, 1)
    both = Signer(KEYS[:2])
    assert both.read(old, Purpose.UNSUBSCRIBE) == Claim(Purpose.UNSUBSCRIBE, 7, 1)
    new = both.sign(Purpose.UNSUBSCRIBE, 7, 1)
    assert new == Signer(KEYS[:1]).sign(Purpose.UNSUBSCRIBE, 7, 1)
    assert Signer(KEYS[:1]).read(old, Purpose.UNSUBSCRIBE) is None


def test_keys_whose_ids_are_alike_are_both_tried() -> None:
    many = [f"{number:040d}" for number in range(40)]
    everyone = Signer(many)
    for key in many:
        assert everyone.read(Signer([key]).sign(Purpose.MESSAGE, 3), Purpose.MESSAGE) is not None


@pytest.mark.parametrize(("who", "scope"), [(1 << 40, 0), (0, 1 << 16), (-1, 0), (0, -1)])
def test_a_number_that_does_not_fit_is_refused(who: int, scope: int) -> None:
    with pytest.raises(ValueError, match="cannot hold"):
        SIGNER.sign(Purpose.CONFIRM, who, scope)


def test_a_signer_needs_a_key() -> None:
    with pytest.raises(ValueError, match="at least one key"):
        Signer([])


def test_a_confirmation_ages_by_the_day_and_nothing_else_is_asked() -> None:
    made = datetime(2026, 10, 26, 23, 59, tzinfo=UTC)
    claim = Claim(Purpose.CONFIRM, 1, tokens.day_number(made))
    assert not tokens.is_stale(claim, made)
    assert not tokens.is_stale(claim, made + timedelta(days=7))
    assert tokens.is_stale(claim, made + timedelta(days=8))


def test_days_last_for_longer_than_we_do() -> None:
    assert tokens.day_number(datetime(2190, 1, 1, tzinfo=UTC)) < 1 << 16

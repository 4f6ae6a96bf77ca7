"""What replies make of a provider's lane: slower, paused, tried, faster again, and free in the end."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.delivery import tempo
from app.delivery.tempo import Strike, Tempo

NOW = datetime(2026, 10, 26, 7, 0, tzinfo=UTC)
RATE = Strike("rate", stops=False, since=NOW, measured=40.0)


def later(**by: float) -> datetime:
    return NOW + timedelta(**by)


def again(one: Tempo, now: datetime, strike: Strike = RATE) -> Tempo:
    """Return the tempo after a reply to a mail that was handed over just now."""
    return tempo.struck(one, replace(strike, since=now), now)


def test_the_first_reply_halves_what_was_measured() -> None:
    assert tempo.rate_at(again(Tempo(), NOW), NOW) == 20


def test_replies_to_one_burst_count_once() -> None:
    one = again(Tempo(), later(seconds=1))
    assert tempo.struck(one, RATE, later(seconds=2)) == one


def test_it_rises_by_a_tenth_a_minute_up_to_where_it_was_and_is_free_then() -> None:
    one = again(Tempo(), NOW)
    assert tempo.rate_at(one, later(minutes=1)) == pytest.approx(22)
    assert tempo.rate_at(one, later(minutes=7)) == pytest.approx(20 * 1.1**7)
    assert tempo.rate_at(one, later(minutes=8)) is None
    assert tempo.rate_at(one, later(days=400)) is None


def test_the_second_halves_what_is_left_and_it_still_rises_to_where_it_was() -> None:
    one = again(again(Tempo(), NOW), later(minutes=1))
    assert tempo.rate_at(one, later(minutes=1)) == pytest.approx(11)
    assert one.top == 40


@pytest.mark.parametrize(
    ("minutes", "meanings", "is_paused"),
    [
        ((0, 1, 2), ("rate",) * 3, True),
        ((0, 1), ("rate",) * 2, False),
        ((0, 6, 12), ("rate",) * 3, False),
        ((0, 1, 2), ("rate", "connections", "rate"), False),
    ],
    ids=["three", "two", "far apart", "not alike"],
)
def test_three_like_replies_in_ten_minutes_pause_it(
    minutes: tuple[int, ...], meanings: tuple[str, ...], is_paused: bool
) -> None:
    one = Tempo()
    for minute, meaning in zip(minutes, meanings, strict=True):
        one = again(one, later(minutes=minute), replace(RATE, meaning=meaning))
    assert (one.paused_until is not None) == is_paused


def test_a_reply_that_wants_no_more_pauses_it_at_once_also_in_a_burst() -> None:
    stop = replace(RATE, meaning="reputation", stops=True)
    assert again(Tempo(), NOW, stop).paused_until == later(minutes=15)
    slowed = again(Tempo(), later(seconds=1))
    assert tempo.struck(slowed, stop, later(seconds=2)).paused_until == later(seconds=2, minutes=15)


def test_each_try_that_is_refused_doubles_the_pause_up_to_two_hours() -> None:
    now, one, pauses = NOW, again(Tempo(), NOW, replace(RATE, stops=True)), []
    for _ in range(5):
        pauses.append(one.pause // 60)
        now += timedelta(seconds=one.pause)
        one = again(one, now, replace(RATE, is_probe=True))
    assert pauses == [15, 30, 60, 120, 120]


def test_mails_that_were_in_the_air_when_it_closed_change_nothing() -> None:
    one = again(Tempo(), NOW, replace(RATE, stops=True))
    assert again(one, later(seconds=1)) == one


def test_a_try_that_is_taken_opens_it_slowly() -> None:
    one = tempo.passed(again(Tempo(), NOW, replace(RATE, stops=True)), later(minutes=15))
    assert one.paused_until is None
    assert tempo.rate_at(one, later(minutes=15)) == 20
    assert again(one, later(minutes=16)).paused_until is None


@given(st.lists(st.tuples(st.floats(0, 7200), st.booleans(), st.booleans(), st.floats(0, 1e5)), max_size=30))
def test_a_lane_is_never_slower_than_one_a_minute_and_never_closed_for_longer_than_two_hours(
    replies: list[tuple[float, bool, bool, float]],
) -> None:
    one, now = Tempo(), NOW
    for seconds, stops, is_probe, measured in replies:
        now += timedelta(seconds=seconds)
        one = tempo.struck(one, Strike("rate", stops, now, measured, is_probe), now)
        rate = tempo.rate_at(one, now)
        assert rate is None or rate >= tempo.LEAST
        assert one.paused_until is None or one.paused_until - now <= timedelta(hours=2)

"""When a mail is tried again, and when it is given up."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from app.delivery import timing

seven = datetime(2026, 10, 26, 7, 0, tzinfo=UTC)
jitters = st.floats(-1, 1)


@given(st.integers(0, timing.MOST_ATTEMPTS - 1), jitters)
def test_the_next_try_is_a_minute_away_or_more_and_five_hours_at_most(attempts: int, jitter: float) -> None:
    again = timing.next_try(attempts, seven, jitter)
    assert again is not None
    assert timedelta(minutes=1) <= again - seven <= timedelta(hours=5)


@given(st.integers(timing.MOST_ATTEMPTS, 10_000), jitters)
def test_after_many_tries_it_is_given_up(attempts: int, jitter: float) -> None:
    assert timing.next_try(attempts, seven, jitter) is None


def test_each_wait_is_as_long_as_the_last_or_longer() -> None:
    tries = [timing.next_try(attempts, seven) for attempts in range(1, timing.MOST_ATTEMPTS)]
    waits = [at for at in tries if at is not None]
    assert len(waits) == timing.MOST_ATTEMPTS - 1
    assert waits == sorted(waits)


def test_a_greylisted_daily_has_many_tries_before_its_time_is_over() -> None:
    now, tries = seven, 0
    while now - seven < timedelta(hours=20) and (again := timing.next_try(tries + 1, now)):
        now, tries = again, tries + 1
    assert tries >= 7

"""A reader's own hour as an instant: now when it has just been, else the next time, in every zone and season."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from app.subscribers import hours

ZONES = ("Asia/Shanghai", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Pacific/Kiritimati", "UTC")


def at(written: str) -> datetime:
    return datetime.fromisoformat(written).replace(tzinfo=UTC)


def test_an_hour_that_has_just_been_is_not_waited_for_and_one_to_come_is() -> None:
    start = at("2026-10-26 01:00")  # 09:00 in Shanghai
    assert hours.slot("Asia/Shanghai", 8, start) is None
    assert hours.slot("Asia/Shanghai", 9, start) is None
    assert hours.slot("Asia/Shanghai", 10, start) == at("2026-10-26 02:00")
    assert hours.slot("Asia/Shanghai", 21, start) == at("2026-10-26 13:00"), (
        "twelve hours ago is no more just now"
    )
    assert hours.slot("Asia/Shanghai", 22, start) is None
    assert hours.slot("America/New_York", 8, start) == at("2026-10-26 12:00")


def test_an_hour_that_the_clocks_leave_out_comes_when_they_have_jumped() -> None:
    assert hours.slot("Europe/Berlin", 2, at("2026-03-28 23:00")) == at("2026-03-29 01:00")


def test_an_hour_that_the_clocks_repeat_comes_the_first_time() -> None:
    assert hours.slot("Europe/Berlin", 2, at("2026-10-24 23:00")) == at("2026-10-25 00:00")


@given(
    st.sampled_from(ZONES),
    st.integers(0, 23),
    st.datetimes(datetime(2025, 1, 1), datetime(2028, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC)),
)
def test_a_slot_is_that_hour_there_and_never_more_than_half_a_day_away(
    zone: str, hour: int, start: datetime
) -> None:
    found = hours.slot(zone, hour, start)
    if found is not None:
        assert timedelta() < found - start <= timedelta(hours=13), "an hour more when the clocks go back"
        there = found.astimezone(ZoneInfo(zone))
        assert there.minute == 0 or zone == "Asia/Kathmandu"
        assert there.hour == hour or found.astimezone(UTC).month == 3, "or the hour was left out"

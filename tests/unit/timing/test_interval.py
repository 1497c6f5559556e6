from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from foliot.kinds.interval_trigger import IntervalTrigger
from foliot.model.errors import InvalidError
from foliot.model.policy import Dst, DstRepeat
from foliot.model.recurrence import Recurrence


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def every(amount: int, unit: str, anchor: datetime, zone: str = "UTC", dst: Dst | None = None) -> Recurrence:
    trigger = IntervalTrigger.model_validate(
        {"frequency_unit": unit, "frequency_time": amount, "timezone": zone}
    )
    return trigger.compile(dst=dst or Dst(), anchor=anchor, key="k")


def first(times: Recurrence, n: int) -> list[datetime]:
    found: list[datetime] = []
    while len(found) < n:
        instant = times.after(found[-1] if found else utc("1900-01-01"))
        assert instant is not None
        found.append(instant)
    return found


def test_the_anchor_is_the_first_time_and_nothing_comes_before_it() -> None:
    anchor = utc("2026-05-05T10:00:00.123456")
    for unit in ("SECONDS", "HOURS", "DAYS", "MONTHS"):
        times = every(2, unit, anchor)
        assert times.after(utc("1999-01-01")) == anchor
        assert times.before(anchor) is None
        assert times.count(utc("1999-01-01"), anchor) == 1


def test_hours_are_elapsed_time_and_days_are_the_wall_clock() -> None:
    anchor = utc("2026-03-28T08:00")  # 09:00 in Berlin, the day before the change
    assert first(every(24, "HOURS", anchor, "Europe/Berlin"), 2)[1] == utc("2026-03-29T08:00")
    assert first(every(1, "DAYS", anchor, "Europe/Berlin"), 2)[1] == utc("2026-03-29T07:00")
    assert first(every(1, "WEEKS", anchor, "Europe/Berlin"), 2)[1] == utc("2026-04-04T07:00")


def test_a_month_too_short_ends_on_its_last_day_and_does_not_shorten_the_next() -> None:
    times = every(1, "MONTHS", utc("2027-01-31T12:00"))
    assert [f"{at:%m-%d}" for at in first(times, 5)] == ["01-31", "02-28", "03-31", "04-30", "05-31"]
    leap = every(12, "MONTHS", utc("2028-02-29T12:00"))
    assert [f"{at:%Y-%m-%d}" for at in first(leap, 5)] == [
        "2028-02-29",
        "2029-02-28",
        "2030-02-28",
        "2031-02-28",
        "2032-02-29",
    ]


def test_microseconds_of_the_anchor_are_kept() -> None:
    anchor = utc("2026-01-31T10:00:00.000001")
    assert first(every(1, "MONTHS", anchor), 2)[1] == utc("2026-02-28T10:00:00.000001")
    assert every(7, "SECONDS", anchor).before(anchor + timedelta(seconds=7)) == anchor


def test_an_anchor_within_the_repeated_hour_is_itself_whatever_the_policy() -> None:
    second_half_past_two = utc("2026-10-25T01:30")
    for repeat in DstRepeat:
        times = every(1, "DAYS", second_half_past_two, "Europe/Berlin", Dst(repeat=repeat))
        assert first(times, 2) == [second_half_past_two, utc("2026-10-26T01:30")]


def test_years_of_seconds_are_counted_at_once() -> None:
    times = every(1, "SECONDS", utc("2000-01-01"))
    assert times.count(utc("2000-01-01"), utc("2099-12-31T23:59:59")) == 36525 * 86400


def test_it_ends_with_the_calendar() -> None:
    times = every(1000, "MONTHS", utc("2026-01-01"))
    instants = [utc("2026-01-01")]
    while (instant := times.after(instants[-1])) is not None:
        instants.append(instant)
    assert instants[-1].year == 9942
    assert all(earlier < later for earlier, later in pairwise(instants))
    assert times.count(instants[0], instants[-1]) == len(instants)
    assert times.before(datetime.max.replace(tzinfo=UTC)) == instants[-1]
    every_32_years = every(10**9, "SECONDS", utc("9950-01-01"))
    assert every_32_years.after(utc("9950-01-01")) == utc("9981-09-09T01:46:40")
    assert every_32_years.after(utc("9990-01-01")) is None


@pytest.mark.parametrize("unit", ["HOURS", "DAYS", "WEEKS", "MONTHS"])
def test_a_first_step_past_the_year_9999_is_refused(unit: str) -> None:
    with pytest.raises(InvalidError) as caught:
        every(10**9, unit, utc("2026-01-01"), "Europe/Berlin")
    assert caught.value.problems[0].pointer == "/trigger/frequency_time"


@pytest.mark.parametrize(("unit", "year"), [("SECONDS", 2057), ("MINUTES", 3927)])
def test_a_billion_of_the_short_units_is_fine(unit: str, year: int) -> None:
    following = every(10**9, unit, utc("2026-01-01")).after(utc("2026-01-01"))
    assert following is not None
    assert following.year == year


def test_an_anchor_at_the_end_of_the_calendar_is_refused_at_start_ts() -> None:
    with pytest.raises(InvalidError) as caught:
        every(1, "DAYS", datetime.max.replace(tzinfo=UTC), "Asia/Tokyo")
    assert caught.value.problems[0].pointer == "/start_ts"


def test_a_step_of_thousands_of_years_is_found_at_once_in_any_zone() -> None:
    times = every(36_000, "MONTHS", utc("2026-06-01T10:00"), "Europe/Berlin")
    assert times.after(utc("2026-06-01T10:00")) == utc("5026-06-01T10:00")
    assert times.before(utc("5026-06-01T10:00")) == utc("2026-06-01T10:00")

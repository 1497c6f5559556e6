"""Cron on the days when clocks are changed, with the instants written out; and its rarer days."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from foliot.kinds.cron_trigger import CronTrigger
from foliot.model.errors import InvalidError
from foliot.model.policy import Dst, DstGap, DstRepeat
from foliot.model.recurrence import Recurrence

ANCHOR = datetime(2026, 1, 1, tzinfo=UTC)


def cron(expression: str, zone: str = "UTC", gap: str = "shift", repeat: str = "first") -> Recurrence:
    dst = Dst(gap=DstGap(gap), repeat=DstRepeat(repeat))
    return CronTrigger(expression=expression, timezone=zone).compile(dst=dst, anchor=ANCHOR, key="k")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def each(times: Recurrence, instant: datetime) -> Iterator[datetime]:
    while (following := times.after(instant)) is not None:
        yield following
        instant = following


def fires(times: Recurrence, after: str, n: int) -> list[str]:
    return [f"{instant:%Y-%m-%dT%H:%M}" for instant in islice(each(times, utc(after)), n)]


def days(times: Recurrence, after: str, n: int) -> list[str]:
    return [f"{instant:%Y-%m-%d}" for instant in islice(each(times, utc(after)), n)]


# --- clocks are set forward ------------------------------------------------------------------------


def test_a_fixed_time_in_the_gap_fires_at_the_first_instant_after_it() -> None:
    times = cron("30 2 * * *", "Europe/Berlin")
    assert fires(times, "2026-03-28T00:00", 3) == ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"]


def test_a_fixed_time_in_the_gap_can_be_skipped() -> None:
    times = cron("30 2 * * *", "Europe/Berlin", gap="skip")
    assert fires(times, "2026-03-28T00:00", 2) == ["2026-03-28T01:30", "2026-03-30T00:30"]


def test_several_times_in_the_gap_and_the_one_at_its_end_are_one_fire() -> None:
    times = cron("0,20,40 2,3 * * *", "Europe/Berlin")
    assert fires(times, "2026-03-29T00:00", 3) == ["2026-03-29T01:00", "2026-03-29T01:20", "2026-03-29T01:40"]
    assert times.count(utc("2026-03-29T00:00"), utc("2026-03-29T12:00")) == 3


def test_what_follows_real_time_has_nothing_in_the_gap() -> None:
    times = cron("*/30 * * * *", "Europe/Berlin")
    assert fires(times, "2026-03-29T00:29", 4) == [
        "2026-03-29T00:30",
        "2026-03-29T01:00",
        "2026-03-29T01:30",
        "2026-03-29T02:00",
    ]
    assert fires(cron("*/30 2 * * *", "Europe/Berlin"), "2026-03-29T00:00", 1) == ["2026-03-30T00:00"]


def test_a_midnight_that_does_not_exist_is_one_o_clock() -> None:
    times = cron("0 0 * * *", "America/Santiago")
    assert fires(times, "2026-09-05T00:00", 3) == ["2026-09-05T04:00", "2026-09-06T04:00", "2026-09-07T03:00"]


def test_half_an_hour_forward_at_lord_howe() -> None:
    times = cron("15 2 * * *", "Australia/Lord_Howe")
    assert fires(times, "2026-10-02T12:00", 3) == ["2026-10-02T15:45", "2026-10-03T15:30", "2026-10-04T15:15"]
    times = cron("*/15 * * * *", "Australia/Lord_Howe")
    assert fires(times, "2026-10-03T15:00", 3) == ["2026-10-03T15:15", "2026-10-03T15:30", "2026-10-03T15:45"]


def test_a_day_that_does_not_exist_fires_as_the_next_begins() -> None:
    times = cron("0 12 * * *", "Pacific/Apia")
    assert fires(times, "2011-12-29T00:00", 3) == ["2011-12-29T22:00", "2011-12-30T10:00", "2011-12-30T22:00"]


# --- clocks are set back ---------------------------------------------------------------------------


def test_a_fixed_time_in_the_repeated_hour_fires_first_second_or_both_times() -> None:
    first, second, next_day = "2026-10-25T00:30", "2026-10-25T01:30", "2026-10-26T01:30"
    after = "2026-10-24T12:00"
    assert fires(cron("30 2 * * *", "Europe/Berlin"), after, 2) == [first, next_day]
    assert fires(cron("30 2 * * *", "Europe/Berlin", repeat="second"), after, 2) == [second, next_day]
    assert fires(cron("30 2 * * *", "Europe/Berlin", repeat="both"), after, 3) == [first, second, next_day]


def test_a_question_from_within_the_repeated_hour_keeps_to_the_policy() -> None:
    between = "2026-10-25T01:10"  # 02:10 for the second time
    assert fires(cron("30 2 * * *", "Europe/Berlin"), between, 1) == ["2026-10-26T01:30"]
    assert fires(cron("30 2 * * *", "Europe/Berlin", repeat="second"), between, 1) == ["2026-10-25T01:30"]
    assert cron("0 2 * * *", "Europe/Berlin", repeat="second").before(utc(between)) == utc("2026-10-25T01:00")
    assert cron("0 2 * * *", "Europe/Berlin").before(utc(between)) == utc("2026-10-25T00:00")


def test_what_follows_real_time_fires_through_both_hours() -> None:
    times = cron("*/30 2 * * *", "Europe/Berlin")
    assert fires(times, "2026-10-24T12:00", 4) == [
        "2026-10-25T00:00",
        "2026-10-25T00:30",
        "2026-10-25T01:00",
        "2026-10-25T01:30",
    ]


def test_a_repeated_hour_that_ends_the_day_twice() -> None:
    first, second, next_day = "2026-04-05T02:30", "2026-04-05T03:30", "2026-04-06T03:30"
    after = "2026-04-04T12:00"
    assert fires(cron("30 23 * * *", "America/Santiago"), after, 2) == [first, next_day]
    assert fires(cron("30 23 * * *", "America/Santiago", repeat="second"), after, 2) == [second, next_day]
    assert fires(cron("0 0 * * *", "America/Santiago", repeat="both"), after, 1) == ["2026-04-05T04:00"]


def test_half_an_hour_back_at_lord_howe() -> None:
    assert fires(cron("*/10 * * * *", "Australia/Lord_Howe"), "2026-04-04T14:35", 7) == [
        f"2026-04-04T{minute}" for minute in ("14:40", "14:50", "15:00", "15:10", "15:20", "15:30", "15:40")
    ]
    times = cron("45 1 * * *", "Australia/Lord_Howe", repeat="both")
    assert fires(times, "2026-04-04T12:00", 3) == ["2026-04-04T14:45", "2026-04-04T15:15", "2026-04-05T15:15"]


# --- days ------------------------------------------------------------------------------------------


def test_the_nearest_weekday_stays_within_the_month() -> None:
    # 2026: 1 Aug is a Saturday, 15 Aug too; 1 Feb and 15 Feb are Sundays; 31 May is one.
    assert days(cron("0 0 1W * *"), "2026-07-15", 1) == ["2026-08-03"]
    assert days(cron("0 0 1W * *"), "2026-01-15", 1) == ["2026-02-02"]
    assert days(cron("0 0 15W * *"), "2026-08-01", 1) == ["2026-08-14"]
    assert days(cron("0 0 15W * *"), "2026-02-01", 1) == ["2026-02-16"]
    assert days(cron("0 0 31W * *"), "2026-05-01", 2) == ["2026-05-29", "2026-07-31"]


def test_last_days() -> None:
    assert days(cron("0 0 L * *"), "2028-01-31", 3) == ["2028-02-29", "2028-03-31", "2028-04-30"]
    assert days(cron("0 0 LW * *"), "2026-05-01", 2) == ["2026-05-29", "2026-06-30"]
    assert days(cron("0 0 * * 5L"), "2026-05-01", 2) == ["2026-05-29", "2026-06-26"]
    assert days(cron("0 0 * * FRIL"), "2026-05-01", 2) == ["2026-05-29", "2026-06-26"]


def test_numbered_weekdays() -> None:
    assert days(cron("0 0 * * TUE#2"), "2026-05-01", 2) == ["2026-05-12", "2026-06-09"]
    assert days(cron("0 0 * * 5#5"), "2026-01-01", 2) == ["2026-01-30", "2026-05-29"]


def test_two_day_fields_are_alternatives_unless_one_starts_with_a_star() -> None:
    assert days(cron("0 0 13 * 5"), "2026-03-01", 4) == [
        "2026-03-06",
        "2026-03-13",
        "2026-03-20",
        "2026-03-27",
    ]
    assert days(cron("0 0 */13 * 5"), "2026-03-01", 2) == ["2026-03-27", "2026-05-01"]


def test_rare_days_are_found_at_once() -> None:
    assert days(cron("0 0 29 2 *"), "2096-03-01", 1) == ["2104-02-29"]
    assert days(cron("0 0 * 2 MON#5"), "2072-03-01", 1) == ["2112-02-29"]
    assert cron("0 0 * 2 MON#5", "Europe/Berlin").before(utc("2112-02-28")) == utc("2072-02-28T23:00")


@pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 4,6 *", "0 0 31W 4 *", "0 0 31 2,4,6,9,11 ?"])
def test_an_expression_that_never_fires_is_refused(expression: str) -> None:
    started = time.monotonic()
    with pytest.raises(InvalidError) as caught:
        cron(expression)
    assert caught.value.problems[0].code == "never_fires"
    assert time.monotonic() - started < 1


def test_an_expression_whose_only_times_are_skipped_with_the_gap_is_refused() -> None:
    """02:30 on the last Sunday of March is never shown by a clock in Berlin."""
    with pytest.raises(InvalidError, match="set forward over its only times"):
        cron("30 2 * 3 7L", "Europe/Berlin", gap="skip")
    assert fires(cron("30 2 * 3 7L", "Europe/Berlin"), "2026-01-01", 2) == [
        "2026-03-29T01:00",
        "2027-03-28T01:00",
    ]


# --- numbers ---------------------------------------------------------------------------------------


def test_a_year_of_seconds_is_counted_without_walking() -> None:
    times = cron("* * * * * *", "Europe/Berlin")
    started = time.monotonic()
    year = times.count(utc("2026-01-01"), utc("2026-12-31T23:59:59"))
    century = times.count(utc("2000-01-01"), utc("2099-12-31T23:59:59"))
    assert year == 365 * 86400
    assert century == 36525 * 86400
    assert time.monotonic() - started < 2


def test_a_count_includes_both_ends_and_is_nothing_backwards() -> None:
    times = cron("0 * * * *")
    assert times.count(utc("2026-01-01T00:00"), utc("2026-01-01T02:00")) == 3
    assert times.count(utc("2026-01-01T00:00"), utc("2026-01-01T00:00")) == 1
    assert times.count(utc("2026-01-01T02:00"), utc("2026-01-01T00:00")) == 0


def test_fractions_of_a_second_and_other_zones_make_no_difference() -> None:
    times = cron("0 9 * * *")
    nine = utc("2026-05-05T09:00")
    tokyo = timedelta(hours=9)
    assert times.after(nine - timedelta(microseconds=1)) == nine
    assert times.before(nine + timedelta(microseconds=1)) == nine
    assert times.after(nine) == nine + timedelta(days=1)
    from_tokyo = datetime.fromisoformat("2026-05-05T17:59:59+09:00")
    assert from_tokyo.utcoffset() == tokyo
    assert times.after(from_tokyo) == nine


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Pacific/Niue", "Europe/Berlin"])
def test_the_ends_of_the_calendar_are_no_trouble(zone: str) -> None:
    times = cron("0 0 * * *", zone)
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    assert times.after(last) is None
    assert times.before(first) is None
    assert times.after(first) is not None
    assert times.before(last) is not None
    assert times.after(datetime.fromisoformat("9999-12-31T23:59:59-12:00")) is None
    assert times.after(datetime.fromisoformat("0001-01-01T00:00:00+12:00")) is not None

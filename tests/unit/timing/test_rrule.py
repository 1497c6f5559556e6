import time
from datetime import UTC, datetime
from unittest.mock import patch

import pytest

from foliot.kinds.rrule_trigger import RRuleTrigger
from foliot.model.errors import InvalidError
from foliot.model.policy import Dst
from foliot.model.recurrence import Recurrence
from foliot.timing import rule_days


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


START = utc("2026-01-01T04:00:07.5")


def rule(text: str, zone: str = "UTC", start: datetime = START, dst: Dst | None = None) -> Recurrence:
    return RRuleTrigger(rule=text, timezone=zone).compile(dst=dst or Dst(), anchor=start, key="k")


def fires(times: Recurrence, n: int, after: str = "1999-01-01") -> list[str]:
    found: list[str] = []
    instant: datetime | None = utc(after)
    while len(found) < n and instant is not None and (instant := times.after(instant)) is not None:
        found.append(f"{instant:%Y-%m-%dT%H:%M:%S}")
    return found


def test_it_starts_at_the_starts_wall_clock_to_the_second() -> None:
    assert fires(rule("FREQ=DAILY", "Europe/Berlin"), 2) == ["2026-01-01T04:00:07", "2026-01-02T04:00:07"]


def test_the_start_is_a_time_only_if_the_rule_allows_it() -> None:
    assert fires(rule("FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0"), 2) == [
        "2026-01-30T09:00:00",
        "2026-02-27T09:00:00",
    ]


def test_plain_and_numbered_weekdays_are_all_taken() -> None:
    times = rule("FREQ=MONTHLY;BYDAY=TU,1MO;BYHOUR=9;BYMINUTE=0;BYSECOND=0")
    assert fires(times, 6) == [
        "2026-01-05T09:00:00",
        "2026-01-06T09:00:00",
        "2026-01-13T09:00:00",
        "2026-01-20T09:00:00",
        "2026-01-27T09:00:00",
        "2026-02-02T09:00:00",
    ]


@pytest.mark.parametrize("text", ["FREQ=MONTHLY;BYDAY=20MO", "FREQ=YEARLY;BYMONTH=2;BYDAY=1MO,-6MO"])
def test_a_weekday_that_no_month_has_so_often_is_refused(text: str) -> None:
    with pytest.raises(InvalidError, match="no weekday of a month reaches"):
        rule(text)


def test_a_prefix_spaces_and_small_letters_are_taken() -> None:
    assert fires(rule(" rrule:freq=daily;interval=2; "), 2) == ["2026-01-01T04:00:07", "2026-01-03T04:00:07"]


def test_it_keeps_to_the_wall_clock_over_a_change_under_the_policy() -> None:
    times = rule("FREQ=DAILY", "Europe/Berlin", utc("2026-03-27T01:30"))
    assert fires(times, 4) == [
        "2026-03-27T01:30:00",
        "2026-03-28T01:30:00",
        "2026-03-29T01:00:00",
        "2026-03-30T00:30:00",
    ]
    silent = rule("FREQ=DAILY", "Europe/Berlin", utc("2026-03-27T01:30"), Dst.model_validate({"gap": "skip"}))
    assert fires(silent, 1, "2026-03-28T12:00") == ["2026-03-30T00:30:00"]


def test_an_hourly_rule_goes_on_through_both_hours() -> None:
    times = rule("FREQ=HOURLY", "Europe/Berlin", utc("2026-10-24T23:30"))
    assert fires(times, 4) == [
        f"2026-10-{at}" for at in ("24T23:30:00", "25T00:30:00", "25T01:30:00", "25T02:30:00")
    ]


def test_a_count_ends_it() -> None:
    assert fires(rule("FREQ=DAILY;COUNT=2"), 5) == ["2026-01-01T04:00:07", "2026-01-02T04:00:07"]
    times = rule("FREQ=DAILY;BYHOUR=1,9;COUNT=3")
    assert fires(times, 9) == ["2026-01-01T09:00:07", "2026-01-02T01:00:07", "2026-01-02T09:00:07"]
    assert times.count(utc("2000-01-01"), utc("2100-01-01")) == 3
    assert times.before(utc("2100-01-01")) == utc("2026-01-02T09:00:07")
    assert rule("FREQ=MINUTELY;COUNT=1000000").count(utc("2000-01-01"), utc("2100-01-01")) == 1_000_000


def test_until_is_included_in_utc_by_the_wall_clock_or_to_the_end_of_a_day() -> None:
    assert len(fires(rule("FREQ=DAILY;UNTIL=20260103T040007Z", "Asia/Tokyo"), 9)) == 3
    assert len(fires(rule("FREQ=DAILY;UNTIL=20260103T040006Z", "Asia/Tokyo"), 9)) == 2
    assert len(fires(rule("FREQ=DAILY;UNTIL=20260103T130007", "Asia/Tokyo"), 9)) == 3
    assert len(fires(rule("FREQ=DAILY;UNTIL=20260103"), 9)) == 3
    assert len(fires(rule("FREQ=YEARLY;UNTIL=99991231T235959Z", "Asia/Tokyo"), 9)) == 9


def test_numbers_are_counted_without_listing_them() -> None:
    every_second = ";".join(
        f"{name}={','.join(map(str, range(size)))}"
        for name, size in (("BYHOUR", 24), ("BYMINUTE", 60), ("BYSECOND", 60))
    )
    started = time.monotonic()
    year = (utc("2027-01-01"), utc("2027-12-31T23:59:59"))
    assert rule("FREQ=SECONDLY").count(*year) == 365 * 86400
    assert rule(f"FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;{every_second}").count(*year) == 365 * 86400
    assert rule("FREQ=MINUTELY;BYDAY=SU").count(*year) == 52 * 1440
    assert fires(rule(f"FREQ=YEARLY;BYDAY=SU;{every_second};BYSETPOS=-1"), 1) == ["2026-12-27T23:59:59"]
    assert time.monotonic() - started < 2


def test_years_later_it_does_not_count_up_from_the_start() -> None:
    times = rule("FREQ=DAILY;INTERVAL=3", start=utc("1900-01-01"))
    assert times.after(utc("2026-05-05")) == utc("2026-05-06")
    with patch.object(rule_days, "rrule", side_effect=AssertionError("asked dateutil again")):
        assert times.after(utc("2026-05-06")) == utc("2026-05-09")
        assert times.after(utc("2026-05-05")) == utc("2026-05-06")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "NAME=value"),
        ("DAILY", "NAME=value"),
        ("INTERVAL=2", "FREQ is missing"),
        ("FREQ=FORTNIGHTLY", "one of: YEARLY"),
        ("FREQ=DAILY;FREQ=DAILY", "given twice"),
        ("FREQ=DAILY;BYEASTER=1", "not part of a rule"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL 0 is out of range"),
        ("FREQ=DAILY;INTERVAL=-1", "out of range"),
        ("FREQ=DAILY;INTERVAL=99999999999999999999", "is not a number"),
        ("FREQ=DAILY;COUNT=0", "COUNT 0 is out of range"),
        ("FREQ=DAILY;COUNT=3;UNTIL=20270101", "exclude each other"),
        ("FREQ=DAILY;UNTIL=20270230", "UNTIL"),
        ("FREQ=DAILY;UNTIL=tomorrow", "UNTIL"),
        ("FREQ=MONTHLY;BYMONTHDAY=32", "BYMONTHDAY 32 is out of range"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY 0 is out of range"),
        ("FREQ=DAILY;BYHOUR=24", "BYHOUR 24"),
        ("FREQ=DAILY;BYSECOND=60", "BYSECOND 60"),
        ("FREQ=WEEKLY;BYDAY=XX", "BYDAY"),
        ("FREQ=MONTHLY;BYDAY=0MO", "BYDAY"),
        ("FREQ=WEEKLY;BYDAY=2MO", "numbered BYDAY"),
        ("FREQ=WEEKLY;WKST=1", "WKST"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY does not go"),
        ("FREQ=DAILY;BYWEEKNO=1", "BYWEEKNO does not go"),
        ("FREQ=MONTHLY;BYYEARDAY=1", "BYYEARDAY does not go"),
        ("DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY", "DTSTART does not belong"),
        ("FREQ=DAILY\nEXDATE:20260101T000000Z", "EXDATE does not belong"),
        ("RRULE:FREQ=DAILY\nRDATE:20260101", "RDATE does not belong"),
        ("RRULE:FREQ=DAILY\nRRULE:FREQ=DAILY", "FREQ"),
        ("FREQ=SECONDLY;BYDAY=MO", "SECONDLY can't be filtered by BYDAY"),
        ("FREQ=SECONDLY;BYSETPOS=1", "SECONDLY can't be filtered"),
        ("FREQ=MINUTELY;BYMONTH=2", "MINUTELY can't be filtered by BYMONTH"),
        ("FREQ=HOURLY;BYMONTHDAY=30", "HOURLY can't be filtered by BYMONTHDAY"),
        ("FREQ=HOURLY;BYSETPOS=1;BYMINUTE=1", "HOURLY can't be filtered by BYSETPOS"),
    ],
)
def test_a_bad_rule_is_told_which_part_and_what_would_be_right(text: str, message: str) -> None:
    with pytest.raises(InvalidError, match=message) as caught:
        RRuleTrigger.model_construct(rule=text).compile(dst=Dst(), anchor=START, key="k")
    problem = caught.value.problems[0]
    assert (problem.pointer, problem.code) == ("/trigger/rule", "bad_rule")
    assert problem.hint


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;INTERVAL=999;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;INTERVAL=1000;BYMONTH=4;BYMONTHDAY=31",
        "FREQ=MONTHLY;INTERVAL=2;BYMONTH=2",
        "FREQ=YEARLY;INTERVAL=100;BYMONTH=2;BYMONTHDAY=29",
        "FREQ=DAILY;INTERVAL=7;BYDAY=MO",
        "FREQ=DAILY;INTERVAL=49;BYDAY=MO",
        "FREQ=HOURLY;INTERVAL=24;BYHOUR=5",
        "FREQ=MINUTELY;INTERVAL=1440;BYHOUR=5",
        "FREQ=MINUTELY;INTERVAL=2;BYMINUTE=1",
        "FREQ=HOURLY;INTERVAL=168;BYDAY=MO",
        "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6",
        "FREQ=YEARLY;BYWEEKNO=53;BYMONTH=6",
        "FREQ=YEARLY;BYDAY=53MO;BYMONTH=1",
        "FREQ=DAILY;UNTIL=20251231T235959Z",
        "FREQ=YEARLY;BYMONTH=12;UNTIL=20260601",
    ],
)
def test_a_rule_that_never_fires_is_refused_without_a_search_to_the_end_of_time(text: str) -> None:
    started = time.monotonic()
    with pytest.raises(InvalidError) as caught:
        rule(text)
    assert caught.value.problems[0].code == "never_fires"
    assert time.monotonic() - started < 2


def test_dateutil_is_asked_about_21_years_at_most() -> None:
    asked: list[datetime] = []

    def no_days(*_: object, dtstart: datetime, **__: object) -> list[datetime]:
        asked.append(dtstart)
        return []

    with patch.object(rule_days, "rrule", no_days), pytest.raises(InvalidError):
        rule("FREQ=DAILY;INTERVAL=11;BYMONTH=2;BYMONTHDAY=30;BYHOUR=13")
    assert len(asked) == len(set(asked)) == 21
    assert min(asked).year >= 9972


def test_a_rule_whose_phase_meets_rarely_still_fires() -> None:
    assert fires(rule("FREQ=YEARLY;INTERVAL=7;BYMONTH=2;BYMONTHDAY=29"), 2) == [
        "2040-02-29T04:00:07",
        "2068-02-29T04:00:07",
    ]
    assert fires(rule("FREQ=MINUTELY;INTERVAL=1441;BYHOUR=3;BYMINUTE=0"), 1) == ["2029-10-13T03:00:07"]


@pytest.mark.parametrize("freq", ["SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"])
def test_the_longest_interval_is_no_trouble(freq: str) -> None:
    times = rule(f"FREQ={freq};INTERVAL=1000000000", "Asia/Tokyo")
    assert fires(times, 1) == ["2026-01-01T04:00:07"]
    assert times.before(datetime.max.replace(tzinfo=UTC)) is not None

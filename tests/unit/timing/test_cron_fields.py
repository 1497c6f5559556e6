from collections import Counter

import pytest

from foliot.model.errors import InvalidError
from foliot.timing.cron import parse


@pytest.mark.parametrize(
    ("alias", "written_out"),
    [
        ("@hourly", "0 * * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"),
        (" @Annually ", "0 0 1 1 *"),
    ],
)
def test_an_alias_means_what_it_stands_for(alias: str, written_out: str) -> None:
    assert parse(alias, "") == parse(written_out, "")


def test_names_and_capitals_make_no_difference() -> None:
    assert parse("0 0 ? jan-mar Mon-Fri", "") == parse("0 0 * 1-3 1-5", "")


def test_sunday_is_0_and_7() -> None:
    assert parse("0 0 * * 0", "") == parse("0 0 * * 7", "") == parse("0 0 * * SUN", "")


def test_six_fields_begin_with_seconds_and_five_mean_second_0() -> None:
    assert parse("*/20 1 2 3 4 5", "").seconds == (0, 20, 40)
    assert parse("1 2 3 4 5", "").seconds == (0,)


def test_a_range_of_one_with_a_step_is_that_one() -> None:
    assert parse("5-5/2 * * * *", "").minutes == (5,)


def test_days_must_both_match_only_if_one_field_starts_with_a_star() -> None:
    assert parse("0 0 13 * 5", "").days_must_agree is False
    assert parse("0 0 */2 * 5", "").days_must_agree is True
    assert parse("0 0 13 * *", "").days_must_agree is True
    assert parse("0 0 ? * 5", "").days_must_agree is True


@pytest.mark.parametrize(
    ("expression", "follows"),
    [
        ("30 2 * * *", False),
        ("0,30 1-3 * * *", False),
        ("H H * * *", False),
        ("H(0-29) 2 * * *", False),
        ("H(0-29)/10 2 * * *", False),
        ("* 2 * * *", True),
        ("*/15 2 * * *", True),
        ("30 * * * *", True),
        ("30 */2 * * *", True),
        ("H/15 2 * * *", True),
        ("* 30 2 * * *", False),
    ],
)
def test_an_open_minute_or_hour_follows_real_time(expression: str, follows: bool) -> None:
    assert parse(expression, "key").follows_real_time is follows


def test_h_is_the_same_each_time_for_a_schedule_and_spread_over_many() -> None:
    keys = [f"schedule {number}" for number in range(6000)]
    minutes = Counter(parse("H * * * *", key).minutes for key in keys)
    assert minutes == Counter(parse("H * * * *", key).minutes for key in keys)
    assert len(minutes) == 60
    assert max(minutes.values()) < 2 * min(minutes.values())


def test_h_never_changes_from_one_version_to_the_next() -> None:
    fields = parse("H H H H H H", "0197f4a2-0000-7000-8000-000000000001")
    assert (fields.seconds, fields.minutes, fields.hours) == ((53,), (21,), (17,))


def test_h_falls_differently_in_different_fields() -> None:
    pairs = {
        (parse("H H * * *", str(n)).minutes[0] % 24, parse("H H * * *", str(n)).hours[0]) for n in range(50)
    }
    assert any(minute != hour for minute, hour in pairs)


def test_h_with_a_step_keeps_the_step_and_moves_the_start() -> None:
    starts = set()
    for number in range(200):
        minutes = parse("H/15 * * * *", str(number)).minutes
        assert [minute - minutes[0] for minute in minutes] == [0, 15, 30, 45]
        starts.add(minutes[0])
    assert starts == set(range(15))


def test_h_stays_within_its_range() -> None:
    seen = {minute for n in range(300) for minute in parse("H(10-19) * * * *", str(n)).minutes}
    assert seen == set(range(10, 20))
    for number in range(100):
        minutes = parse("H(0-29)/10 * * * *", str(number)).minutes
        assert [minute - minutes[0] for minute in minutes] == [0, 10, 20]
        assert minutes[-1] <= 29


def test_h_for_a_day_is_one_that_every_month_has() -> None:
    assert {day for n in range(500) for day in parse("0 0 H * *", str(n)).days} == set(range(1, 29))
    assert {day for n in range(200) for day in parse("0 0 * * H", str(n)).weekdays} == set(range(7))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "5 fields"),
        ("* * * *", "this one has 4"),
        ("* * * * * * *", "this one has 7"),
        ("60 * * * *", 'minute field "60".*0-59'),
        ("* 24 * * *", 'hour field "24".*0-23'),
        ("* * 0 * *", 'day-of-month field "0".*1-31'),
        ("* * 32 * *", "day-of-month"),
        ("* * * 13 *", 'month field "13".*JAN-DEC'),
        ("* * * * 8", 'day-of-week field "8".*Sunday'),
        ("61 * * * * *", 'second field "61"'),
        ("*/0 * * * *", "minute field"),
        ("1-5/0 * * * *", "step of 0"),
        ("H/0 * * * *", "step of 0"),
        ("30-10 * * * *", "minute field"),
        ("H(30-10) * * * *", "range"),
        ("H(0-60) * * * *", "range outside 0-59"),
        ("? * * * *", r"\? stands alone"),
        ("0 0 1,? * *", r"\? stands alone"),
        ("0 0 32W * *", "day-of-month"),
        ("0 0 W * *", "day-of-month"),
        ("0 0 L/2 * *", "day-of-month"),
        ("0 0 * * 5#6", "day-of-week"),
        ("0 0 * * L", "day-of-week"),
        ("0 0 * FOO *", "month field"),
        ("1,,2 * * * *", "minute field"),
        ("-1 * * * *", "minute field"),
        ("1.5 * * * *", "minute field"),
        ("\u0661 * * * *", "plain ASCII"),
        ("@reboot", "@reboot is no time.*@daily"),
        ("@fortnightly", '"@fortnightly" is not known.*@weekly'),
    ],
)
def test_a_bad_expression_is_told_which_field_and_what_would_be_right(expression: str, message: str) -> None:
    with pytest.raises(InvalidError, match=message) as caught:
        parse(expression, "")
    assert caught.value.problems[0].pointer == "/trigger/expression"
    assert caught.value.problems[0].code == "bad_cron"
    assert caught.value.problems[0].hint

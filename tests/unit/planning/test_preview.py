"""A trigger before it is saved: its next times, and what its author may not have thought of."""

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from tests.unit.planning.schedules import NOON, at

from foliot.model.calendar import CalendarSpec
from foliot.model.errors import InvalidError
from foliot.model.kind import PreviewWarning, Trigger
from foliot.model.policy import Dst, DstGap, DstRepeat, Window
from foliot.model.recurrence import Recurrence
from foliot.planning.preview import ClockChange, Preview, preview
from foliot.timing.calendar import Calendar
from foliot.timing.window import is_inside

BERLIN = "Europe/Berlin"
TICK = timedelta(microseconds=1)
_TRIGGER: TypeAdapter[Trigger] = TypeAdapter(Trigger)


def trigger_of(**fields: Any) -> Trigger:
    return _TRIGGER.validate_python(fields)


def cron(expression: str, timezone: str = "UTC") -> Trigger:
    return trigger_of(kind="cron", expression=expression, timezone=timezone)


def shown(trigger: Trigger, from_ts: datetime = NOON, **options: Any) -> list[str]:
    return [fire.local_ts.isoformat() for fire in preview(trigger, from_ts=from_ts, **options).fires]


def codes(told: Preview) -> list[str]:
    return [each.code for each in told.warnings]


def warned(trigger: Trigger, code: str, from_ts: datetime = NOON, **options: Any) -> list[str]:
    told = preview(trigger, from_ts=from_ts, **options)
    return [each.text for each in told.warnings if each.code == code]


# --- times ----------------------------------------------------------------------------------------------


def test_times_are_told_in_words_and_by_the_clock_of_the_triggers_zone() -> None:
    told = preview(cron("0 7 * * mon", "Europe/Paris"), from_ts=datetime(2026, 3, 28, tzinfo=UTC), n=2)
    assert told.description == "At 07:00, only on Monday (Europe/Paris)"
    assert [fire.local_ts.isoformat() for fire in told.fires] == [
        "2026-03-30T07:00:00+02:00",
        "2026-04-06T07:00:00+02:00",
    ]


def test_a_cron_fires_at_the_very_start_and_an_interval_one_step_after_it() -> None:
    assert shown(cron("0 * * * *"), n=1) == ["2026-03-02T12:00:00+00:00"]
    assert shown(trigger_of(kind="interval", hours=1), n=1) == ["2026-03-02T13:00:00+00:00"]
    assert shown(trigger_of(kind="rrule", rule="FREQ=HOURLY"), n=1) == ["2026-03-02T13:00:00+00:00"]


def test_a_given_start_is_itself_a_time_unless_it_is_past() -> None:
    hourly = trigger_of(kind="interval", hours=1)
    assert shown(hourly, n=1, start_ts=at(30)) == ["2026-03-02T12:30:00+00:00"]
    assert shown(hourly, n=1, start_ts=NOON) == ["2026-03-02T12:00:00+00:00"]
    assert shown(hourly, n=1, start_ts=at(-90)) == ["2026-03-02T12:30:00+00:00"]
    assert shown(cron("*/20 * * * *"), n=1, start_ts=at(30)) == ["2026-03-02T12:40:00+00:00"]


def test_the_end_is_the_last_time() -> None:
    told = preview(cron("*/20 * * * *"), from_ts=NOON, end_ts=at(20))
    assert [fire.local_ts for fire in told.fires] == [NOON, at(20)]
    assert codes(told) == ["few_fires"]


def test_a_single_instant_is_shown_with_the_offset_it_was_given_in() -> None:
    once = trigger_of(kind="once", at="2026-05-01T09:00:00+05:30")
    assert shown(once) == ["2026-05-01T09:00:00+05:30"]


def test_of_a_delay_only_the_first_time_is_known() -> None:
    told = preview(trigger_of(kind="delay", seconds=90), from_ts=NOON)
    assert [fire.local_ts for fire in told.fires] == [at(1.5)]
    assert codes(told) == ["after_each_run"]
    assert shown(trigger_of(kind="delay", seconds=90), start_ts=at(5)) == ["2026-03-02T12:05:00+00:00"]


def test_what_h_stands_for_depends_on_the_key() -> None:
    hashed = cron("H H * * *")
    assert shown(hashed, key="a") == shown(hashed, key="a")
    assert shown(hashed, key="a") != shown(hashed, key="b")


def test_without_a_key_the_times_of_h_are_called_an_example() -> None:
    assert "hash_unknown" in codes(preview(cron("H H * * *"), from_ts=NOON))
    assert "hash_unknown" not in codes(preview(cron("H H * * *"), from_ts=NOON, key="a"))
    assert "hash_unknown" not in codes(preview(cron("0 8 * * thu"), from_ts=NOON))


def test_times_that_window_or_calendars_forbid_are_passed_over_and_counted() -> None:
    holiday = Calendar(CalendarSpec.parse({"name": "holiday", "days": ["2026-03-03"]}))
    told = preview(
        cron("0 */6 * * *"), from_ts=NOON, n=2, window=Window(hours_of_day=(6,)), calendars=[holiday]
    )
    assert [fire.local_ts for fire in told.fires] == [at(42 * 60), at(66 * 60)]
    [skipped] = [each.text for each in told.warnings if each.code == "skipped"]
    assert "forbid 10 of its times up to 2026-03-05T06:00:00+00:00" in skipped


def test_a_calendar_without_a_zone_means_the_days_of_the_trigger() -> None:
    tuesday = Calendar(CalendarSpec.parse({"name": "tuesday", "days": ["2026-03-03"]}))
    fires = shown(cron("30 0 * * *", "Asia/Tokyo"), n=1, calendars=[tuesday])
    assert fires == ["2026-03-04T00:30:00+09:00"]


@pytest.mark.parametrize(
    ("trigger", "options", "pointer"),
    [
        (cron("61 * * * *"), {}, "/trigger/expression"),
        (cron("0 0 30 2 *"), {}, "/trigger/expression"),
        (cron("@daily", "Europe/Berln"), {}, "/trigger/timezone"),
        (trigger_of(kind="interval", days=1, timezone="Nowhere"), {}, "/trigger/timezone"),
        (trigger_of(kind="rrule", rule="FREQ=NEVER"), {}, "/trigger/rule"),
        (cron("@daily"), {"window": Window(timezone="Nowhere")}, "/window/timezone"),
        (cron("@daily"), {"n": 0}, "/n"),
        (cron("@daily"), {"n": 1001}, "/n"),
        (cron("@daily"), {"from_ts": datetime.max.replace(tzinfo=UTC)}, "/from_ts"),
        (trigger_of(kind="interval", days=1), {"start_ts": datetime.max.replace(tzinfo=UTC)}, "/start_ts"),
    ],
)
def test_what_is_wrong_is_named(trigger: Trigger, options: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidError) as caught:
        preview(trigger, **{"from_ts": NOON, **options})
    assert caught.value.problems[0].pointer == pointer


@pytest.mark.parametrize(
    "trigger",
    [
        cron("30 2 * * *", BERLIN),
        trigger_of(kind="interval", months=1, timezone=BERLIN),
        trigger_of(kind="rrule", rule="FREQ=MONTHLY", timezone=BERLIN),
        trigger_of(kind="once", at="9999-12-28T00:00:00+00:00"),
        trigger_of(kind="delay", seconds=10**9),
    ],
)
@pytest.mark.parametrize("from_ts", [datetime.min.replace(tzinfo=UTC), datetime(9790, 1, 1, tzinfo=UTC)])
def test_the_ends_of_time_are_no_trouble(trigger: Trigger, from_ts: datetime) -> None:
    window = Window(hours_of_day=(9,), timezone="Asia/Tokyo")
    for options in ({}, {"window": window}, {"end_ts": datetime.max.replace(tzinfo=UTC)}):
        preview(trigger, from_ts=from_ts, n=1000, **options)


TRIGGERS = [
    cron("15,45 1-3 * * *", BERLIN),
    cron("*/20 * * * *", "Australia/Lord_Howe"),
    cron("0 0 31 * *", "America/Santiago"),
    trigger_of(kind="interval", days=2, timezone=BERLIN),
    trigger_of(kind="interval", hours=7),
    trigger_of(kind="rrule", rule="FREQ=WEEKLY;BYDAY=MO,SU;BYHOUR=2", timezone=BERLIN),
]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.sampled_from(TRIGGERS),
    st.sampled_from(DstGap),
    st.sampled_from(DstRepeat),
    st.sampled_from([NOON, datetime(2026, 3, 28, 20, tzinfo=UTC), datetime(2026, 10, 24, 20, tzinfo=UTC)]),
    st.none() | st.sampled_from([(1, 2, 3), (0,), (12,), tuple(range(24))]),
    st.integers(1, 40),
)
def test_the_times_are_those_of_the_recurrence_that_the_window_allows(
    trigger: Trigger,
    gap: DstGap,
    repeat: DstRepeat,
    from_ts: datetime,
    hours: tuple[int, ...] | None,
    n: int,
) -> None:
    dst = Dst(gap=gap, repeat=repeat)
    window = None if hours is None else Window(hours_of_day=hours, timezone=BERLIN)
    told = preview(trigger, from_ts=from_ts, n=n, dst=dst, window=window)
    times = trigger.build(dst=dst, anchor=from_ts, key="preview")
    # An interval and a rule count from the moment they are saved, and don't fire at it.
    moment = times.after(from_ts - TICK if trigger.kind == "cron" else from_ts)
    expected: list[datetime] = []
    while moment is not None and len(expected) < len(told.fires):
        if window is None or is_inside(window, moment):
            expected.append(moment)
        moment = times.after(moment)
    # In UTC: to Python, a time in a repeated hour equals none of another zone.
    assert [fire.local_ts.astimezone(UTC) for fire in told.fires] == expected
    assert len(expected) == n or {"never_fires", "few_fires"} & set(codes(told))


# --- how many and how often -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trigger", "options", "why"),
    [
        (cron("0 3 * * *"), {"window": Window(hours_of_day=(9, 10))}, "window and calendars forbid all"),
        (cron("0 3 * * *"), {"end_ts": at(5)}, "end_ts"),
        (trigger_of(kind="once", at=at(-5)), {}, "passed"),
        (
            trigger_of(kind="rrule", rule="FREQ=DAILY;COUNT=2"),
            {"start_ts": NOON - timedelta(days=9)},
            "no time",
        ),
    ],
)
def test_a_trigger_that_never_fires_says_why(trigger: Trigger, options: dict[str, Any], why: str) -> None:
    told = preview(trigger, from_ts=NOON, **options)
    assert told.fires == ()
    [text] = [each.text for each in told.warnings if each.code == "never_fires"]
    assert why in text


def test_a_trigger_that_ends_early_says_after_which_time() -> None:
    rule = trigger_of(kind="rrule", rule="FREQ=DAILY;COUNT=3;BYHOUR=9")
    assert warned(rule, "few_fires") == ["after 2026-03-05T09:00:00+00:00 there is none"]
    assert warned(rule, "few_fires", n=3) == []
    yearly = cron("30 9 29 2 *")
    assert "100 years" in warned(yearly, "few_fires", n=1000)[0]


@pytest.mark.parametrize(
    ("trigger", "amount"),
    [
        (cron("*/5 * * * * *"), "5 s"),
        (cron("0,9 0 9 * * *"), "9 s"),
        (trigger_of(kind="interval", seconds=1), "1 s"),
        (trigger_of(kind="delay", seconds=0.5), "0.5 s"),
    ],
)
def test_more_often_than_every_ten_seconds_is_told(trigger: Trigger, amount: str) -> None:
    [text] = warned(trigger, "very_often", n=1)
    assert f"every {amount}," in text


@pytest.mark.parametrize(
    "trigger", [cron("*/10 * * * * *"), cron("* * * * *"), trigger_of(kind="delay", seconds=10)]
)
def test_ten_seconds_and_more_are_not(trigger: Trigger) -> None:
    assert warned(trigger, "very_often") == []


@pytest.mark.parametrize(
    ("trigger", "told"),
    [
        (cron("@daily"), "midnight"),
        (cron("0 0 * * 1"), "midnight"),
        (cron("0 0 * * *", "America/Santiago"), "midnight"),
        (cron("0 1 * * *", "Africa/Lagos"), "midnight"),
        (cron("@hourly"), "on the hour"),
        (trigger_of(kind="rrule", rule="FREQ=DAILY;BYHOUR=0;BYMINUTE=0;BYSECOND=0"), None),
    ],
)
def test_a_minute_in_which_everything_fires_is_told(trigger: Trigger, told: str | None) -> None:
    start_ts = None if told else NOON
    [text] = warned(trigger, "busy_minute", start_ts=start_ts)
    assert (told or "midnight") in text
    assert "jitter_seconds" in text
    assert ("H in place" in text) == (trigger.kind == "cron")
    assert warned(trigger, "busy_minute", start_ts=start_ts, jitter_seconds=5) == []


@pytest.mark.parametrize(
    "trigger",
    [
        cron("0 7 * * *"),
        cron("30 0 * * *"),
        cron("*/30 * * * *"),
        cron("0 */2 * * *"),
        cron("H 0 * * *"),
        trigger_of(kind="interval", hours=1),
    ],
)
def test_other_minutes_are_not(trigger: Trigger) -> None:
    assert warned(trigger, "busy_minute") == []


# --- what an expression may not say ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 9 31 * *", ["there is no day 31 in February, April, June, September, November"]),
        ("0 9 30 1,2 *", ["there is no day 30 in February"]),
        ("0 9 29 * *", ["there is no day 29 in February except in leap years"]),
        ("0 9 15,31 * *", ["there is no day 31 in February, April, June, September, November"]),
        ("0 9 31W * *", ["there is no day 31 in February, April, June, September, November"]),
        ("0 9 31 1,3,5 *", []),
        ("0 9 28-31 * 0", []),
        ("0 9 1-31 * *", []),
        ("0 9 L * *", []),
        ("0 9 * * *", []),
        ("0 9 */2 * *", []),
    ],
)
def test_days_that_short_months_lack_are_told(expression: str, expected: list[str]) -> None:
    told = warned(cron(expression), "short_months")
    assert [text.partition(";")[0] for text in told] == expected


@pytest.mark.parametrize(
    ("rule", "start_day", "count"),
    [
        ("FREQ=MONTHLY", 31, 1),
        ("FREQ=MONTHLY;BYMONTHDAY=30", 1, 1),
        ("FREQ=YEARLY", 31, 0),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", 31, 0),
        ("FREQ=MONTHLY;BYDAY=-1FR", 31, 0),
        ("FREQ=DAILY", 31, 0),
    ],
)
def test_days_of_a_rule_that_short_months_lack_are_told(rule: str, start_day: int, count: int) -> None:
    trigger = trigger_of(kind="rrule", rule=rule)
    start_ts = datetime(2026, 3, start_day, 9, tzinfo=UTC)
    told = warned(trigger, "short_months", start_ts=start_ts)
    assert len(told) == count
    assert all("BYMONTHDAY=-1" in text for text in told)


def test_two_day_fields_say_whether_either_or_both_must_match() -> None:
    assert codes(preview(cron("30 9 13 * 5"), from_ts=NOON)) == ["either_day"]
    assert "both_days" in codes(preview(cron("30 9 */2 * 5"), from_ts=NOON))
    for expression in ("30 9 13 * *", "30 9 ? * 5", "30 9 * * 5", "30 9 13 * ?"):
        assert codes(preview(cron(expression), from_ts=NOON)) == []


def test_a_step_that_does_not_divide_the_hour_is_told_to_begin_anew() -> None:
    [text] = warned(cron("*/7 * * * *"), "uneven_step")
    assert text == "*/7 begins anew every hour: minute 56 is followed by minute 0"
    assert len(warned(cron("*/25 */7 */5 * * *"), "uneven_step")) == 3
    assert len(warned(cron("30 9 */2 * *"), "uneven_step")) == 1
    assert warned(cron("*/15 */6 * * *"), "uneven_step") == []


def test_an_open_minute_of_a_single_hour_is_told() -> None:
    assert len(warned(cron("* 2 * * *"), "every_minute")) == 1
    for expression in ("0 2 * * *", "* 9-17 * * *", "* * * * *"):
        assert warned(cron(expression), "every_minute") == []


# --- changing clocks ------------------------------------------------------------------------------------

HALF_PAST_TWO = cron("30 2 * * *", BERLIN)
OPENING = "2026-03-29T03:00:00+02:00"
SHIFTED = f"2026-03-29T02:30:00 is left out by the clocks that day and fires at {OPENING} instead"
TWICE = "2026-10-25T02:30:00 comes twice that day and fires"
TWO = "come twice that day and fire"
FIRST, SECOND = "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"


@pytest.mark.parametrize(
    ("dst", "spring", "autumn"),
    [
        (
            Dst(),
            SHIFTED,
            f"{TWICE} the first time only: at {FIRST}",
        ),
        (
            Dst(gap=DstGap.SKIP, repeat=DstRepeat.SECOND),
            "2026-03-29T02:30:00 is left out by the clocks that day and does not fire",
            f"{TWICE} the second time only: at {SECOND}",
        ),
        (
            Dst(repeat=DstRepeat.BOTH),
            SHIFTED,
            f"{TWICE} both times: at {FIRST} and at {SECOND}",
        ),
    ],
)
def test_both_changes_of_the_next_year_are_told_with_what_the_policy_does(
    dst: Dst, spring: str, autumn: str
) -> None:
    told = preview(HALF_PAST_TWO, from_ts=NOON, n=1, dst=dst)
    hour = 1 if dst.repeat is DstRepeat.SECOND else 0
    assert told.warnings == (
        PreviewWarning("dst_gap", spring, datetime(2026, 3, 29, 1, tzinfo=UTC)),
        PreviewWarning("dst_repeat", autumn, datetime(2026, 10, 25, hour, 30, tzinfo=UTC)),
    )


@pytest.mark.parametrize("timezone", ["Europe/Berlin", "America/New_York", "America/Santiago"])
@pytest.mark.parametrize("repeat", list(DstRepeat))
@pytest.mark.parametrize("gap", list(DstGap))
def test_every_instant_that_a_warning_names_fires(timezone: str, repeat: DstRepeat, gap: DstGap) -> None:
    for expression in ("30 0 * * *", "30 1 * * *", "30 2 * * *", "0,20,40 23 * * *"):
        trigger, dst = cron(expression, timezone), Dst(gap=gap, repeat=repeat)
        times = trigger.build(dst=dst, anchor=NOON, key="preview")
        for warning in preview(trigger, from_ts=NOON, n=1, dst=dst).warnings:
            named = re.findall(r"[-\dT:]{19}[+-]\d\d:\d\d", warning.text)
            assert [times.count(at, at) for at in map(datetime.fromisoformat, named)] == [1] * len(named)
            assert named or warning.code != "dst_repeat"


def test_several_times_of_one_change_are_one_warning() -> None:
    trigger = cron("0,20,40 2 * * *", BERLIN)
    assert warned(trigger, "dst_gap") == [
        f"2026-03-29T02:00:00 and 2 more are left out by the clocks that day and fire once, at {OPENING}"
    ]
    assert warned(trigger, "dst_repeat") == [
        f"2026-10-25T02:00:00 and 2 more {TWO} the first time only: from 2026-10-25T02:00:00+02:00 on"
    ]


def test_a_change_that_touches_no_time_is_not_told() -> None:
    assert preview(cron("30 9 * * *", BERLIN), from_ts=NOON).warnings == ()
    assert preview(cron("30 2 * * 1-6", BERLIN), from_ts=NOON).warnings == ()
    assert preview(cron("30 2 * * *"), from_ts=NOON).warnings == ()
    window = Window(hours_of_day=(9,), timezone=BERLIN)
    assert warned(HALF_PAST_TWO, "dst_gap", window=window) == []
    assert warned(HALF_PAST_TWO, "dst_repeat", end_ts=datetime(2026, 9, 1, tzinfo=UTC)) == []


def test_what_goes_through_the_change_by_elapsed_time_is_not_told_unless_it_loses_a_time() -> None:
    assert preview(cron("*/30 * * * *", BERLIN), from_ts=NOON).warnings == ()
    assert preview(trigger_of(kind="interval", hours=5, timezone=BERLIN), from_ts=NOON).warnings == ()
    every_second_hour = cron("30 */2 * * *", BERLIN)
    assert warned(every_second_hour, "dst_gap") == [
        "2026-03-29T02:30:00 is left out by the clocks that day and does not fire"
    ]
    assert warned(every_second_hour, "dst_repeat") == [f"{TWICE} both times: at {FIRST} and at {SECOND}"]


def test_calendar_intervals_and_rules_are_told_too() -> None:
    start_ts = datetime(2026, 3, 1, 1, 30, tzinfo=UTC)  # 02:30 in Berlin
    for trigger in (
        trigger_of(kind="interval", days=1, timezone=BERLIN),
        trigger_of(kind="rrule", rule="FREQ=DAILY", timezone=BERLIN),
    ):
        told = preview(trigger, from_ts=NOON, start_ts=start_ts, n=1)
        assert codes(told) == ["dst_gap", "dst_repeat"]


def test_fires_in_a_gap_or_a_repeat_are_marked() -> None:
    spring = preview(HALF_PAST_TWO, from_ts=datetime(2026, 3, 28, tzinfo=UTC), n=3)
    assert [fire.clock_change for fire in spring.fires] == [None, ClockChange.GAP, None]
    both = Dst(repeat=DstRepeat.BOTH)
    autumn = preview(HALF_PAST_TWO, from_ts=datetime(2026, 10, 24, tzinfo=UTC), n=4, dst=both)
    repeat = ClockChange.REPEAT
    assert [fire.clock_change for fire in autumn.fires] == [None, repeat, repeat, None]
    assert [fire.local_ts.isoformat()[11:] for fire in autumn.fires[1:3]] == [
        "02:30:00+02:00",
        "02:30:00+01:00",
    ]


def test_a_time_of_its_own_right_after_the_gap_is_not_marked() -> None:
    told = preview(cron("0 3 * * *", BERLIN), from_ts=datetime(2026, 3, 29, tzinfo=UTC), n=1)
    assert [fire.local_ts.isoformat() for fire in told.fires] == ["2026-03-29T03:00:00+02:00"]
    assert told.fires[0].clock_change is None


ZONES = [BERLIN, "America/New_York", "America/Santiago", "Australia/Lord_Howe"]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.sampled_from(ZONES), st.sampled_from(["0", "15", "30", "59"]), st.integers(0, 23), st.integers(0, 300)
)
def test_a_fixed_time_is_warned_of_exactly_when_the_policies_differ(
    timezone: str, minute: str, hour: int, day: int
) -> None:
    trigger = cron(f"{minute} {hour} * * *", timezone)
    from_ts = datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(days=day)
    end_ts = from_ts + timedelta(days=366)

    def times(gap: DstGap, repeat: DstRepeat) -> Recurrence:
        return trigger.build(dst=Dst(gap=gap, repeat=repeat), anchor=from_ts, key="preview")

    def differ(one: Recurrence, other: Recurrence) -> bool:
        return one.count(from_ts, end_ts) != other.count(from_ts, end_ts)

    told = codes(preview(trigger, from_ts=from_ts, n=1))
    shifted = times(DstGap.SHIFT, DstRepeat.FIRST)
    assert ("dst_gap" in told) == differ(shifted, times(DstGap.SKIP, DstRepeat.FIRST))
    assert ("dst_repeat" in told) == differ(shifted, times(DstGap.SHIFT, DstRepeat.BOTH))


# --- bounds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trigger", "options"),
    [
        (cron("* * * * * *", BERLIN), {}),
        (cron("* * * * * *", BERLIN), {"window": Window(days_of_week=(7,), hours_of_day=(3,))}),
        (cron("0 3 * * *", BERLIN), {"window": Window(hours_of_day=(9,))}),
        (cron("0 0 29 2 1", BERLIN), {"window": Window(hours_of_day=(9,))}),
        (trigger_of(kind="rrule", rule="FREQ=SECONDLY", timezone=BERLIN), {}),
        (trigger_of(kind="rrule", rule="FREQ=YEARLY;BYMONTHDAY=29;BYMONTH=2", timezone=BERLIN), {}),
        (trigger_of(kind="interval", seconds=1), {"calendars": ["always"]}),
        (cron("0 12 1 6 *"), {"calendars": ["but new year"]}),
    ],
)
def test_nothing_takes_long(trigger: Trigger, options: dict[str, Any]) -> None:
    always = [{"from": "1970-01-01", "to": "9000-12-31"}]
    years = [{"from": f"{year}-01-02", "to": f"{year}-12-31"} for year in range(2000, 2100)]
    if "calendars" in options:
        days = always if options["calendars"] == ["always"] else years
        options = {"calendars": [Calendar(CalendarSpec.parse({"name": "closed", "days": days}))]}
    began = time.process_time()
    preview(trigger, from_ts=NOON, n=1000, **options)
    assert time.process_time() - began < 1

"""The checker's walker against the product's timing: two ways to one answer, across clock changes.

They share no code, so where both agree neither has to be believed.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from foliot.model.errors import InvalidError
from foliot.model.schedule import ScheduleSpec
from foliot.verify.cron import UnsupportedExpressionError
from foliot.verify.finding import VerifiedSpan
from foliot.verify.walker import Walker

KEY = "0197a3c0-0000-7000-8000-000000000001"
TICK = timedelta(microseconds=1)
CHANGES = (
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
    ("America/Santiago", datetime(2026, 4, 5, 3, tzinfo=UTC)),
    ("America/Santiago", datetime(2026, 9, 6, 4, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
    ("UTC", datetime(2028, 2, 29, tzinfo=UTC)),
)
changes = st.sampled_from(CHANGES)
policies = st.fixed_dictionaries(
    {"gap": st.sampled_from(["shift", "skip"]), "repeat": st.sampled_from(["first", "second", "both"])}
)


def examples(number: int) -> Callable[..., Callable[..., None]]:
    # Examples are small as they are: making them smaller would take minutes.
    phases = (Phase.explicit, Phase.generate)
    return settings(max_examples=number, deadline=None, derandomize=True, phases=phases)


def agree(trigger: dict[str, Any], dst: dict[str, str], anchor: datetime, span: VerifiedSpan) -> int:
    """Both have the same times within the span; how many."""
    target = {"kind": "function", "name": "noop"}
    spec = ScheduleSpec.parse({"name": "a", "trigger": trigger, "target": target, "dst": dst})
    try:
        times = spec.trigger.compile(dst=spec.dst, anchor=anchor, key=KEY)
    except InvalidError as error:
        assume(error.problems[0].code != "never_fires")
        raise
    expected = []
    instant = times.after(span.first - TICK)
    while instant is not None and instant <= span.last:
        expected.append(instant)
        instant = times.after(instant)
    document = spec.model_dump(mode="json")
    assert list(Walker(span).times(document, anchor, KEY, span.first, span.last)) == expected
    return len(expected)


def around(change: datetime, days: int = 3) -> VerifiedSpan:
    return VerifiedSpan(change - timedelta(days=days), change + timedelta(days=days))


# --- cron ------------------------------------------------------------------------------------------


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    in_order = st.tuples(number, number).map(sorted)
    return st.one_of(
        st.just("*"),
        number.map(str),
        st.integers(1, high).map("*/{}".format),
        st.lists(number, min_size=2, max_size=4).map(lambda values: ",".join(map(str, values))),
        st.tuples(in_order, st.integers(1, 10)).map(lambda it: f"{it[0][0]}-{it[0][1]}/{it[1]}"),
        st.tuples(number, st.integers(1, 30)).map(lambda it: f"{it[0]}/{it[1]}"),
        st.sampled_from(["H", "H/7", f"H({low}-{high})"]),
    )


hours = st.one_of(field(0, 23), st.sampled_from(["0", "1", "2", "3", "23", "1-3", "22-23", "0,1,2", "*"]))
month_days = st.one_of(
    st.sampled_from(["*", "*", "?", "L", "LW", "1W", "15W", "31W", "1,15W", "L,3"]), field(1, 31)
)
weekdays = st.one_of(
    st.sampled_from(["*", "?", "7", "MON-FRI", "FRI#2", "0#1", "7#5", "5L", "SUNL", "1,5L", "6,7"]),
    field(0, 7),
)
months = st.one_of(st.just("*"), st.sampled_from(["MAR-NOV", "JAN,APR"]), field(1, 12))


@examples(150)
@given(changes, policies, st.tuples(field(0, 59), hours, st.just("*"), st.just("*"), st.just("*")))
def test_cron_has_the_same_times_around_every_change_of_clocks(
    change: tuple[str, datetime], dst: dict[str, str], parts: tuple[str, ...]
) -> None:
    zone, at = change
    trigger = {"kind": "cron", "expression": " ".join(parts), "timezone": zone}
    agree(trigger, dst, at, around(at))


@examples(100)
@given(changes, policies, st.tuples(st.just("30"), hours, month_days, months, weekdays))
def test_cron_has_the_same_days(
    change: tuple[str, datetime], dst: dict[str, str], parts: tuple[str, ...]
) -> None:
    zone, at = change
    trigger = {"kind": "cron", "expression": " ".join(parts), "timezone": zone}
    agree(trigger, dst, at, around(at, days=40))


@pytest.mark.parametrize(
    "expression",
    ["@hourly", "@daily", "@weekly", "@monthly", "@yearly", "*/20 30 1-3 * * *", "59 59 2 L * ?"],
)
@pytest.mark.parametrize(("zone", "at"), CHANGES[:8])
def test_nicknames_and_seconds_have_the_same_times(expression: str, zone: str, at: datetime) -> None:
    span = around(at, days=200) if expression.startswith("@") else around(at)
    assert (
        agree({"kind": "cron", "expression": expression, "timezone": zone}, {}, at, span) or "L" in expression
    )


# --- intervals and single instants -----------------------------------------------------------------


@examples(120)
@given(
    changes,
    policies,
    st.sampled_from(["SECONDS", "MINUTES", "HOURS", "DAYS", "WEEKS", "MONTHS"]),
    st.integers(1, 100),
    st.timedeltas(timedelta(days=-200), timedelta(days=2)),
)
def test_intervals_have_the_same_times(
    change: tuple[str, datetime], dst: dict[str, str], unit: str, amount: int, ahead: timedelta
) -> None:
    zone, at = change
    amount = amount * 97 if unit == "SECONDS" else amount
    trigger = {"kind": "interval", "frequency_unit": unit, "frequency_time": amount, "timezone": zone}
    agree(trigger, dst, at + ahead, around(at, days=3 if unit in ("SECONDS", "MINUTES") else 120))


def test_a_single_instant_is_its_only_time() -> None:
    at = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert agree({"kind": "once", "at": at.isoformat()}, {}, at, around(at)) == 1
    assert agree({"kind": "once", "at": at.isoformat()}, {}, at, around(at + timedelta(days=9))) == 0


# --- rules -----------------------------------------------------------------------------------------


def listed(values: st.SearchStrategy[Any]) -> st.SearchStrategy[str]:
    return st.lists(values, min_size=1, max_size=3).map(lambda found: ",".join(map(str, found)))


names = st.sampled_from(["MO", "TU", "WE", "TH", "FR", "SA", "SU"])
times_of_day = {
    "BYHOUR": listed(st.sampled_from([0, 1, 2, 3, 12, 23])),
    "BYMINUTE": listed(st.sampled_from([0, 15, 30, 59])),
}
ends = {"COUNT": st.integers(1, 40), "WKST": st.sampled_from(["MO", "SU", "WE"])}
daily_rules: list[st.SearchStrategy[dict[str, Any]]] = [
    st.fixed_dictionaries(
        {"FREQ": st.just(freq), "INTERVAL": st.integers(1, 4)},
        optional={**by, **times_of_day, **ends},
    )
    for freq, by in (
        ("DAILY", {"BYDAY": listed(names), "BYMONTH": listed(st.integers(1, 12))}),
        ("WEEKLY", {"BYDAY": listed(names)}),
        (
            "MONTHLY",
            {"BYDAY": listed(names), "BYMONTHDAY": listed(st.sampled_from([1, 13, 29, 31, -1, -2]))},
        ),
        ("MONTHLY", {"BYDAY": listed(st.tuples(st.sampled_from(["1", "2", "-1"]), names).map("".join))}),
        ("YEARLY", {"BYMONTH": listed(st.integers(1, 12)), "BYDAY": listed(names)}),
        ("YEARLY", {"BYDAY": listed(st.tuples(st.sampled_from(["2", "-1", "20"]), names).map("".join))}),
    )
]
short_rules: list[st.SearchStrategy[dict[str, Any]]] = [
    st.fixed_dictionaries(
        {"FREQ": st.just(freq), "INTERVAL": st.integers(least, limit)},
        optional={**by, "COUNT": st.integers(1, 500)},
    )
    for freq, least, limit, by in (
        ("HOURLY", 1, 30, {**times_of_day, "BYDAY": listed(names)}),
        ("MINUTELY", 3, 200, {**times_of_day, "BYDAY": listed(names)}),
        ("SECONDLY", 300, 5000, {}),
    )
]


def written(rule: dict[str, Any]) -> str:
    return ";".join(f"{name}={value}" for name, value in rule.items())


@examples(120)
@given(changes, policies, st.one_of(daily_rules), st.timedeltas(timedelta(days=-300), timedelta(days=30)))
def test_rules_of_days_have_the_same_times(
    change: tuple[str, datetime], dst: dict[str, str], rule: dict[str, Any], ahead: timedelta
) -> None:
    zone, at = change
    anchor = (at + ahead).replace(microsecond=0)
    agree({"kind": "rrule", "rule": written(rule), "timezone": zone}, dst, anchor, around(at, days=60))


@examples(100)
@given(changes, policies, st.one_of(short_rules), st.timedeltas(timedelta(days=-4), timedelta(days=1)))
def test_rules_of_hours_minutes_and_seconds_have_the_same_times(
    change: tuple[str, datetime], dst: dict[str, str], rule: dict[str, Any], ahead: timedelta
) -> None:
    zone, at = change
    anchor = (at + ahead).replace(microsecond=0)
    agree({"kind": "rrule", "rule": written(rule), "timezone": zone}, dst, anchor, around(at))


@pytest.mark.parametrize("until", ["20260329", "20260329T010000Z", "20260329T023000"])
def test_a_rule_ends_where_it_says(until: str) -> None:
    zone, at = CHANGES[0]
    trigger = {"kind": "rrule", "rule": f"FREQ=HOURLY;UNTIL={until}", "timezone": zone}
    assert agree(trigger, {}, at - timedelta(hours=30), around(at)) > 20


@pytest.mark.parametrize(
    "trigger",
    [
        {"kind": "rrule", "rule": "FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1"},
        {"kind": "rrule", "rule": "FREQ=YEARLY;BYWEEKNO=20"},
        {"kind": "rrule", "rule": "FREQ=MONTHLY;BYDAY=MO,1TU"},
        {"kind": "cron", "expression": "0 0 L-3 * *"},
        {"kind": "cron", "expression": "0 0 * * *", "timezone": "Middle/Earth"},
        {"kind": "tides", "moon": "full"},
    ],
)
def test_what_the_walker_does_not_know_is_said_to_be_unread(trigger: dict[str, str]) -> None:
    at = CHANGES[0][1]
    span = around(at)
    with pytest.raises(UnsupportedExpressionError):
        Walker(span).times({"trigger": trigger}, at, KEY, span.first, span.last)

"""What the options of `schedule create` and `set` say of a schedule."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pytest

from foliot.api.http.patch import merge
from foliot.cli.support.definition import ScheduleOptions, arguments_of, numbers_of
from foliot.cli.support.kind_options import replacing
from foliot.model.errors import InvalidError
from foliot.model.schedule import ScheduleSpec

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CRON = {"kind": "cron", "expression": "0 2 * * *", "timezone": "Europe/Berlin"}
FUNCTION = {"kind": "function", "name": "sync", "args": {"a": 1, "b": 2}}
KNOWN = {"trigger": CRON, "target": FUNCTION, "window": None}


def _patch(known: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    own = {field.name for field in fields(ScheduleOptions)}
    kinds = {f"--{name}": value for name, value in options.items() if name not in own}
    rest = {name: value for name, value in options.items() if name in own}
    return ScheduleOptions(**rest).patch(NOW, known, kinds)


@pytest.mark.parametrize(
    ("options", "trigger"),
    [
        ({"cron": "0 2 * * *", "tz": "Europe/Berlin"}, CRON),
        ({"every": "1h30m"}, {"kind": "interval", "hours": 1, "minutes": 30}),
        ({"every": "1mo", "tz": "UTC"}, {"kind": "interval", "months": 1, "timezone": "UTC"}),
        ({"once": "2026-05-01T10:00+02:00"}, {"kind": "once", "at": "2026-05-01T08:00:00+00:00"}),
        ({"once": "2h"}, {"kind": "once", "at": "2026-03-01T14:00:00+00:00"}),
        ({"rrule": "FREQ=DAILY"}, {"kind": "rrule", "rule": "FREQ=DAILY"}),
        ({"delay": "30s"}, {"kind": "delay", "seconds": 30}),
    ],
)
def test_each_way_to_say_when(options: dict[str, Any], trigger: dict[str, Any]) -> None:
    assert _patch(**options) == {"trigger": trigger}
    ScheduleSpec.parse({"name": "x", "target": {"kind": "function", "name": "f"}, "trigger": trigger})


@pytest.mark.parametrize(
    ("options", "target"),
    [
        (
            {
                "function": "sync",
                "arg": ["n=3", "who=eu", 'text="3"', 'deep={"a": [1]}', "nan=NaN", "empty="],
            },
            {
                "kind": "function",
                "name": "sync",
                "args": {"n": 3, "who": "eu", "text": "3", "deep": {"a": [1]}, "nan": "NaN", "empty": ""},
            },
        ),
        (
            {"http": ("post", "https://a.test"), "header": ["X-A: b:c"], "body": '{"r": 1}'},
            {
                "kind": "http",
                "method": "POST",
                "url": "https://a.test",
                "headers": {"X-A": "b:c"},
                "body": {"r": 1},
            },
        ),
        (
            {"event": ("orders", "Due"), "arg": ["n=1"]},
            {"kind": "event", "event_topic": "orders", "event_type": "Due", "event_data": {"n": 1}},
        ),
        ({"celery": "p.t", "arg": ["n=1"]}, {"kind": "celery", "task": "p.t", "kwargs": {"n": 1}}),
    ],
)
def test_each_way_to_say_what(options: dict[str, Any], target: dict[str, Any]) -> None:
    assert _patch(**options) == {"target": target}
    ScheduleSpec.parse({"name": "x", "target": target, "trigger": CRON})


def test_everything_else_has_its_option() -> None:
    patch = _patch(
        cron="0 2 * * *",
        tz="Europe/Berlin",
        function="f",
        description="d",
        label=["team=pay"],
        queue="q",
        priority="high",
        timeout="10m",
        retries=2,
        misfire="fire_all",
        grace="1d",
        max_catchup=7,
        overlap="queue",
        max_instances=3,
        delivery="at_most_once",
        start="2026-04-01",
        end="+60d",
        max_runs=9,
        jitter="5s",
        days="mon-fri",
        hours="9-11",
        calendar=["de"],
        dst_gap="skip",
        dst_repeat="both",
        active=False,
    )
    spec = ScheduleSpec.parse({"name": "x", **patch})
    named = set(patch) | {"name"}
    assert named == set(ScheduleSpec.model_fields)
    assert spec.retry.max_attempts == 3
    assert (spec.timeout_seconds, spec.misfire.grace_seconds, spec.jitter_seconds) == (600, 86400, 5)
    assert spec.window is not None
    assert spec.window.model_dump() == {
        "days_of_week": (1, 2, 3, 4, 5),
        "hours_of_day": (9, 10, 11),
        "timezone": "Europe/Berlin",
    }
    assert spec.end_ts == datetime(2026, 4, 30, 12, tzinfo=UTC)


def test_what_is_not_named_is_not_touched() -> None:
    assert _patch(KNOWN) == {}
    assert _patch(KNOWN, timeout="1m") == {"timeout_seconds": 60}
    assert _patch(KNOWN, tz="UTC") == {"trigger": {"timezone": "UTC"}}
    assert _patch(KNOWN, arg=["a=3"]) == {"target": {"args": {"a": 3}}}
    assert _patch(KNOWN, misfire="skip") == {"misfire": {"policy": "skip"}}


def test_limits_are_taken_away_by_a_word() -> None:
    assert _patch(KNOWN, start="none", end="none", max_runs=0) == {
        "start_ts": None,
        "end_ts": None,
        "max_runs": None,
    }
    assert _patch(KNOWN, label=["team="]) == {"labels": {"team": None}}
    assert _patch(KNOWN, calendar=["none"]) == {"calendars": []}


def test_a_window_is_made_changed_in_part_and_taken_away() -> None:
    window = {"days_of_week": [1], "hours_of_day": [9], "timezone": "UTC"}
    assert _patch(KNOWN, days="sat,sun")["window"] == {"days_of_week": [6, 7], "timezone": "Europe/Berlin"}
    known = {**KNOWN, "window": window}
    assert _patch(known, hours="22-2")["window"] == {"hours_of_day": [0, 1, 2, 22, 23]}
    assert _patch(known, hours="none")["window"] == {"hours_of_day": None}
    assert _patch(known, hours="none", days="none") == {"window": None}
    assert _patch(known, days="mon", tz="Asia/Tokyo")["window"]["timezone"] == "Asia/Tokyo"


def test_another_function_does_not_inherit_arguments() -> None:
    patch = _patch(KNOWN, function="other", arg=["b=9"])
    assert merge(FUNCTION, patch["target"])["args"] == {"b": 9}
    same = _patch(KNOWN, function="sync", arg=["b=9"])
    assert merge(FUNCTION, same["target"])["args"] == {"a": 1, "b": 9}


@pytest.mark.parametrize("new", [{"a": {"x": 1}}, {}, [1], "text", {"b": 2, "a": 3}])
def test_a_new_body_leaves_nothing_of_the_old(new: Any) -> None:
    old = {"a": {"x": 0, "y": 1}, "b": 1}
    assert merge({"body": old}, {"body": replacing(old, new)})["body"] == new


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"cron": "* * * * *", "every": "5m"}, "--cron"),
        ({"function": "f", "celery": "t"}, "--celery"),
        ({"every": "5x"}, "--every"),
        ({"every": "1.5h"}, "--every"),
        ({"every": "5m5m"}, "--every"),
        ({"delay": "soon"}, "--delay"),
        ({"once": "yesterday"}, "--once"),
        ({"once": "2h", "tz": "UTC"}, "--tz"),
        ({"timeout": "-5s"}, "--timeout"),
        ({"arg": ["a=1"]}, "--arg"),
        ({"http": ("GET", "http://a"), "arg": ["a=1"]}, "--arg"),
        ({"function": "f", "arg": ["a"]}, "--arg"),
        ({"function": "f", "arg": ["=1"]}, "--arg"),
        ({"function": "f", "body": "{}"}, "--body"),
        ({"function": "f", "header": ["a:b"]}, "--header"),
        ({"label": ["a"]}, "--label"),
        ({"days": "mon-fry"}, "--days"),
        ({"days": "0-3"}, "--days"),
        ({"hours": "9-24"}, "--hours"),
        ({"hours": "1-2-3"}, "--hours"),
        ({"hours": ""}, "--hours"),
        ({"start": "2026-13-01"}, "--start"),
    ],
)
def test_what_can_not_be_meant_names_its_option(options: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidError) as caught:
        _patch(**options)
    assert str(caught.value).startswith(f"{named}: ")


def test_a_zone_means_nothing_to_a_single_instant() -> None:
    with pytest.raises(InvalidError, match="--tz"):
        _patch({"trigger": {"kind": "once"}}, tz="UTC")


@pytest.mark.parametrize("junk", [3, None, "text", [1]])
def test_options_over_a_file_of_junk_leave_its_faults_to_the_server(junk: Any) -> None:
    known = {"trigger": junk, "target": {"kind": "function", "name": "f", "args": junk}, "window": junk}
    options = {"tz": "UTC", "function": "g", "arg": ["a=1"], "days": "mon"}
    patch = _patch(known, **options)
    assert patch["target"]["args"] == {"a": 1}
    assert patch["window"]["days_of_week"] == [1]


def test_of_an_argument_given_twice_the_last_counts() -> None:
    assert arguments_of(["a=1", "a=2"]) == {"a": 2}


def test_days_may_be_numbers_or_names_and_go_round_the_week() -> None:
    days = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
    assert numbers_of("fri-mon", "--days", 1, 7, days) == [1, 5, 6, 7]
    assert numbers_of("1-2,Sunday", "--days", 1, 7, days) == [1, 2, 7]

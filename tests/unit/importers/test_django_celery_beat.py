"""The rows of django-celery-beat, and what each becomes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foliot.importers.django_celery_beat import BeatTables, read
from foliot.importers.import_result import ImportResult, Item

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SCHEDULES: dict[str, dict[int, dict[str, Any]]] = {
    "interval": {
        1: {"id": 1, "every": 10, "period": "minutes"},
        2: {"id": 2, "every": 1, "period": "days"},
        3: {"id": 3, "every": 500, "period": "microseconds"},
        4: {"id": 4, "every": 1, "period": "moons"},
    },
    "crontab": {
        1: {
            "id": 1,
            "minute": "0",
            "hour": "2",
            "day_of_week": "mon-fri",
            "day_of_month": "*",
            "month_of_year": "*",
            "timezone": "Europe/Paris",
        },
    },
    "clocked": {1: {"id": 1, "clocked_time": datetime(2030, 1, 1)}},  # noqa: DTZ001 - as SQLite gives it
    "solar": {1: {"id": 1, "event": "sunset", "latitude": 1, "longitude": 2}},
}
ROW: dict[str, Any] = {
    "id": 7,
    "name": "tidy up",
    "task": "proj.tidy",
    "interval_id": None,
    "crontab_id": None,
    "clocked_id": None,
    "solar_id": None,
    "args": "[]",
    "kwargs": "{}",
    "queue": None,
    "exchange": None,
    "routing_key": None,
    "headers": "{}",
    "priority": None,
    "expires": None,
    "expire_seconds": None,
    "one_off": False,
    "start_time": None,
    "enabled": True,
    "total_run_count": 0,
    "description": "",
}


def found(as_function: bool = False, **columns: Any) -> ImportResult:
    tables = BeatTables([{**ROW, **columns}], SCHEDULES)
    return read(tables, now=NOW, as_function=as_function)


def item(**columns: Any) -> Item:
    told = found(**columns)
    assert not told.problems
    [only] = told.items
    return only


def why_left_out(**columns: Any) -> str:
    told = found(**columns)
    assert not told.items
    [problem] = told.problems
    assert (problem.where, problem.what) == ("periodic task 7", "tidy up")
    return problem.why


def test_a_periodic_task_becomes_a_schedule_of_a_celery_target() -> None:
    only = item(crontab_id=1, args='[1, "x"]', kwargs='{"a": null}', queue="files", description=" why \n")
    assert only.document == {
        "name": "tidy up",
        "trigger": {"kind": "cron", "expression": "0 2 * * mon-fri", "timezone": "Europe/Paris"},
        "target": {
            "kind": "celery",
            "task": "proj.tidy",
            "args": [1, "x"],
            "kwargs": {"a": None},
            "queue": "files",
        },
        "timeout_seconds": 86400,
        "overlap": {"policy": "allow"},
        "retry": {"max_attempts": 1},
        "description": "why",
    }
    assert only.notes == ()


def test_it_can_be_taken_for_the_task_function_of_the_same_name() -> None:
    only = item(as_function=True, interval_id=1, kwargs='{"a": 1}')
    assert only.document["target"] == {"kind": "function", "name": "proj.tidy", "args": {"a": 1}}
    assert "by name" in why_left_out(as_function=True, interval_id=1, args="[1]")


def test_an_interval_is_elapsed_time_also_in_days() -> None:
    assert item(interval_id=1).document["trigger"]["frequency_unit"] == "MINUTES"
    trigger = item(interval_id=2).document["trigger"]
    assert (trigger["frequency_unit"], trigger["frequency_time"]) == ("HOURS", 24)


def test_a_clocked_task_runs_once_at_its_time() -> None:
    document = item(clocked_id=1, one_off=True, start_time=NOW).document
    assert document["trigger"] == {"kind": "once", "at": "2030-01-01T00:00:00+00:00"}
    assert not {"max_runs", "start_ts"} & document.keys()


def test_a_task_that_runs_once_has_one_run_and_is_left_out_when_it_had_it() -> None:
    assert item(interval_id=1, one_off=True).document["max_runs"] == 1
    assert why_left_out(interval_id=1, one_off=True, total_run_count=1) == "it was to run once, and has"


def test_a_disabled_task_becomes_an_inactive_schedule() -> None:
    assert item(interval_id=1, enabled=False).document["active"] is False
    assert "active" not in item(interval_id=1).document


def test_start_and_expiry_limit_the_schedule() -> None:
    start, end = NOW + timedelta(days=1), NOW + timedelta(days=2)
    document = item(interval_id=1, start_time=start, expires=end).document
    assert (document["start_ts"], document["end_ts"]) == (start.isoformat(), end.isoformat())
    assert "has ended" in why_left_out(interval_id=1, expires=NOW)
    assert item(interval_id=1, expires=NOW, enabled=False).document["active"] is False


def test_what_goes_along_with_the_message_is_told_to_be_left_behind() -> None:
    only = item(
        interval_id=1, priority=3, headers='{"h": 1}', exchange="e", routing_key="r", expire_seconds=60
    )
    told = "; ".join(only.notes)
    for word in ("priority", "headers", "exchange", "routing_key", "expire_seconds"):
        assert word in told


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({}, "it has no schedule"),
        ({"interval_id": 1, "crontab_id": 1}, "interval and crontab"),
        ({"interval_id": 99}, "interval 99 is not there"),
        ({"interval_id": 3}, "whole seconds"),
        ({"interval_id": 4}, "a period of moons is not known"),
        ({"solar_id": 1}, "follows the sun (sunset)"),
        ({"interval_id": 1, "args": "{}"}, "its args are {}"),
        ({"interval_id": 1, "kwargs": "no"}, "its kwargs are not JSON"),
        ({"interval_id": 1, "kwargs": "[" * 100_000}, "its kwargs are not JSON"),
        ({"interval_id": 1, "task": "no good"}, "target.task"),
    ],
)
def test_what_can_not_be_taken_over_is_left_out_and_told(columns: dict[str, Any], why: str) -> None:
    assert why in why_left_out(**columns)


def test_columns_and_tables_of_other_versions_may_be_missing() -> None:
    newer = (
        "clocked_id",
        "one_off",
        "start_time",
        "priority",
        "headers",
        "expire_seconds",
        "total_run_count",
    )
    old = {name: value for name, value in ROW.items() if name not in newer}
    crontabs = {1: {k: v for k, v in SCHEDULES["crontab"][1].items() if k != "timezone"}}
    tables = BeatTables([{**old, "crontab_id": 1}], {"crontab": crontabs})
    assert "--tz" in read(tables, now=NOW).problems[0].why
    [only] = read(tables, now=NOW, timezone="Europe/Rome").items
    assert only.document["trigger"]["timezone"] == "Europe/Rome"

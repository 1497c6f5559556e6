"""Triggers as users write them: taken in more than one spelling, kept in one."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from foliot.kinds.cron_trigger import CronTrigger
from foliot.kinds.interval_trigger import FrequencyUnit, IntervalTrigger
from foliot.model.kind import Trigger

TRIGGER: TypeAdapter[Trigger] = TypeAdapter(Trigger)


def interval(**parts: Any) -> tuple[FrequencyUnit, int]:
    trigger = TRIGGER.validate_python({"kind": "interval", **parts})
    assert isinstance(trigger, IntervalTrigger)
    return trigger.frequency_unit, trigger.frequency_time


def cron(**fields: Any) -> str:
    trigger = TRIGGER.validate_python({"kind": "cron", "fields": fields})
    assert isinstance(trigger, CronTrigger)
    return trigger.expression


def test_an_interval_in_parts_is_kept_as_one_unit_and_one_number() -> None:
    assert interval(hours=1, minutes=30) == (FrequencyUnit.MINUTES, 90)
    assert interval(days=1) == (FrequencyUnit.DAYS, 1)
    assert interval(days=1, hours=12) == (FrequencyUnit.HOURS, 36)
    assert interval(weeks=2) == (FrequencyUnit.WEEKS, 2)
    assert interval(months=3) == (FrequencyUnit.MONTHS, 3)
    assert interval(hours=2, minutes=0) == (FrequencyUnit.HOURS, 2)


def test_an_interval_as_the_store_keeps_it_is_read_back_unchanged() -> None:
    document = {"kind": "interval", "frequency_unit": "HOURS", "frequency_time": 5, "timezone": "UTC"}
    assert TRIGGER.validate_python(document).model_dump(mode="json") == document


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"seconds": 0},
        {"seconds": -1},
        {"seconds": 1.5},
        {"seconds": True},
        {"seconds": "5"},
        {"months": 1, "days": 1},
        {"minutes": 5, "frequency_unit": "MINUTES", "frequency_time": 5},
        {"frequency_unit": "MINUTES", "frequency_time": 0},
        {"frequency_unit": "FORTNIGHTS", "frequency_time": 1},
        {"seconds": 10**10},
        {"fortnights": 1},
    ],
)
def test_an_interval_that_means_nothing_is_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        interval(**parts)


def test_cron_fields_become_an_expression_where_what_is_finer_is_zero_and_the_rest_is_open() -> None:
    assert cron(hour="*/2", minute="0") == "0 */2 * * *"
    assert cron(hour=7) == "0 7 * * *"
    assert cron(minute="*/5") == "*/5 * * * *"
    assert cron(day=1) == "0 0 1 * *"
    assert cron(day_of_week="mon-fri") == "0 0 * * mon-fri"
    assert cron(second="*/10") == "*/10 * * * * *"


@pytest.mark.parametrize(
    "document",
    [
        {"fields": {}},
        {"fields": {"hours": "1"}},
        {"fields": {"hour": ""}},
        {"fields": {"hour": "1 2"}},
        {"fields": {"hour": True}},
        {"fields": {"hour": "1"}, "expression": "* * * * *"},
        {},
        {"expression": ""},
        {"expression": "* " * 300},
    ],
)
def test_cron_that_says_nothing_or_too_much_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TRIGGER.validate_python({"kind": "cron", **document})


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "once", "at": "2026-01-01T00:00:00"},
        {"kind": "once"},
        {"kind": "delay", "seconds": 0},
        {"kind": "delay", "seconds": float("nan")},
        {"kind": "delay", "seconds": float("inf")},
        {"kind": "rrule", "rule": ""},
        {"kind": "sometimes"},
        {},
    ],
)
def test_other_triggers_that_mean_nothing_are_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TRIGGER.validate_python(document)


def test_a_trigger_never_changes_once_made() -> None:
    trigger = TRIGGER.validate_python({"kind": "delay", "seconds": 5})
    with pytest.raises(ValidationError):
        trigger.seconds = 6  # type: ignore[attr-defined]

"""The beat of a Celery application.

Celery is stood in for by classes of the same names and attributes, and used itself where it is installed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from datetime import timezone as fixed_zone
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.importers.firing import fires_of, walked

from foliot.importers.celery_beat import read
from foliot.importers.import_result import ImportResult, Item

NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)


@dataclass
class crontab:  # noqa: N801 - Celery's name
    minute: Any = "*"
    hour: Any = "*"
    day_of_week: Any = "*"
    day_of_month: Any = "*"
    month_of_year: Any = "*"
    nowfun: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_orig_"):
            return getattr(self, name.removeprefix("_orig_"))
        raise AttributeError(name)


@dataclass
class schedule:  # noqa: N801 - Celery's name
    run_every: timedelta
    relative: bool = False
    nowfun: Any = None


@dataclass
class solar:  # noqa: N801 - Celery's name
    event: str
    lat: float = 0
    lon: float = 0


@dataclass
class clocked:  # noqa: N801 - the name in django-celery-beat
    clocked_time: datetime


@dataclass
class Queue:
    name: str


@dataclass
class App:
    beat_schedule: dict[str, Any]
    timezone: tzinfo | None = UTC
    beat_scheduler: str = "celery.beat:PersistentScheduler"
    conf: Any = field(init=False)

    def __post_init__(self) -> None:
        self.conf = SimpleNamespace(beat_schedule=self.beat_schedule, beat_scheduler=self.beat_scheduler)


def found(entry: Any, zone: tzinfo | None = UTC, **options: Any) -> ImportResult:
    if isinstance(entry, dict):
        entry = {"task": "proj.tasks.clean", **entry}
    return read(App({"nightly": entry}, zone), **{"now": NOW, **options})


def item(entry: Any, zone: tzinfo | None = UTC, **options: Any) -> Item:
    told = found(entry, zone, **options)
    assert not told.problems
    [only] = told.items
    return only


def why_left_out(entry: Any, zone: tzinfo | None = UTC, **options: Any) -> str:
    told = found(entry, zone, **options)
    assert not told.items
    [problem] = told.problems
    assert (problem.where, problem.what) == ('beat_schedule["nightly"]', "nightly")
    return problem.why


def expression(**fields: Any) -> str:
    trigger = item({"schedule": crontab(**fields)}).document["trigger"]
    assert trigger["kind"] == "cron"
    text: str = trigger["expression"]
    return text


# --- when -----------------------------------------------------------------------------------------------


def test_a_crontab_becomes_cron_in_the_zone_of_the_application() -> None:
    only = item({"schedule": crontab(minute=30, hour="2")}, ZoneInfo("Europe/Paris"))
    assert only.name == "nightly"
    assert only.document == {
        "name": "nightly",
        "trigger": {"kind": "cron", "expression": "30 2 * * *", "timezone": "Europe/Paris"},
        "target": {"kind": "celery", "task": "proj.tasks.clean"},
        "timeout_seconds": 86400,
        "overlap": {"policy": "allow"},
        "retry": {"max_attempts": 1},
    }
    assert only.notes == ()


@pytest.mark.parametrize(
    ("fields", "written"),
    [
        ({"minute": "*/15", "hour": "8-17/2"}, "*/15 8-17/2 * * *"),
        ({"minute": 0, "hour": "22-2"}, "0 0-2,22,23 * * *"),
        ({"minute": {0, 30}, "hour": [9, 17]}, "0,30 9,17 * * *"),
        ({"minute": 0, "hour": 0, "day_of_week": "monday-Friday"}, "0 0 * * 1-5"),
        ({"minute": 0, "hour": 0, "day_of_week": "sat-sun"}, "0 0 * * 0,6"),
        ({"minute": 0, "hour": 0, "month_of_year": "nov-feb"}, "0 0 * 1,2,11,12 *"),
        ({"minute": 0, "hour": 0, "day_of_month": "1-7, 15"}, "0 0 1-7,15 * *"),
        ({"minute": None, "hour": 3}, "* 3 * * *"),
    ],
)
def test_a_field_keeps_its_text_where_it_means_the_same_here(fields: dict[str, Any], written: str) -> None:
    assert expression(**fields) == written


def test_days_and_weekdays_that_must_both_match_become_a_rule() -> None:
    open_hour = item({"schedule": crontab(minute=0, day_of_month="13", day_of_week="fri")}).document
    assert open_hour["dst"] == {"gap": "skip", "repeat": "both"}, "it goes by the clock, as cron does"
    only = item({"schedule": crontab(minute=0, hour=8, day_of_month="1-7", day_of_week="mon")})
    assert only.document["trigger"] == {
        "kind": "rrule",
        "rule": "FREQ=DAILY;BYMONTHDAY=1,2,3,4,5,6,7;BYDAY=MO;BYHOUR=8;BYMINUTE=0;BYSECOND=0",
        "timezone": "UTC",
    }
    first_mondays = [datetime(2026, month, day, 8, tzinfo=UTC) for month, day in ((3, 2), (4, 6), (5, 4))]
    assert fires_of(only, NOW, 3) == first_mondays


@pytest.mark.parametrize(
    ("every", "unit", "time"),
    [
        (30, "SECONDS", 30),
        (90.0, "SECONDS", 90),
        (timedelta(minutes=5), "MINUTES", 5),
        (timedelta(days=1), "HOURS", 24),
        (schedule(timedelta(hours=2)), "HOURS", 2),
    ],
)
def test_an_interval_is_elapsed_time(every: Any, unit: str, time: int) -> None:
    trigger = item({"schedule": every}).document["trigger"]
    assert trigger == {"kind": "interval", "frequency_unit": unit, "frequency_time": time}


def test_an_interval_that_was_rounded_is_told_to_be_no_more() -> None:
    assert any("relative" in note for note in item({"schedule": schedule(timedelta(hours=1), True)}).notes)
    assert any("relative" in note for note in item({"schedule": 60, "relative": True}).notes)


def test_a_time_to_come_is_kept_and_one_that_has_passed_left_out() -> None:
    later = NOW + timedelta(days=1)
    assert item({"schedule": clocked(later)}).document["trigger"] == {"kind": "once", "at": later.isoformat()}
    assert why_left_out({"schedule": clocked(NOW - timedelta(days=1))}) == "its time has passed"


class Sunday(crontab):
    pass


@pytest.mark.parametrize(
    ("when", "why"),
    [
        (solar("sunset"), "follows the sun (sunset)"),
        (0.5, "whole seconds"),
        (0, "whole seconds"),
        (float("inf"), "no interval"),
        (Sunday(), "of class Sunday is not known"),
        (None, "of class NoneType is not known"),
        (crontab(minute="61"), 'the minute field has "61"'),
        (crontab(minute="5/2"), '"5/2", which can\'t be read'),
        (crontab(day_of_week="someday"), '"someday"'),
        (crontab(day_of_week="7"), '"7"'),
        (crontab(hour=[25]), "the hour field"),
        (crontab(hour=["2"]), "the hour field"),
        (crontab(day_of_month=31, month_of_year=2), "never fires"),
    ],
)
def test_what_has_no_like_here_is_left_out_and_told(when: Any, why: str) -> None:
    assert why in why_left_out({"schedule": when})


def test_a_zone_without_a_name_needs_one_to_be_given() -> None:
    nameless = fixed_zone(timedelta(hours=1, minutes=7))
    assert "--tz" in why_left_out({"schedule": crontab()}, nameless)
    only = item({"schedule": crontab()}, nameless, timezone="Africa/Lagos")
    assert only.document["trigger"]["timezone"] == "Africa/Lagos"
    assert item({"schedule": 5}, nameless).document["trigger"]["frequency_time"] == 5, "elapsed time has none"


def test_an_application_whose_zone_is_not_there_needs_one_to_be_given() -> None:
    class Lost(App):
        @property
        def timezone(self) -> tzinfo:
            return ZoneInfo("Europe/Atlantis")

        @timezone.setter
        def timezone(self, value: object) -> None: ...

    app = Lost({"nightly": {"task": "a", "schedule": crontab()}})
    assert "--tz" in read(app, now=NOW).problems[0].why
    assert read(app, now=NOW, timezone="UTC").items


def test_a_clock_of_its_own_is_told_to_be_left_behind() -> None:
    assert any("nowfun" in note for note in item({"schedule": crontab(nowfun=print)}).notes)


# --- what -----------------------------------------------------------------------------------------------


def test_arguments_and_queue_go_to_the_celery_target() -> None:
    only = item(
        {"schedule": 5, "args": (1, "x"), "kwargs": {"a": [None]}, "options": {"queue": Queue("files")}}
    )
    assert only.document["target"] == {
        "kind": "celery",
        "task": "proj.tasks.clean",
        "args": [1, "x"],
        "kwargs": {"a": [None]},
        "queue": "files",
    }
    assert only.notes == ()


def test_a_task_can_be_taken_for_the_task_function_of_the_same_name() -> None:
    only = item({"schedule": 5, "kwargs": {"a": 1}, "options": {"queue": "files"}}, as_function=True)
    assert only.document["target"] == {"kind": "function", "name": "proj.tasks.clean", "args": {"a": 1}}
    assert only.document["queue"] == "files"
    assert only.notes == ('workers must serve the queue "files"',)


def test_positional_arguments_have_no_place_in_a_task_function() -> None:
    assert "by name" in why_left_out({"schedule": 5, "args": [1]}, as_function=True)


@pytest.mark.parametrize("value", [datetime(2026, 1, 1, tzinfo=UTC), {1: 2}, {1, 2}, b"x", float("nan")])
def test_arguments_that_are_no_json_are_left_out(value: Any) -> None:
    assert "kwargs.a" in why_left_out({"schedule": 5, "kwargs": {"a": [value]}})


def test_options_that_are_not_taken_over_are_told() -> None:
    options = {"expires": 60, "priority": 3, "routing_key": "x", "exchange": None}
    told = "; ".join(item({"schedule": 5, "options": options}).notes)
    assert "expires" in told
    assert "priority" in told
    assert "routing_key='x'" in told
    assert "exchange" not in told


def test_a_task_name_that_can_not_be_one_is_left_out() -> None:
    assert "target.task" in why_left_out({"task": "no good", "schedule": 5})


def test_an_entry_may_be_an_object() -> None:
    entry = SimpleNamespace(task="proj.a", schedule=5, args=(), kwargs={}, options={})
    assert item(entry).document["target"] == {"kind": "celery", "task": "proj.a"}


def test_a_beat_that_keeps_schedules_in_a_database_is_pointed_out() -> None:
    told = read(App({}, beat_scheduler="django_celery_beat.schedulers:DatabaseScheduler"), now=NOW)
    assert "django_celery_beat" in told.notes[0]


def test_a_key_that_is_too_long_for_a_name_is_cut_and_told() -> None:
    only = read(App({"x" * 300: {"task": "a", "schedule": 5}}), now=NOW).items[0]
    assert only.name == "x" * 126
    assert only.notes == (f'it was named "{"x" * 300}"',)


# --- times: what is imported fires as Celery says --------------------------------------------------------

MONTHS = ["january", "feb", "mar", "apr", "may", "june", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "monday", "tue", "wed", "thu", "fri", "Saturday"]


def terms(low: int, high: int, names: list[str]) -> st.SearchStrategy[tuple[str, list[int]]]:
    """A term, and the numbers it stands for."""
    numbers = list(range(low, high + 1))
    one = st.integers(low, high)
    spelled = one.flatmap(
        lambda n: st.sampled_from([str(n), *names[n - low : n - low + 1]]).map(lambda t: (t, n))
    )
    steps = st.sampled_from([1, 2, 3, 5, 7])

    def ranged(first: tuple[str, int], last: tuple[str, int], step: int) -> tuple[str, list[int]]:
        around = numbers[first[1] - low :] + numbers[: first[1] - low]
        inside = around[: around.index(last[1]) + 1]
        return f"{first[0]}-{last[0]}" + (f"/{step}" if step > 1 else ""), inside[::step]

    return st.one_of(
        st.just(("*", numbers)),
        steps.map(lambda step: (f"*/{step}", numbers[::step])),
        spelled.map(lambda it: (it[0], [it[1]])),
        st.builds(ranged, spelled, spelled, steps),
    )


def fields(low: int, high: int, names: Iterable[str] = ()) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    listed = st.lists(terms(low, high, list(names)), min_size=1, max_size=3)
    return listed.map(lambda them: (",".join(t for t, _ in them), frozenset(n for _, ns in them for n in ns)))


CRONTABS = st.fixed_dictionaries(
    {
        "minute": fields(0, 59),
        "hour": fields(0, 23),
        "day_of_month": fields(1, 31),
        "month_of_year": fields(1, 12, MONTHS),
        "day_of_week": fields(0, 6, WEEKDAYS),
    }
)
Crontab = dict[str, tuple[str, frozenset[int]]]


@settings(deadline=None, derandomize=True)
@given(CRONTABS)
def test_what_is_imported_fires_when_all_fields_match(given_fields: Crontab) -> None:
    when = crontab(**{name: text for name, (text, _) in given_fields.items()})
    told = found({"schedule": when})
    expected = walked({name: numbers for name, (_, numbers) in given_fields.items()}, NOW, 15)
    if not expected:
        assert told.problems
        return
    [only] = told.items
    assert fires_of(only, NOW, len(expected)) == expected


@settings(deadline=None, derandomize=True)
@given(CRONTABS)
def test_celery_itself_reads_the_fields_alike(given_fields: Crontab) -> None:
    from celery.schedules import crontab as real

    try:
        when = real(**{name: text for name, (text, _) in given_fields.items()})
    except ValueError:
        return
    for name, (_, numbers) in given_fields.items():
        assert getattr(when, name) == numbers
    entry = {"task": "a", "schedule": when}
    assert found(entry) == found(
        {"task": "a", "schedule": crontab(**{n: t for n, (t, _) in given_fields.items()})}
    )


def test_a_real_application_is_read() -> None:
    from celery import Celery
    from celery.schedules import crontab as real
    from celery.schedules import schedule as real_schedule

    app = Celery("proj", broker="memory://")
    app.conf.timezone = "Europe/Berlin"

    @app.task(name="proj.tidy")  # type: ignore[untyped-decorator]
    def tidy(days: int) -> None: ...

    app.conf.beat_schedule = {
        "nightly": {"task": "proj.tidy", "schedule": real(minute=0, hour=3), "kwargs": {"days": 7}},
        "often": {"task": "proj.tidy", "schedule": real_schedule(10), "args": (1,)},
        "plain": {"task": "proj.tidy", "schedule": 60.0},
    }
    app.add_periodic_task(30, tidy.s(3), name="added", queue="files")
    told = read(app, now=NOW)
    assert not told.problems
    documents = {each.name: each.document for each in told.items}
    assert documents["nightly"]["trigger"]["timezone"] == "Europe/Berlin"
    assert documents["often"]["trigger"]["frequency_time"] == 10
    assert documents["plain"]["trigger"]["frequency_unit"] == "MINUTES"
    assert documents["added"]["target"] == {
        "kind": "celery",
        "task": "proj.tidy",
        "args": [3],
        "queue": "files",
    }

"""The jobs of an APScheduler.

It is stood in for by classes of the same names and attributes, and used itself where it is installed.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from datetime import timezone as fixed_zone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.importers.firing import fires_of, walked

from foliot.importers.apscheduler import read
from foliot.importers.import_result import ImportResult, Item

NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@dataclass
class TextField:
    name: str
    text: str

    def __str__(self) -> str:
        return self.text


NAMES = ("year", "month", "day", "week", "day_of_week", "hour", "minute", "second")
LOWEST = {"month": "1", "day": "1", "hour": "0", "minute": "0", "second": "0"}


class CronTrigger:
    """Fields finer than the finest that is given are at their least, the others open."""

    def __init__(
        self,
        timezone: tzinfo = UTC,
        start_date: datetime | None = None,
        end_date: datetime | None = None,
        jitter: int | None = None,
        **given_fields: Any,
    ) -> None:
        self.timezone, self.start_date, self.end_date, self.jitter = timezone, start_date, end_date, jitter
        finest = max((NAMES.index(name) for name in given_fields), default=len(NAMES))
        self.fields = [
            TextField(name, str(given_fields.get(name, LOWEST.get(name, "*") if index > finest else "*")))
            for index, name in enumerate(NAMES)
        ]


@dataclass
class IntervalTrigger:
    interval: timedelta
    start_date: datetime = NOW
    end_date: datetime | None = None
    timezone: tzinfo = UTC
    jitter: int | None = None


@dataclass
class DateTrigger:
    run_date: datetime


class OrTrigger:
    def __str__(self) -> str:
        return "or[cron[hour='1'], cron[hour='2']]"


class CalendarIntervalTrigger:
    pass


class MemoryJobStore:
    pass


class SQLAlchemyJobStore:
    pass


def tick(region: str, size: int = 1) -> None: ...


def spread(*parts: str) -> None: ...


def by_place(part: str, /) -> None: ...


def loose(part: str, **rest: str) -> None: ...


class Job:
    """Attributes that were not set are not there, as with a job that waits for the scheduler to start."""

    def __init__(self, trigger: Any, job_id: str = "ticking", **attributes: Any) -> None:
        self.id, self.trigger = job_id, trigger
        self.name = attributes.pop("name", "tick")
        self.func = attributes.pop("func", tick)
        self.func_ref = attributes.pop("func_ref", "proj.jobs:tick")
        self.args = attributes.pop("args", ())
        self.kwargs = attributes.pop("kwargs", {"region": "eu"})
        self.executor = attributes.pop("executor", "default")
        for name, value in attributes.items():
            setattr(self, name, value)


@dataclass
class Scheduler:
    jobs: list[Job]
    state: int = 0
    _jobstores: dict[str, Any] = field(default_factory=dict)
    _job_defaults: dict[str, Any] = field(default_factory=dict)
    asked: list[str | None] = field(default_factory=list)

    def get_jobs(self, jobstore: str | None = None) -> list[Job]:
        self.asked.append(jobstore)
        return self.jobs


def found(trigger: Any, **attributes: Any) -> ImportResult:
    return read(Scheduler([Job(trigger, **attributes)]), now=NOW)


def item(trigger: Any, **attributes: Any) -> Item:
    told = found(trigger, **attributes)
    assert not told.problems
    [only] = told.items
    return only


def why_left_out(trigger: Any, **attributes: Any) -> str:
    told = found(trigger, **attributes)
    assert not told.items
    [problem] = told.problems
    assert problem.where.startswith('job "')
    return problem.why


def trigger_of(**fields: Any) -> Any:
    return item(CronTrigger(**fields)).document["trigger"]


# --- when -----------------------------------------------------------------------------------------------


def test_a_cron_job_becomes_a_schedule_with_the_same_policies() -> None:
    only = item(
        CronTrigger(timezone=BERLIN, hour=2, minute="*/15", jitter=20),
        misfire_grace_time=60,
        coalesce=False,
        max_instances=3,
    )
    assert only.document == {
        "name": "ticking",
        "trigger": {"kind": "cron", "expression": "*/15 2 * * *", "timezone": "Europe/Berlin"},
        "target": {"kind": "function", "name": "tick", "args": {"region": "eu"}},
        "timeout_seconds": 86400,
        "retry": {"max_attempts": 1},
        "misfire": {"policy": "fire_all", "grace_seconds": 60},
        "overlap": {"policy": "skip", "max_instances": 3},
        "jitter_seconds": 20,
    }
    assert only.notes == ()


@pytest.mark.parametrize(
    ("fields", "expression"),
    [
        ({"second": "*/10"}, "*/10 * * * * *"),
        ({"second": "5"}, "5 * * * * *"),
        ({"hour": "8-17/2"}, "0 8-17/2 * * *"),
        ({"day_of_week": "mon-fri", "hour": "9"}, "0 9 * * mon-fri"),
        ({"day_of_week": "0-4", "hour": "9"}, "0 9 * * 1-5"),
        ({"day_of_week": "6", "hour": "9"}, "0 9 * * 0"),
        ({"day": "last", "hour": "9"}, "0 9 L * *"),
        ({"day": "2nd fri", "hour": "9"}, "0 9 * * FRI#2"),
        ({"day": "last sun,1st mon", "hour": "9"}, "0 9 * * SUNL,MON#1"),
        ({"day": "15,last fri", "hour": "9"}, "0 9 15 * FRIL"),
        ({"day": "*/10,last fri", "hour": "9"}, "0 9 1,11,21,31 * FRIL"),
        ({"day": "*,last fri", "hour": "9"}, "0 9 * * *"),
        ({"month": "jan-mar", "day": "1"}, "0 0 1 jan-mar *"),
        ({"month": "6"}, "0 0 1 6 *"),
        ({"day": "*/2", "day_of_week": "mon"}, "0 0 */2 * mon"),
        ({"second": "3", "day": "2nd fri"}, "3 * * * * FRI#2"),
    ],
)
def test_fields_are_written_as_cron_writes_them(fields: dict[str, Any], expression: str) -> None:
    assert trigger_of(**fields) == {"kind": "cron", "expression": expression, "timezone": "UTC"}


def test_days_and_weekdays_that_must_both_match_become_a_rule() -> None:
    only = item(CronTrigger(day="13,last", day_of_week="fri", hour="8"))
    assert only.document["trigger"]["rule"] == (
        "FREQ=DAILY;BYMONTHDAY=-1,13;BYDAY=FR;BYHOUR=8;BYMINUTE=0;BYSECOND=0"
    )
    assert fires_of(only, NOW, 2) == [
        datetime(2026, 3, 13, 8, tzinfo=UTC),
        datetime(2026, 7, 31, 8, tzinfo=UTC),
    ]


def test_an_interval_keeps_its_grid() -> None:
    start = NOW - timedelta(minutes=7)
    only = item(IntervalTrigger(timedelta(hours=1, minutes=30), start))
    assert only.document["trigger"] == {"kind": "interval", "frequency_unit": "MINUTES", "frequency_time": 90}
    assert fires_of(only, NOW, 1) == [start + timedelta(minutes=90)]


def test_a_start_and_an_end_are_kept() -> None:
    start, end = NOW + timedelta(days=1), NOW + timedelta(days=9)
    document = item(CronTrigger(hour="1", start_date=start, end_date=end)).document
    assert (document["start_ts"], document["end_ts"]) == (start.isoformat(), end.isoformat())


def test_a_date_to_come_is_kept_and_one_that_has_passed_left_out() -> None:
    later = NOW + timedelta(days=1)
    assert item(DateTrigger(later)).document["trigger"] == {"kind": "once", "at": later.isoformat()}
    assert why_left_out(DateTrigger(NOW - timedelta(minutes=1))) == "its time has passed"
    assert "has ended" in why_left_out(IntervalTrigger(timedelta(hours=1), end_date=NOW))


@pytest.mark.parametrize(
    ("trigger", "why"),
    [
        (OrTrigger(), "combines several triggers"),
        (CalendarIntervalTrigger(), "CalendarIntervalTrigger is not known"),
        (CronTrigger(year="2027"), "names a year"),
        (CronTrigger(week="*/2"), "names a week"),
        (CronTrigger(day="1st mon", day_of_week="tue"), "weekdays besides"),
        (CronTrigger(hour="9", timezone=fixed_zone(timedelta(hours=1))), "no name"),
        (IntervalTrigger(timedelta(milliseconds=500)), "whole seconds"),
        (CronTrigger(month="2", day="30"), "never fires"),
    ],
)
def test_what_has_no_like_here_is_left_out_and_told(trigger: Any, why: str) -> None:
    assert why in why_left_out(trigger)


# --- policies -------------------------------------------------------------------------------------------


def test_a_job_that_waits_for_the_start_gets_the_defaults_of_its_scheduler() -> None:
    scheduler = Scheduler(
        [Job(CronTrigger(hour="1"))], _job_defaults={"misfire_grace_time": 30, "coalesce": True}
    )
    [only] = read(scheduler, now=NOW).items
    assert only.document["misfire"] == {"policy": "fire_once", "grace_seconds": 30}
    assert only.document["overlap"] == {"policy": "skip", "max_instances": 1}


def test_a_job_that_runs_however_late_has_the_longest_grace() -> None:
    document = item(CronTrigger(hour="1"), misfire_grace_time=None).document
    assert document["misfire"]["grace_seconds"] == 10 * 366 * 86400


def test_a_grace_that_a_takeover_would_exceed_is_pointed_out() -> None:
    told = found(CronTrigger(hour="1"))
    assert told.items[0].document["misfire"]["grace_seconds"] == 1, "APScheduler's own default"
    assert any("misfire_grace_time" in note for note in told.notes)
    patient = found(CronTrigger(hour="1"), misfire_grace_time=60)
    assert not any("misfire_grace_time" in note for note in patient.notes)


def test_a_paused_job_becomes_an_inactive_schedule() -> None:
    assert item(CronTrigger(hour="1"), next_run_time=None).document["active"] is False
    assert "active" not in item(CronTrigger(hour="1"), next_run_time=NOW).document


# --- what -----------------------------------------------------------------------------------------------


def test_positional_arguments_get_the_names_of_the_parameters() -> None:
    only = item(CronTrigger(hour="1"), args=("eu",), kwargs={"size": 3})
    assert only.document["target"]["args"] == {"region": "eu", "size": 3}
    assert any("positional" in note for note in only.notes)
    rest = item(CronTrigger(hour="1"), func=loose, args=("a",), kwargs={"b": "c"})
    assert rest.document["target"]["args"] == {"part": "a", "b": "c"}


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"func": spread, "args": ("a", "b"), "kwargs": {}}, "by position"),
        ({"func": by_place, "args": ("a",), "kwargs": {}}, "by position"),
        ({"args": (1, 2, 3, 4)}, "don't fit"),
        ({"kwargs": {"region": NOW}}, "kwargs.region"),
        ({"func_ref": None}, "has no name"),
        ({"func_ref": "proj:<lambda>"}, "target.name"),
    ],
)
def test_a_call_that_no_task_function_could_get_is_left_out(attributes: dict[str, Any], why: str) -> None:
    assert why in why_left_out(CronTrigger(hour="1"), **attributes)


def test_a_schedule_is_named_like_the_job_or_where_its_id_is_made_up_like_its_function() -> None:
    assert item(CronTrigger(hour="1"), job_id="nightly").name == "nightly"
    assert item(CronTrigger(hour="1"), job_id="0123456789abcdef0123456789abcdef").name == "tick"


def test_functions_of_one_name_are_pointed_out() -> None:
    jobs = [Job(CronTrigger(hour="1"), each, func_ref=f"{each}.jobs:tick") for each in ("a", "b")]
    told = read(Scheduler(jobs), now=NOW)
    assert all(any("a.jobs:tick, b.jobs:tick" in note for note in each.notes) for each in told.items)


def test_an_executor_is_told_to_be_left_behind() -> None:
    assert any("processpool" in note for note in item(CronTrigger(hour="1"), executor="processpool").notes)


# --- job stores -----------------------------------------------------------------------------------------


def test_a_job_store_in_a_database_is_never_asked_for_its_jobs() -> None:
    stores = {"default": MemoryJobStore(), "kept": SQLAlchemyJobStore()}
    scheduler = Scheduler([Job(CronTrigger(hour="1"))], state=1, _jobstores=stores)
    told = read(scheduler, now=NOW)
    assert scheduler.asked == ["default"]
    [problem] = told.problems
    assert problem.where == 'job store "kept"'
    assert "pickles" in problem.why
    assert len(told.items) == 1


# --- times: what is imported fires as APScheduler says ----------------------------------------------------

MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


def terms(low: int, high: int, names: list[str]) -> st.SearchStrategy[tuple[str, list[int]]]:
    """A term, and the numbers it stands for."""
    one = st.integers(low, high)
    pair = st.tuples(one, one).map(sorted)
    step = st.sampled_from([2, 3, 5])
    numbers = list(range(low, high + 1))
    plain = [
        st.just(("*", numbers)),
        step.map(lambda by: (f"*/{by}", numbers[::by])),
        one.map(lambda n: (str(n), [n])),
        pair.map(lambda ends: (f"{ends[0]}-{ends[1]}", list(range(ends[0], ends[1] + 1)))),
    ]
    named = [
        one.map(lambda n: (names[n - low], [n])),
        pair.map(lambda e: (f"{names[e[0] - low]}-{names[e[1] - low]}", list(range(e[0], e[1] + 1)))),
    ]
    return st.one_of(*plain, *(named if names else []))


def fields_of(low: int, high: int, names: list[str]) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    listed = st.lists(terms(low, high, names), min_size=1, max_size=2)
    return listed.map(lambda them: (",".join(t for t, _ in them), frozenset(n for _, ns in them for n in ns)))


CRONS = st.fixed_dictionaries(
    {
        "month": fields_of(1, 12, MONTHS),
        "day": fields_of(1, 31, []),
        "day_of_week": fields_of(0, 6, WEEKDAYS),
        "hour": fields_of(0, 23, []),
        "minute": fields_of(0, 59, []),
    }
)
Cron = dict[str, tuple[str, frozenset[int]]]


@settings(deadline=None, derandomize=True)
@given(CRONS)
def test_what_is_imported_fires_when_all_fields_match(cron: Cron) -> None:
    texts: dict[str, Any] = {name: text for name, (text, _) in cron.items()}
    told = found(CronTrigger(**texts))
    allowed = {name: numbers for name, (_, numbers) in cron.items()}
    names = {"month": "month_of_year", "day": "day_of_month"}
    expected = walked(
        {names.get(name, name): numbers for name, numbers in allowed.items()}
        | {"day_of_week": {(number + 1) % 7 for number in allowed["day_of_week"]}},
        NOW,
        15,
    )
    if not expected:
        assert told.problems
        return
    [only] = told.items
    assert fires_of(only, NOW, len(expected)) == expected


@settings(deadline=None, derandomize=True)
@given(CRONS, st.sampled_from(["", "last", "2nd fri", "last mon"]))
def test_apscheduler_itself_fires_alike(cron: Cron, position: str) -> None:
    from apscheduler.triggers.cron import CronTrigger as Real

    texts = {name: text for name, (text, _) in cron.items()}
    if position:
        texts |= {"day": position, "day_of_week": "*"}
    try:
        real = Real(timezone=ZoneInfo("UTC"), **texts)
    except ValueError:  # a step that is longer than its range
        return
    told = found(real)
    fires: list[datetime] = []
    at = NOW
    while len(fires) < 8 and at.year < 2035:
        following = real.get_next_fire_time(None, at + timedelta(microseconds=1))
        if following is None:
            break
        at = following
        fires.append(at.astimezone(UTC))
    if told.problems:
        assert not fires
        return
    assert fires_of(told.items[0], NOW, len(fires)) == fires


def test_a_real_scheduler_is_read_before_it_is_started() -> None:
    from apscheduler.schedulers.background import BackgroundScheduler

    scheduler = BackgroundScheduler(timezone="Europe/Berlin", job_defaults={"misfire_grace_time": 30})
    scheduler.add_jobstore("sqlalchemy", "kept", url="sqlite://")
    scheduler.add_job(tick, "cron", args=["eu"], day_of_week="0-4", hour=6, id="weekdays")
    scheduler.add_job(tick, "interval", kwargs={"region": "us"}, minutes=10, max_instances=2)
    scheduler.add_job(tick, "date", args=["eu"], run_date=NOW + timedelta(days=999), id="far")
    scheduler.add_job(tick, "cron", args=["eu"], hour=1, id="paused", next_run_time=None)
    told = read(scheduler, now=NOW)
    documents = {each.name: each.document for each in told.items}
    assert set(documents) == {"weekdays", "tick", "far", "paused"}
    assert documents["weekdays"]["trigger"] == {
        "kind": "cron",
        "expression": "0 6 * * 1-5",
        "timezone": "Europe/Berlin",
    }
    assert documents["weekdays"]["target"]["args"] == {"region": "eu"}
    assert documents["tick"]["misfire"] == {"policy": "fire_once", "grace_seconds": 30}
    assert documents["tick"]["overlap"]["max_instances"] == 2
    assert documents["paused"]["active"] is False
    assert [problem.what for problem in told.problems] == ["kept"]

"""The first promise, on planning alone: every time of a schedule is decided exactly once, in order.

A pure engine goes through a random life of a schedule: outages, catching up, edits, pauses with and without
an end, switching off and on. Beside it a simple observer writes down which nominal times there were, by
walking the recurrence in force. In the end the rows, each unfolded into the times it says it decides, must be
those. Which of them window and calendars forbid is looked up by hand.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from foliot.model.calendar import CalendarSpec
from foliot.model.errors import InvalidError
from foliot.model.execution import SkipReason
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.policy import MisfirePolicy
from foliot.model.schedule import Schedule, ScheduleSpec, ScheduleState
from foliot.planning.change import Author, PlannedChange, create, delete, due_of, edit, is_due, pause, resume
from foliot.planning.definition import CompiledSchedule, compile_definition, compile_spec
from foliot.planning.fire import (
    ALLOWED_WALK,
    CATCHUP_PACE_S,
    CATCHUP_PER_STEP,
    SKIP_AFTER_S,
    FireDecision,
    plan_firing,
)
from foliot.timing.calendar import Calendar
from foliot.timing.window import is_inside

TICK = timedelta(microseconds=1)
ANN = Author("ann")
SCHEDULE_ID = UUID("01900000-0000-7000-8000-0000000000aa")
FAR = datetime(2400, 1, 1, tzinfo=UTC)
MAX_TIMES = 4000
"""More nominal times than this are not walked in one stretch of a life; the stretch ends earlier instead."""

BEGINNINGS = [
    datetime(2026, 3, 28, 22, 17, 3, tzinfo=UTC),  # the night of the change in Berlin
    datetime(2026, 10, 24, 21, 0, 0, tzinfo=UTC),
    datetime(2026, 1, 31, 12, 0, 0, 250_000, tzinfo=UTC),
]
TRIGGERS = [
    {"kind": "interval", "seconds": 1},
    {"kind": "interval", "seconds": 7},
    {"kind": "interval", "minutes": 1},
    {"kind": "interval", "hours": 6},
    {"kind": "interval", "days": 1, "timezone": "Europe/Berlin"},
    {"kind": "interval", "months": 1},
    {"kind": "cron", "expression": "* * * * *"},
    {"kind": "cron", "expression": "*/20 * * * * *"},
    {"kind": "cron", "expression": "30 2 * * *", "timezone": "Europe/Berlin"},
    {"kind": "cron", "expression": "15,45 1-3 * * *", "timezone": "Europe/Berlin"},
    {"kind": "cron", "expression": "0 9 * * mon-fri", "timezone": "America/New_York"},
    {"kind": "cron", "expression": "0 0 29 2 *"},
]

# Each as users write it, and by hand: in which zone (None: the trigger's) which days are excluded.
CALENDARS: dict[str, tuple[dict[str, Any], str | None, Callable[[date], bool]]] = {
    "weekends": ({"weekdays": [6, 7]}, None, lambda day: day.weekday() >= 5),
    "odd days": (
        {
            "timezone": "Pacific/Auckland",
            "days": [f"2026-{month:02}-{day:02}" for month in (3, 10) for day in (25, 27, 29, 31)],
        },
        "Pacific/Auckland",
        lambda day: day.year == 2026 and day.month in (3, 10) and day.day in (25, 27, 29, 31),
    ),
    "closed": (
        {"timezone": "Europe/Berlin", "days": [{"from": "2026-02-02", "to": "2026-04-05"}, "2026-10-25"]},
        "Europe/Berlin",
        lambda day: date(2026, 2, 2) <= day <= date(2026, 4, 5) or day == date(2026, 10, 25),
    ),
}
BOOK = {
    (DEFAULT_HOST_ID, name): Calendar(CalendarSpec.parse({"name": name, **fields}))
    for name, (fields, _, _) in CALENDARS.items()
}


def is_excluded_by_hand(cadence: CompiledSchedule, instant: datetime) -> bool:
    for name in cadence.policies.calendars:
        _, own, excludes = CALENDARS[name]
        zone_name = str(own or getattr(cadence.trigger, "timezone", "UTC"))
        if excludes(instant.astimezone(ZoneInfo(zone_name)).date()):
            return True
    return False


class Life:
    """A schedule, the rows that were written for it, and the times there were."""

    def __init__(self, spec: ScheduleSpec, now: datetime) -> None:
        change = create(spec, host_id=DEFAULT_HOST_ID, now=now, author=ANN, schedule_id=SCHEDULE_ID)
        self.now = now
        self.schedule = change.schedule
        self.decided: list[datetime] = []
        self.expected: list[datetime] = []
        self._begin(now, is_new=True)

    # --- the observer -----------------------------------------------------------------------------

    def _begin(self, since: datetime, *, is_new: bool = False) -> None:
        """From here on the schedule as it is now has times; `since` itself is not one of them."""
        self._cadence = cadence_of(self.schedule)
        start = self.schedule.spec.start_ts
        if start is not None and (start > since or (is_new and start == since)):
            since = start - TICK
        self._seen_until = since
        self._is_alive = self.schedule.state is ScheduleState.ACTIVE

    def pass_to(self, now: datetime) -> None:
        """Let time pass, and write down the times that come by."""
        for _ in range(MAX_TIMES):
            moment = self._cadence.recurrence.after(self._seen_until) if self._is_alive else None
            if moment is None or moment > now or (self._end is not None and moment > self._end):
                break
            self.expected.append(moment)
            self._seen_until = moment
        else:
            now = self._seen_until
        self.now = max(self.now, now)

    @property
    def _end(self) -> datetime | None:
        return self._cadence.end_ts

    def next_nominal(self) -> datetime:
        return self._cadence.recurrence.after(self.now) or self.now + timedelta(days=1)

    # --- the engine -------------------------------------------------------------------------------

    def run(self) -> None:
        """Fire as the scheduler does, until nothing is due."""
        self.pass_to(self.now)
        while self.schedule.next_run_ts is not None and self.schedule.next_run_ts <= self.now:
            self.schedule = lapsed(self.schedule, self.now)
            due = due_of(self.schedule)
            cadence = compile_definition(due.definition, SCHEDULE_ID)
            firing = plan_firing(due, cadence, self.now, BOOK)
            assert 1 <= len(firing.decisions) <= CATCHUP_PER_STEP + 1
            for decision in firing.decisions:
                self._check(decision, cadence)
                self._record(decision, cadence)
            self.schedule = replace(
                self.schedule,
                next_fire_ts=firing.next and firing.next.fire_ts,
                next_run_ts=firing.next and firing.next.run_ts,
                run_count=self.schedule.run_count + firing.fires,
                state=ScheduleState.COMPLETED if firing.is_completed else ScheduleState.ACTIVE,
            )
            if firing.is_completed and self.schedule.run_count == self.schedule.spec.max_runs:
                self._is_alive = False
                self.expected = [each for each in self.expected if each <= self.decided[-1]]
            self.pass_to(self.now + timedelta(seconds=CATCHUP_PACE_S))

    def _check(self, decision: FireDecision, cadence: CompiledSchedule) -> None:
        """What fires is allowed by window and calendars, and not later than its policy allows."""
        misfire, window = cadence.policies.misfire, cadence.policies.window
        late_s = (self.now - decision.run_ts).total_seconds()

        def forbidden(moment: datetime) -> SkipReason | None:
            if window is not None and not is_inside(window, moment):
                return SkipReason.WINDOW
            return SkipReason.CALENDAR if is_excluded_by_hand(cadence, moment) else None

        if decision.reason is None:
            assert forbidden(decision.fire_ts) is None
            assert late_s <= misfire.grace_seconds
            assert misfire.policy is not MisfirePolicy.SKIP or late_s < SKIP_AFTER_S
        elif decision.reason in (SkipReason.WINDOW, SkipReason.CALENDAR):
            assert forbidden(decision.fire_ts) is decision.reason
            if decision.missed_count < ALLOWED_WALK:
                assert all(forbidden(moment) for moment in unfolded(decision, cadence)), "none could fire"
        else:
            assert decision.reason is SkipReason.MISFIRE

    def _record(self, decision: FireDecision, cadence: CompiledSchedule) -> None:
        times = list(unfolded(decision, cadence))
        assert len(times) == decision.missed_count + 1
        self.decided += times

    # --- what people do ---------------------------------------------------------------------------

    def change(self, change: PlannedChange | None, before: Schedule) -> None:
        """Take over a change that was planned for `before`."""
        if change is None:
            return
        self.pass_to(self.now)
        if change.decision is not None:
            self._record(change.decision, cadence_of(before))
        self.schedule = change.schedule
        self._begin(self.now)
        if change.schedule.deleted_ts is not None:
            self._is_alive = False
        elif change.schedule.paused and change.schedule.spec.active:
            until = change.schedule.paused_until_ts
            self._is_alive = until is not None and self.schedule.next_run_ts is not None
            self._seen_until = max(self._seen_until, self.now if until is None else until - TICK)


def lapsed(schedule: Schedule, now: datetime) -> Schedule:
    """The store lifts a pause whose end has passed with the first fire after it."""
    if not schedule.paused:
        return schedule
    assert schedule.paused_until_ts is not None
    assert schedule.paused_until_ts <= now, "nothing is due before the end of a pause"
    return replace(schedule, paused=False, paused_until_ts=None, state=ScheduleState.ACTIVE)


def cadence_of(schedule: Schedule) -> CompiledSchedule:
    return compile_spec(schedule.spec, SCHEDULE_ID, schedule.effective_ts)


def unfolded(decision: FireDecision, cadence: CompiledSchedule) -> Iterator[datetime]:
    """The times a row says it decides: from the first missed one, by the recurrence, to its own."""
    assert (decision.missed_from_ts is None) == (decision.missed_count == 0)
    moment = decision.missed_from_ts or decision.fire_ts
    yield moment
    while moment < decision.fire_ts:
        following = cadence.recurrence.after(max(moment, cadence.effective_ts))
        assert following is not None
        assert following <= decision.fire_ts, "the row's own time is one of the recurrence's"
        moment = following
        yield moment


# --- random lives --------------------------------------------------------------------------------------

misfires = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(MisfirePolicy),
        "grace_seconds": st.sampled_from([0, 5, 90, 3600, 86400 * 40]),
        "max_catchup": st.sampled_from([1, 3, 10, 11, 35]),
    }
)
windows = st.none() | st.fixed_dictionaries(
    {
        "days_of_week": st.sampled_from([[1, 2, 3, 4, 5], [6, 7], [1, 2, 3, 4, 5, 6, 7]]),
        "hours_of_day": st.sampled_from([[2], [0, 1, 3], [9, 22, 23], list(range(24))]),
        "timezone": st.sampled_from(["UTC", "Europe/Berlin"]),
    }
)
triggers = st.sampled_from(TRIGGERS)
jitters = st.sampled_from([0, 0, 0.5, 40, 86400])
calendars = st.lists(st.sampled_from(sorted(CALENDARS)), max_size=2, unique=True)
policies = st.fixed_dictionaries(
    {"misfire": misfires, "window": windows, "calendars": calendars, "jitter_seconds": jitters}
)
starts = st.none() | st.floats(min_value=-3, max_value=3)
"""So many gaps of the trigger from now."""
steps = st.one_of(
    st.tuples(st.just("exactly"), st.sampled_from([-1, 0, 1])),
    st.tuples(st.just("gaps"), st.floats(min_value=0, max_value=4)),
    st.tuples(st.just("gaps"), st.floats(min_value=0, max_value=300)),
)
acts = st.one_of(
    st.tuples(st.just("run"), st.none()),
    st.tuples(st.just("run"), st.none()),
    st.tuples(st.just("policies"), policies),
    st.tuples(st.just("trigger"), st.tuples(triggers, starts)),
    st.tuples(st.just("pause"), st.none() | st.floats(min_value=-2, max_value=40)),
    st.tuples(st.just("resume"), st.none()),
    st.tuples(st.just("active"), st.booleans()),
    st.tuples(st.just("nothing"), st.none()),
)
lives = st.lists(st.tuples(steps, acts), max_size=14)


def gap_of(trigger: dict[str, Any], now: datetime) -> timedelta:
    """About how far apart the times of a trigger are."""
    cadence = compile_spec(spec_of(trigger), SCHEDULE_ID, now)
    first = cadence.recurrence.after(now)
    second = None if first is None else cadence.recurrence.after(first)
    assert first is not None
    return timedelta(days=1) if second is None else second - first


def spec_of(trigger: dict[str, Any], **fields: Any) -> ScheduleSpec:
    target = {"kind": "function", "name": "work"}
    return ScheduleSpec.parse({"name": "each", "trigger": trigger, "target": target, **fields})


def started(now: datetime, gap: timedelta, start: float | None) -> datetime | None:
    return None if start is None else min(now + gap * start, FAR)


def act(life: Life, gap: timedelta, kind: str, value: Any) -> None:
    schedule, now = life.schedule, life.now
    document = schedule.spec.model_dump()
    match kind:
        case "run":
            life.run()
        case "policies":
            life.change(edit(schedule, ScheduleSpec.parse(document | value), now=now, author=ANN), schedule)
        case "trigger":
            trigger, start = value
            timing = {"trigger": trigger, "start_ts": started(now, gap, start)}
            try:
                change = edit(schedule, ScheduleSpec.parse(document | timing), now=now, author=ANN)
            except InvalidError:
                return
            life.change(change, schedule)
        case "pause":
            until = None if value is None else min(now + gap * value, FAR)
            life.change(pause(schedule, now=now, author=ANN, until_ts=until), schedule)
        case "resume":
            life.change(resume(schedule, now=now, author=ANN), schedule)
        case "active":
            edited = ScheduleSpec.parse(document | {"active": value})
            life.change(edit(schedule, edited, now=now, author=ANN), schedule)


def pass_time(life: Life, gap: timedelta, how: str, amount: float) -> None:
    if how == "exactly":
        life.pass_to(life.next_nominal() + int(amount) * TICK)
    else:
        life.pass_to(min(life.now + gap * amount, FAR))


@settings(max_examples=400, deadline=None, derandomize=True)
@given(
    beginning=st.sampled_from(BEGINNINGS),
    trigger=triggers,
    start=starts,
    fields=policies,
    max_runs=st.none() | st.integers(min_value=1, max_value=30),
    end=st.none() | st.floats(min_value=1.5, max_value=500),
    life_story=lives,
    is_deleted=st.booleans(),
)
def test_every_time_of_a_schedule_is_decided_exactly_once_and_in_order(
    beginning: datetime,
    trigger: dict[str, Any],
    start: float | None,
    fields: dict[str, Any],
    max_runs: int | None,
    end: float | None,
    life_story: list[tuple[tuple[str, float], tuple[str, Any]]],
    is_deleted: bool,
) -> None:
    gap = gap_of(trigger, beginning)
    end_ts = None if end is None else min(beginning + gap * (end + 3), FAR)
    timing = {"start_ts": started(beginning, gap, start), "end_ts": end_ts, "max_runs": max_runs}
    try:
        life = Life(spec_of(trigger, **timing, **fields), beginning)
    except InvalidError:
        return
    for (how, amount), (kind, value) in life_story:
        pass_time(life, gap, how, amount)
        act(life, gap, kind, value)
    if is_deleted:
        life.change(delete(life.schedule, now=life.now, author=ANN), life.schedule)
    else:
        life.run()

    life.pass_to(life.now)
    expected = sorted(set(life.expected))
    waiting = []
    if is_due(life.schedule, life.now):
        assert life.schedule.next_fire_ts is not None
        assert life.schedule.next_run_ts is not None
        assert life.schedule.next_run_ts > life.now, "only a jitter that has not come keeps a time waiting"
        # Times of a new trigger may come by while one of the old trigger still waits for its jitter.
        waiting = [each for each in expected if each >= life.schedule.next_fire_ts]
    assert life.decided == sorted(set(life.decided))
    assert life.decided + waiting == expected

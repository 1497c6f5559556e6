"""What becomes of times that are due: on time, late, several at once, outside the window, the last ones."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.unit.planning.schedules import (
    EVERY_SECOND,
    NOON,
    SCHEDULE_ID,
    advanced,
    at,
    briefs,
    cadence_of,
    created,
    plan,
)

from foliot.model.execution import SkipReason
from foliot.model.recurrence import Recurrence
from foliot.model.schedule import Schedule
from foliot.planning.change import due_of
from foliot.planning.fire import (
    CATCHUP_PACE_S,
    CATCHUP_PER_STEP,
    FireDecision,
    next_after_end,
    plan_firing,
    plan_skip,
)
from foliot.planning.next import run_ts_of

PACE = timedelta(seconds=CATCHUP_PACE_S)
MONTH = timedelta(days=30)


class CountedCalls:
    """A recurrence that counts how often it is asked."""

    def __init__(self, times: Recurrence) -> None:
        self.calls = 0
        self._times = times

    def after(self, instant: datetime) -> datetime | None:
        self.calls += 1
        return self._times.after(instant)

    def before(self, instant: datetime) -> datetime | None:
        self.calls += 1
        return self._times.before(instant)

    def count(self, first: datetime, last: datetime) -> int:
        self.calls += 1
        return self._times.count(first, last)


def caught_up(schedule: Schedule, now: datetime) -> tuple[list[FireDecision], list[int]]:
    """Everything that is decided when the engine goes on until nothing is due; and how much per step."""
    decisions: list[FireDecision] = []
    steps: list[int] = []
    while schedule.next_run_ts is not None and schedule.next_run_ts <= now:
        firing = plan(schedule, now)
        decisions += firing.decisions
        steps.append(firing.fires)
        schedule = advanced(schedule, firing)
        now += PACE
    return decisions, steps


# --- one time ------------------------------------------------------------------------------------------


def test_a_time_that_is_due_fires_and_the_next_is_on_the_grid_not_from_now() -> None:
    firing = plan(created(), at(1, 7))
    assert briefs(firing) == [(at(1), None, 0, None)]
    assert firing.next == (at(2), at(2))
    assert (firing.is_completed, firing.fires) == (False, 1)


@pytest.mark.parametrize("policy", ["fire_once", "fire_all"])
def test_a_single_late_time_fires_within_its_grace_and_not_beyond(policy: str) -> None:
    schedule = created(
        trigger={"kind": "interval", "hours": 5}, misfire={"policy": policy, "grace_seconds": 600}
    )
    assert briefs(plan(schedule, at(310))) == [(at(300), None, 0, None)]
    assert briefs(plan(schedule, at(310, 0.1))) == [(at(300), SkipReason.MISFIRE, 0, None)]
    assert plan(schedule, at(310, 0.1)).next == (at(600), at(600))


def test_under_skip_a_time_fires_only_while_it_is_under_ten_seconds_late() -> None:
    schedule = created(misfire={"policy": "skip"})
    assert briefs(plan(schedule, at(1, 9.999))) == [(at(1), None, 0, None)]
    assert briefs(plan(schedule, at(1, 10))) == [(at(1), SkipReason.MISFIRE, 0, None)]


def test_a_grace_of_nothing_fires_only_what_is_not_late_at_all() -> None:
    schedule = created(misfire={"grace_seconds": 0})
    assert briefs(plan(schedule, at(1))) == [(at(1), None, 0, None)]
    assert briefs(plan(schedule, at(1, 0.001))) == [(at(1), SkipReason.MISFIRE, 0, None)]


def test_lateness_counts_from_when_to_act_and_not_from_the_nominal_time() -> None:
    schedule = created(
        trigger={"kind": "interval", "hours": 1}, jitter_seconds=3600, misfire={"policy": "skip"}
    )
    assert schedule.next_run_ts is not None
    assert schedule.next_run_ts > at(60, 20)
    assert briefs(plan(schedule, schedule.next_run_ts + timedelta(seconds=9)))[0][1] is None
    late = briefs(plan(schedule, schedule.next_run_ts + timedelta(seconds=10)))
    assert late == [(at(60), SkipReason.MISFIRE, 0, None)]


# --- several at once: fire_once ------------------------------------------------------------------------


def test_fire_once_fires_the_latest_and_it_decides_the_others() -> None:
    firing = plan(created(), at(5, 20))
    assert briefs(firing) == [(at(5), None, 4, at(1))]
    assert firing.next == (at(6), at(6))


def test_fire_once_with_two_due() -> None:
    assert briefs(plan(created(), at(2))) == [(at(2), None, 1, at(1))]


def test_fire_once_skips_all_of_them_when_even_the_latest_is_too_late() -> None:
    trigger = {"kind": "interval", "hours": 1}
    firing = plan(created(trigger=trigger, misfire={"grace_seconds": 60}), at(5 * 60 + 2))
    assert briefs(firing) == [(at(300), SkipReason.MISFIRE, 4, at(60))]


def test_a_month_of_a_schedule_by_the_second_is_one_row_planned_in_milliseconds() -> None:
    schedule = created(trigger=EVERY_SECOND)
    started = time.process_time()
    firing = plan(schedule, NOON + MONTH)
    assert time.process_time() - started < 0.05
    assert briefs(firing) == [(NOON + MONTH, None, 30 * 86400 - 1, at(seconds=1))]


@pytest.mark.parametrize("policy", ["fire_once", "fire_all", "skip"])
@pytest.mark.parametrize("expression", ["* * * * * *", "*/7 * 1-23 * * mon-fri"])
def test_a_month_of_cron_by_the_second_is_planned_in_milliseconds(policy: str, expression: str) -> None:
    trigger = {"kind": "cron", "expression": expression, "timezone": "America/New_York"}
    schedule = created(trigger=trigger, misfire={"policy": policy})
    plan(schedule, NOON + timedelta(hours=1))
    started = time.process_time()
    firing = plan(schedule, NOON + MONTH)
    assert time.process_time() - started < 0.1
    assert sum(1 + decision.missed_count for decision in firing.decisions) > 100_000


# --- several at once: fire_all -------------------------------------------------------------------------


def test_fire_all_fires_every_one_oldest_first() -> None:
    firing = plan(created(misfire={"policy": "fire_all"}), at(4, 20))
    assert briefs(firing) == [(at(n), None, 0, None) for n in (1, 2, 3, 4)]
    assert all(decision.is_catchup for decision in firing.decisions)
    assert firing.next == (at(5), at(5))


def test_fire_all_goes_in_paced_steps() -> None:
    now = at(25, 20)
    firing = plan(created(misfire={"policy": "fire_all"}), now)
    assert firing.fires == CATCHUP_PER_STEP == 10
    assert briefs(firing)[0][0] == at(1)
    assert firing.next == (at(11), now + PACE)
    decisions, steps = caught_up(created(misfire={"policy": "fire_all"}), now)
    assert steps == [10, 10, 5]
    assert [decision.fire_ts for decision in decisions] == [at(n) for n in range(1, 26)]


def test_fire_all_gives_up_all_but_the_latest_of_its_limit_in_one_row() -> None:
    schedule = created(trigger=EVERY_SECOND, misfire={"policy": "fire_all", "max_catchup": 7})
    firing = plan(schedule, at(seconds=1000))
    assert briefs(firing) == [
        (at(seconds=993), SkipReason.MISFIRE, 992, at(seconds=1)),
        *((at(seconds=n), None, 0, None) for n in range(994, 1001)),
    ]


def test_fire_all_gives_up_what_is_beyond_its_grace_in_the_same_row() -> None:
    misfire = {"policy": "fire_all", "max_catchup": 7, "grace_seconds": 3}
    firing = plan(created(trigger=EVERY_SECOND, misfire=misfire), at(seconds=1000))
    assert briefs(firing) == [
        (at(seconds=996), SkipReason.MISFIRE, 995, at(seconds=1)),
        *((at(seconds=n), None, 0, None) for n in range(997, 1001)),
    ]


def test_fire_all_with_nothing_within_its_grace_is_one_row() -> None:
    trigger = {"kind": "interval", "hours": 1}
    misfire = {"policy": "fire_all", "grace_seconds": 60}
    firing = plan(created(trigger=trigger, misfire=misfire), at(305))
    assert briefs(firing) == [(at(300), SkipReason.MISFIRE, 4, at(60))]


def test_fire_all_of_many_missed_comes_to_an_end() -> None:
    schedule = created(trigger=EVERY_SECOND, misfire={"policy": "fire_all"})
    decisions, steps = caught_up(schedule, at(seconds=5000))
    assert max(steps) == 10
    fired = [decision.fire_ts for decision in decisions if decision.reason is None]
    assert fired[:100] == [at(seconds=n) for n in range(4901, 5001)]
    assert decisions[0].missed_count == 4899


# --- several at once: skip -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trigger",
    [{"kind": "interval", "seconds": 1}, {"kind": "cron", "expression": "* * * * * *"}],
    ids=["interval", "cron"],
)
def test_a_step_of_fire_all_costs_the_same_however_many_times_it_catches_up(trigger: dict[str, Any]) -> None:
    policy = {"policy": "fire_all", "max_catchup": 10_000, "grace_seconds": 30 * 86400}
    schedule = created(trigger=trigger, misfire=policy)
    now = NOON + MONTH
    decisions: list[FireDecision] = []
    costs: list[int] = []
    for _ in range(1000):
        recurrence = CountedCalls(cadence_of(schedule).recurrence)
        cadence = cadence_of(schedule)._replace(recurrence=recurrence)
        firing = plan_firing(due_of(schedule), cadence, now)
        decisions += firing.decisions
        costs.append(recurrence.calls)
        schedule = advanced(schedule, firing)
    given_up, *caught_up = decisions
    assert given_up.reason is SkipReason.MISFIRE
    assert given_up.missed_count == MONTH.total_seconds() - 10_000 - 1
    assert [each.reason for each in caught_up] == [None] * 10_000
    assert caught_up[-1].fire_ts == now
    assert max(costs) < 150, "the first step looks for where to begin"
    assert max(costs[1:]) < 50


def test_skip_fires_only_what_is_under_ten_seconds_late_and_one_row_decides_the_rest() -> None:
    firing = plan(created(trigger=EVERY_SECOND, misfire={"policy": "skip"}), at(seconds=100))
    assert briefs(firing) == [
        (at(seconds=90), SkipReason.MISFIRE, 89, at(seconds=1)),
        *((at(seconds=n), None, 0, None) for n in range(91, 101)),
    ]


def test_skip_with_everything_too_late_is_one_row() -> None:
    firing = plan(created(misfire={"policy": "skip"}), at(9, 30))
    assert briefs(firing) == [(at(9), SkipReason.MISFIRE, 8, at(1))]


# --- window --------------------------------------------------------------------------------------------


def test_a_time_outside_the_window_is_skipped() -> None:
    firing = plan(created(window={"hours_of_day": [13]}), at(1))
    assert briefs(firing) == [(at(1), SkipReason.WINDOW, 0, None)]
    assert firing.next == (at(2), at(2))


def test_a_time_inside_the_window_fires() -> None:
    window = {"days_of_week": [1], "hours_of_day": [13], "timezone": "Europe/Berlin"}
    assert briefs(plan(created(window=window), at(1))) == [(at(1), None, 0, None)]
    window["days_of_week"] = [2]
    assert briefs(plan(created(window=window), at(1)))[0][1] is SkipReason.WINDOW


def test_the_window_is_asked_of_the_nominal_time() -> None:
    schedule = created(at(58), jitter_seconds=59, window={"hours_of_day": [12]})
    assert schedule.next_fire_ts == at(59)
    assert schedule.next_run_ts is not None
    assert briefs(plan(schedule, at(59, 59.9)))[0][1] is None


def test_fire_once_falls_back_to_the_latest_inside_the_window() -> None:
    trigger = {"kind": "cron", "expression": "*/20 * * * *"}
    firing = plan(created(trigger=trigger, window={"hours_of_day": [12]}), at(85))
    assert briefs(firing) == [
        (at(40), None, 1, at(20)),
        (at(80), SkipReason.WINDOW, 1, at(60)),
    ]
    assert firing.next == (at(100), at(100))


def test_fire_once_with_all_outside_the_window_is_one_row() -> None:
    firing = plan(created(window={"hours_of_day": [3]}), at(5))
    assert briefs(firing) == [(at(5), SkipReason.WINDOW, 4, at(1))]


def test_the_latest_inside_the_window_may_be_too_late() -> None:
    trigger = {"kind": "cron", "expression": "*/20 * * * *"}
    window = {"hours_of_day": [12]}
    firing = plan(created(trigger=trigger, window=window, misfire={"grace_seconds": 60}), at(85))
    assert briefs(firing) == [
        (at(40), SkipReason.MISFIRE, 1, at(20)),
        (at(80), SkipReason.WINDOW, 1, at(60)),
    ]


def test_fire_all_skips_each_time_outside_the_window_by_itself() -> None:
    trigger = {"kind": "cron", "expression": "*/20 * * * *"}
    firing = plan(
        created(trigger=trigger, window={"hours_of_day": [13]}, misfire={"policy": "fire_all"}), at(85)
    )
    assert [(row[0], row[1]) for row in briefs(firing)] == [
        (at(20), SkipReason.WINDOW),
        (at(40), SkipReason.WINDOW),
        (at(60), None),
        (at(80), None),
    ]


# --- jitter --------------------------------------------------------------------------------------------


def test_a_time_that_still_waits_for_its_jitter_is_not_decided_with_the_others() -> None:
    schedule = created(jitter_seconds=59)
    cadence = cadence_of(schedule)
    waits_until = run_ts_of(cadence, SCHEDULE_ID, at(3))
    assert waits_until > at(3, 1)
    firing = plan(schedule, waits_until - timedelta(seconds=1))
    assert briefs(firing) == [(at(2), None, 1, at(1))]
    assert firing.next == (at(3), waits_until)
    assert briefs(plan(schedule, waits_until)) == [(at(3), None, 2, at(1))]


def test_a_single_time_is_decided_while_the_next_waits_for_its_jitter() -> None:
    schedule = created(jitter_seconds=59)
    waits_until = run_ts_of(cadence_of(schedule), SCHEDULE_ID, at(2))
    firing = plan(schedule, waits_until - timedelta(microseconds=1))
    assert briefs(firing) == [(at(1), None, 0, None)]
    assert firing.next == (at(2), waits_until)


# --- the last ones -------------------------------------------------------------------------------------


def test_the_last_run_completes_the_schedule() -> None:
    schedule = created(max_runs=2)
    first = plan(schedule, at(1))
    assert (first.is_completed, first.next) == (False, (at(2), at(2)))
    last = plan(advanced(schedule, first), at(2))
    assert (last.is_completed, last.next, last.after_overlap) == (True, None, (at(3), at(3)))


def test_skipped_times_do_not_count_as_runs() -> None:
    firing = plan(created(max_runs=1, misfire={"policy": "skip"}), at(1, 30))
    assert (firing.is_completed, firing.next) == (False, (at(2), at(2)))


def test_fire_once_uses_one_run_for_all_it_decides() -> None:
    firing = plan(created(max_runs=3), at(10))
    assert (firing.is_completed, firing.fires) == (False, 1)


def test_fire_all_stops_at_the_last_run() -> None:
    firing = plan(created(max_runs=3, misfire={"policy": "fire_all"}), at(8))
    assert briefs(firing) == [(at(n), None, 0, None) for n in (1, 2, 3)]
    assert firing.is_completed


def test_a_schedule_is_completed_with_the_last_time_before_its_end() -> None:
    schedule = created(end_ts=at(2, 30))
    first = plan(schedule, at(1))
    assert first.next == (at(2), at(2))
    last = plan(advanced(schedule, first), at(2))
    assert (last.is_completed, last.next) == (True, None)


def test_times_after_the_end_are_not_among_the_missed() -> None:
    firing = plan(created(end_ts=at(3, 30)), at(10))
    assert briefs(firing) == [(at(3), None, 2, at(1))]
    assert firing.is_completed


def test_once_is_completed_when_it_is_decided() -> None:
    firing = plan(created(trigger={"kind": "once", "at": at(5)}), at(5))
    assert (briefs(firing), firing.is_completed, firing.next) == ([(at(5), None, 0, None)], True, None)
    late = plan(created(trigger={"kind": "once", "at": at(5)}), at(66))
    assert (briefs(late), late.is_completed) == ([(at(5), SkipReason.MISFIRE, 0, None)], True)


# --- delay ---------------------------------------------------------------------------------------------

DELAY: dict[str, Any] = {"kind": "delay", "seconds": 30}


def test_a_delay_that_fires_has_no_next_time_before_its_run_has_ended() -> None:
    firing = plan(created(trigger=DELAY), at(0, 45))
    assert briefs(firing) == [(at(0, 30), None, 0, None)]
    assert (firing.next, firing.is_completed, firing.is_delay) == (None, False, True)


def test_a_delay_that_is_skipped_counts_from_now() -> None:
    firing = plan(created(trigger=DELAY, misfire={"policy": "skip"}), at(0, 45))
    assert briefs(firing) == [(at(0, 30), SkipReason.MISFIRE, 0, None)]
    assert firing.next == (at(1, 15), at(1, 15))


def test_a_delay_misses_nothing_however_late_it_is() -> None:
    firing = plan(created(trigger=DELAY), at(50))
    assert briefs(firing) == [(at(0, 30), None, 0, None)]


def test_the_last_run_of_a_delay_completes_it() -> None:
    assert plan(created(trigger=DELAY, max_runs=1), at(0, 30)).is_completed


def test_the_next_time_of_a_delay_counts_from_the_end_of_its_run() -> None:
    cadence = cadence_of(created(trigger=DELAY, end_ts=at(10)))
    assert next_after_end(cadence, at(3)) == (at(3, 30), at(3, 30))
    assert next_after_end(cadence, at(9, 31)) is None


# --- what may not fire ---------------------------------------------------------------------------------


def test_one_row_decides_all_that_is_due_on_a_schedule_that_may_not_fire() -> None:
    schedule = created()
    decision = plan_skip(due_of(schedule), cadence_of(schedule), at(5, 1), SkipReason.PAUSED)
    assert decision == FireDecision(at(5), at(5), SkipReason.PAUSED, 4, at(1))


def test_a_time_that_waits_for_its_jitter_is_due_too_when_the_schedule_is_stopped() -> None:
    schedule = created(jitter_seconds=59)
    cadence = cadence_of(schedule)
    assert run_ts_of(cadence, SCHEDULE_ID, at(3)) > at(3, 1)
    decision = plan_skip(due_of(schedule), cadence, at(3, 1), SkipReason.PAUSED)
    assert (decision.fire_ts, decision.missed_count, decision.missed_from_ts) == (at(3), 2, at(1))


def test_planning_is_the_same_however_often_it_is_asked() -> None:
    schedule = created(jitter_seconds=10, misfire={"policy": "fire_all"})
    assert plan(schedule, at(30)) == plan(schedule, at(30))
    assert plan_firing(due_of(schedule), cadence_of(schedule), at(30)) == plan(schedule, at(30))


def test_a_clock_change_is_no_gap_in_the_ledger() -> None:
    now = datetime(2026, 3, 29, 6, tzinfo=UTC)
    trigger = {"kind": "cron", "expression": "30 * * * *", "timezone": "Europe/Berlin"}
    schedule = created(now - timedelta(hours=10), trigger=trigger, misfire={"grace_seconds": 86400})
    firing = plan(schedule, now)
    assert [decision.missed_count for decision in firing.decisions] == [9]

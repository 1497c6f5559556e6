"""What creating, editing, pausing, resuming and deleting do, and what becomes of times already due."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.unit.planning.schedules import (
    EVERY_MINUTE,
    NOON,
    SCHEDULE_ID,
    advanced,
    at,
    brief,
    cadence_of,
    created,
    plan,
    spec_of,
)

from foliot.model.errors import InvalidError
from foliot.model.execution import SkipReason
from foliot.model.ids import slot_of
from foliot.model.schedule import ChangeKind, Schedule, ScheduleState
from foliot.planning.change import Author, PlannedChange, delete, edit, pause, resume
from foliot.planning.next import run_ts_of

EVERY_FIVE = {"kind": "interval", "minutes": 5}
DELAY = {"kind": "delay", "seconds": 30}
BOB = Author("bob", "for the night")


def edited(schedule: Schedule, now: datetime, **fields: Any) -> PlannedChange:
    document = schedule.spec.model_dump() | fields
    change = edit(schedule, spec_of(**document), now=now, author=BOB)
    assert change is not None
    return change


def paused(schedule: Schedule, now: datetime, until_ts: datetime | None = None) -> PlannedChange:
    change = pause(schedule, now=now, author=BOB, until_ts=until_ts)
    assert change is not None
    return change


def resumed(schedule: Schedule, now: datetime) -> Schedule:
    change = resume(schedule, now=now, author=BOB)
    assert change is not None
    return change.schedule


# --- create --------------------------------------------------------------------------------------------


def test_a_new_schedule_is_active_and_knows_its_first_time_its_slot_and_its_author() -> None:
    schedule = created()
    assert (schedule.state, schedule.aggregate_version, schedule.run_count) == (ScheduleState.ACTIVE, 1, 0)
    assert (schedule.next_fire_ts, schedule.next_run_ts, schedule.effective_ts) == (at(1), at(1), NOON)
    assert schedule.slot == slot_of(SCHEDULE_ID)
    assert (schedule.created_by, schedule.created_ts, schedule.updated_by) == ("ann", NOON, "ann")
    assert not schedule.paused


# --- edit ----------------------------------------------------------------------------------------------


def test_an_edit_that_says_nothing_new_is_no_change() -> None:
    schedule = created()
    assert edit(schedule, schedule.spec, now=at(5), author=BOB) is None


def test_an_edit_makes_a_version_and_names_its_author() -> None:
    change = edited(created(), at(0, 30), description="another")
    schedule = change.schedule
    assert change.kind is ChangeKind.EDITED
    assert (schedule.aggregate_version, schedule.updated_by, schedule.updated_ts) == (2, "bob", at(0, 30))
    assert (schedule.created_by, schedule.created_ts) == ("ann", NOON)


@pytest.mark.parametrize(
    "fields",
    [
        {"description": "another"},
        {"target": {"kind": "function", "name": "other"}},
        {"misfire": {"policy": "skip"}},
        {"overlap": {"policy": "allow"}},
        {"priority": "high"},
        {"queue": "other"},
        {"window": {"hours_of_day": [1]}},
        {"end_ts": at(100)},
        {"max_runs": 5},
        {"labels": {"a": "b"}},
    ],
)
def test_edits_that_do_not_touch_the_timing_do_not_move_the_cadence(fields: dict[str, Any]) -> None:
    schedule = created()
    change = edited(schedule, at(0, 30), **fields)
    assert (change.schedule.next_fire_ts, change.schedule.effective_ts) == (at(1), NOON)
    assert change.decision is None
    later = advanced(change.schedule, plan(change.schedule, at(1)))
    assert later.next_fire_ts == at(2)


def test_a_changed_trigger_counts_from_after_now() -> None:
    change = edited(created(), at(0, 30), trigger=EVERY_FIVE)
    assert (change.schedule.next_fire_ts, change.schedule.effective_ts) == (at(5, 30), at(0, 30))
    assert change.decision is None
    cron = edited(created(), at(0, 30), trigger={"kind": "cron", "expression": "*/5 * * * *"})
    assert cron.schedule.next_fire_ts == at(5)


def test_a_changed_start_counts_from_after_now() -> None:
    change = edited(created(), at(0, 30), start_ts=at(0, 10))
    assert change.schedule.next_fire_ts == at(1, 10)
    assert edited(created(), at(0, 30), start_ts=at(9)).schedule.next_fire_ts == at(9)


def test_changed_jitter_moves_only_when_to_act() -> None:
    change = edited(created(), at(0, 30), jitter_seconds=50)
    assert change.schedule.next_fire_ts == at(1)
    assert change.schedule.next_run_ts == run_ts_of(cadence_of(change.schedule), SCHEDULE_ID, at(1)) > at(1)


def test_an_edit_of_a_due_schedule_keeps_the_time_for_the_new_version() -> None:
    change = edited(created(), at(3, 30), description="another")
    assert (change.schedule.next_fire_ts, change.schedule.aggregate_version) == (at(1), 2)
    assert change.decision is None
    assert brief(plan(change.schedule, at(3, 30)).decisions[0]) == (at(3), None, 2, at(1))


def test_a_retimed_schedule_fires_what_was_due_once_and_goes_on_after_now() -> None:
    change = edited(created(), at(1, 30), trigger=EVERY_FIVE)
    assert (change.schedule.next_fire_ts, change.schedule.next_run_ts) == (at(1), at(1))
    assert change.decision is None
    firing = plan(change.schedule, at(1, 31))
    assert [brief(decision) for decision in firing.decisions] == [(at(1), None, 0, None)]
    assert firing.next == (at(6, 30), at(6, 30))


@pytest.mark.parametrize("count", [2, 3, 7])
def test_of_several_due_times_of_a_trigger_that_is_no_more_the_latest_fires(count: int) -> None:
    change = edited(created(), at(count, 30), trigger=EVERY_FIVE)
    assert change.schedule.next_fire_ts == at(count)
    assert change.decision is not None
    first = at(1) if count > 2 else None
    assert brief(change.decision) == (at(count - 1), SkipReason.MISFIRE, count - 2, first)
    firing = plan(change.schedule, at(count, 30))
    assert [brief(decision) for decision in firing.decisions] == [(at(count), None, 0, None)]
    assert firing.next == (at(count + 5, 30), at(count + 5, 30))


def test_a_schedule_retimed_between_nominal_time_and_jitter_still_fires_that_time() -> None:
    schedule = created(jitter_seconds=59)
    assert schedule.next_run_ts is not None
    change = edited(schedule, at(1, 1), trigger=EVERY_FIVE)
    assert (change.schedule.next_fire_ts, change.schedule.next_run_ts) == (at(1), schedule.next_run_ts)


def test_nothing_fires_between_a_due_time_that_stands_and_a_new_start() -> None:
    trigger = {"kind": "cron", "expression": "* * * * *"}
    change = edited(created(), at(1, 30), trigger=trigger, start_ts=at(9, 30))
    firing = plan(change.schedule, at(1, 31))
    assert [brief(decision) for decision in firing.decisions] == [(at(1), None, 0, None)]
    assert firing.next == (at(10), at(10))


def test_a_due_time_stands_when_the_trigger_was_changed_twice() -> None:
    once = edited(created(), at(1, 30), trigger=EVERY_FIVE).schedule
    twice = edited(once, at(1, 40), trigger={"kind": "interval", "minutes": 7})
    assert (twice.schedule.next_fire_ts, twice.decision) == (at(1), None)
    assert plan(twice.schedule, at(1, 41)).next == (at(8, 40), at(8, 40))


def test_due_times_that_a_new_end_would_cut_off_are_still_decided() -> None:
    change = edited(created(), at(5, 30), end_ts=at(2, 30))
    decided = [] if change.decision is None else [change.decision]
    decided += plan(change.schedule, at(5, 30)).decisions
    assert sum(1 + decision.missed_count for decision in decided) == 5
    assert decided[-1].fire_ts == at(5)
    assert plan(change.schedule, at(5, 30)).is_completed


def test_an_end_that_has_come_completes_the_schedule() -> None:
    change = edited(created(), at(0, 30), end_ts=at(0, 45))
    assert (change.schedule.state, change.schedule.next_fire_ts) == (ScheduleState.COMPLETED, None)


def test_a_later_end_revives_a_completed_schedule_after_now() -> None:
    ended = edited(created(), at(0, 30), end_ts=at(0, 45)).schedule
    change = edited(ended, at(7, 10), end_ts=at(90))
    assert (change.schedule.state, change.schedule.next_fire_ts) == (ScheduleState.ACTIVE, at(8))


def test_fewer_runs_than_there_were_complete_the_schedule_and_more_revive_it() -> None:
    schedule = replace(created(), run_count=5)
    done = edited(schedule, at(0, 30), max_runs=5).schedule
    assert (done.state, done.next_fire_ts) == (ScheduleState.COMPLETED, None)
    assert edited(done, at(3, 30), description="another").schedule.state is ScheduleState.COMPLETED
    more = edited(done, at(3, 30), max_runs=6).schedule
    assert (more.state, more.next_fire_ts) == (ScheduleState.ACTIVE, at(4))


def test_an_edit_mends_a_schedule_in_error() -> None:
    broken = replace(
        created(), state=ScheduleState.ERROR, state_reason="?", next_fire_ts=None, next_run_ts=None
    )
    mended = edited(broken, at(7, 10), description="another").schedule
    assert (mended.state, mended.state_reason, mended.next_fire_ts) == (ScheduleState.ACTIVE, None, at(8))


def parked() -> Schedule:
    """As a leader leaves it that can't plan it: its due time is undecided, and tried again later."""
    due = created()
    assert due.next_fire_ts is not None
    retry_ts = due.next_fire_ts + timedelta(minutes=5)
    return replace(due, state=ScheduleState.ERROR, state_reason="?", next_run_ts=retry_ts)


def test_saving_a_parked_schedule_again_without_a_change_brings_it_back_at_once() -> None:
    broken = parked()
    assert broken.next_fire_ts is not None
    now = broken.next_fire_ts + timedelta(minutes=1)
    change = edit(broken, broken.spec, now=now, author=BOB)
    assert change is not None
    saved = change.schedule
    assert (saved.state, saved.state_reason, saved.next_fire_ts) == (
        ScheduleState.ACTIVE,
        None,
        broken.next_fire_ts,
    )
    assert saved.next_run_ts == now
    assert change.decision is None
    assert edit(saved, saved.spec, now=now, author=BOB) is None


def test_a_pause_and_its_end_bring_a_parked_schedule_back() -> None:
    broken = parked()
    assert broken.next_fire_ts is not None
    change = pause(broken, now=broken.next_fire_ts, author=BOB)
    assert change is not None
    assert change.decision is not None
    assert (change.decision.fire_ts, change.decision.reason) == (broken.next_fire_ts, SkipReason.PAUSED)
    paused = change.schedule
    assert (paused.state, paused.state_reason, paused.next_run_ts) == (ScheduleState.PAUSED, None, None)
    resumed = resume(paused, now=broken.next_fire_ts, author=BOB)
    assert resumed is not None
    assert resumed.schedule.state is ScheduleState.ACTIVE
    assert resumed.schedule.next_run_ts is not None


def test_an_edit_to_something_that_never_fires_is_refused() -> None:
    with pytest.raises(InvalidError):
        edited(created(), at(0, 30), trigger={"kind": "once", "at": at(-120)})


# --- active and inactive -------------------------------------------------------------------------------


def test_deactivating_stops_the_schedule_and_decides_what_is_due() -> None:
    change = edited(created(), at(3, 30), active=False)
    schedule = change.schedule
    assert (schedule.state, schedule.next_fire_ts, schedule.next_run_ts) == (
        ScheduleState.INACTIVE,
        None,
        None,
    )
    assert change.decision is not None
    assert brief(change.decision) == (at(3), SkipReason.INACTIVE, 2, at(1))


def test_deactivating_and_retiming_at_once_decides_by_the_old_trigger() -> None:
    change = edited(created(), at(3, 30), active=False, trigger=EVERY_FIVE)
    assert change.decision is not None
    assert brief(change.decision) == (at(3), SkipReason.INACTIVE, 2, at(1))


def test_deactivating_what_is_not_due_writes_nothing() -> None:
    assert edited(created(), at(0, 59), active=False).decision is None


def test_reactivating_goes_on_after_now_on_the_same_grid() -> None:
    resting = edited(created(), at(0, 30), active=False).schedule
    change = edited(resting, at(7, 10), active=True)
    assert (change.schedule.state, change.schedule.next_fire_ts) == (ScheduleState.ACTIVE, at(8))
    assert change.decision is None


def test_a_delay_that_is_reactivated_counts_from_now() -> None:
    resting = edited(created(trigger=DELAY), at(0, 10), active=False).schedule
    assert edited(resting, at(7), active=True).schedule.next_fire_ts == at(7, 30)


def test_an_edit_does_not_start_a_delay_whose_run_is_under_way() -> None:
    schedule = created(trigger=DELAY)
    running = advanced(schedule, plan(schedule, at(0, 30)))
    change = edited(running, at(0, 40), description="another")
    assert (change.schedule.state, change.schedule.next_fire_ts) == (ScheduleState.ACTIVE, None)


# --- pause and resume ----------------------------------------------------------------------------------


def test_a_pause_holds_the_schedule_and_says_why() -> None:
    change = paused(created(), at(0, 30))
    schedule = change.schedule
    assert change.kind is ChangeKind.PAUSED
    assert (schedule.state, schedule.paused, schedule.pause_reason) == (
        ScheduleState.PAUSED,
        True,
        "for the night",
    )
    assert (schedule.next_fire_ts, schedule.next_run_ts, change.decision) == (None, None, None)


def test_times_already_due_become_one_row_that_says_paused() -> None:
    change = paused(created(), at(4, 10))
    assert change.decision is not None
    assert brief(change.decision) == (at(4), SkipReason.PAUSED, 3, at(1))


def test_a_pause_between_nominal_time_and_jitter_decides_that_time() -> None:
    change = paused(created(jitter_seconds=59), at(1, 1))
    assert change.decision is not None
    assert brief(change.decision) == (at(1), SkipReason.PAUSED, 0, None)


def test_pausing_again_the_same_way_is_no_change_and_another_way_is() -> None:
    schedule = paused(created(), at(0, 30)).schedule
    assert pause(schedule, now=at(1), author=BOB) is None
    change = pause(schedule, now=at(1), author=BOB, until_ts=at(9))
    assert change is not None
    assert (change.schedule.paused_until_ts, change.decision) == (at(9), None)


def test_a_pause_with_an_end_goes_on_with_the_first_time_at_or_after_it() -> None:
    schedule = paused(created(), at(0, 30), until_ts=at(5)).schedule
    assert (schedule.next_fire_ts, schedule.next_run_ts) == (at(5), at(5))
    assert paused(created(), at(0, 30), until_ts=at(5, 1)).schedule.next_fire_ts == at(6)


def test_a_pause_never_goes_on_with_a_time_that_it_has_just_decided() -> None:
    change = paused(created(), at(4, 10), until_ts=at(2))
    assert change.decision is not None
    assert change.decision.fire_ts == at(4)
    assert change.schedule.next_fire_ts == at(5)


def test_a_pause_that_ends_before_the_start_waits_for_the_start() -> None:
    schedule = created(trigger={"kind": "cron", "expression": "* * * * *"}, start_ts=at(9, 30))
    assert paused(schedule, at(0, 30), until_ts=at(2)).schedule.next_fire_ts == at(10)


def test_a_delay_is_not_paused_past_its_end() -> None:
    schedule = paused(created(trigger=DELAY, end_ts=at(3)), at(0, 10), until_ts=at(5)).schedule
    assert (schedule.next_fire_ts, schedule.next_run_ts) == (None, None)
    still = paused(created(trigger=DELAY, end_ts=at(6)), at(0, 10), until_ts=at(5)).schedule
    assert still.next_fire_ts == at(5)


def test_resuming_goes_on_with_the_first_time_after_now_on_the_same_grid() -> None:
    schedule = paused(created(), at(0, 30)).schedule
    back = resumed(schedule, at(9, 59))
    assert (back.state, back.paused, back.pause_reason, back.paused_until_ts) == (
        ScheduleState.ACTIVE,
        False,
        None,
        None,
    )
    assert (back.next_fire_ts, back.effective_ts) == (at(10), NOON)
    assert resumed(schedule, at(10)).next_fire_ts == at(11), "now itself belongs to the pause"


def test_resuming_what_is_not_paused_is_no_change() -> None:
    assert resume(created(), now=at(5), author=BOB) is None


def test_resuming_before_the_pause_would_have_ended_goes_on_at_once() -> None:
    schedule = paused(created(), at(0, 30), until_ts=at(50)).schedule
    assert resumed(schedule, at(9, 59)).next_fire_ts == at(10)


def test_resuming_after_the_pause_has_ended_keeps_what_is_due_since() -> None:
    schedule = paused(created(), at(0, 30), until_ts=at(5)).schedule
    back = resumed(schedule, at(7, 30))
    assert (back.state, back.next_fire_ts, back.paused) == (ScheduleState.ACTIVE, at(5), False)
    assert brief(plan(back, at(7, 30)).decisions[0]) == (at(7), None, 2, at(5))


def test_a_pause_after_one_that_has_ended_decides_what_came_due_between() -> None:
    schedule = paused(created(), at(0, 30), until_ts=at(5)).schedule
    change = paused(schedule, at(7, 30))
    assert change.decision is not None
    assert brief(change.decision) == (at(7), SkipReason.PAUSED, 2, at(5))


def test_an_edit_after_a_pause_that_has_ended_finds_the_schedule_active() -> None:
    schedule = paused(created(), at(0, 30), until_ts=at(5)).schedule
    change = edited(schedule, at(7, 30), description="another")
    assert (change.schedule.state, change.schedule.paused) == (ScheduleState.ACTIVE, False)
    assert (change.schedule.next_fire_ts, change.decision) == (at(5), None)


def test_a_completed_schedule_stays_so_through_pause_and_resume() -> None:
    done = replace(created(), state=ScheduleState.COMPLETED, next_fire_ts=None, next_run_ts=None)
    held = paused(done, at(3), until_ts=at(9)).schedule
    assert (held.state, held.next_fire_ts, held.paused) == (ScheduleState.COMPLETED, None, True)
    assert resumed(held, at(4)).state is ScheduleState.COMPLETED


def test_an_inactive_schedule_stays_so_through_pause_and_resume() -> None:
    resting = edited(created(), at(0, 30), active=False).schedule
    held = paused(resting, at(1)).schedule
    assert (held.state, held.paused) == (ScheduleState.INACTIVE, True)
    assert resumed(held, at(2)).state is ScheduleState.INACTIVE


# --- a pause belongs to the operator -------------------------------------------------------------------


def test_declaring_never_lifts_a_pause() -> None:
    schedule = paused(created(), at(0, 30)).schedule
    for fields in ({"description": "another"}, {"trigger": EVERY_FIVE}, {"max_runs": 9}):
        change = edited(schedule, at(5), **fields)
        declared = change.schedule
        assert (declared.state, declared.paused, declared.pause_reason) == (
            ScheduleState.PAUSED,
            True,
            "for the night",
        )
        assert (declared.next_fire_ts, declared.next_run_ts, change.decision) == (None, None, None)


def test_an_edit_of_a_paused_schedule_keeps_its_end() -> None:
    schedule = paused(created(), at(0, 30), until_ts=at(20)).schedule
    assert edited(schedule, at(5), description="another").schedule.next_fire_ts == at(20)
    retimed = edited(schedule, at(5), trigger=EVERY_FIVE).schedule
    assert (retimed.next_fire_ts, retimed.paused_until_ts) == (at(20), at(20))


def test_an_edit_of_a_paused_schedule_does_not_go_beyond_its_runs() -> None:
    schedule = replace(paused(created(), at(0, 30), until_ts=at(20)).schedule, run_count=3)
    change = edited(schedule, at(5), max_runs=3)
    assert (change.schedule.next_fire_ts, change.schedule.next_run_ts) == (None, None)
    assert resumed(change.schedule, at(6)).state is ScheduleState.COMPLETED


def test_a_pause_outlives_being_inactive() -> None:
    schedule = paused(created(), at(0, 30)).schedule
    resting = edited(schedule, at(1), active=False).schedule
    assert (resting.state, resting.paused) == (ScheduleState.INACTIVE, True)
    back = edited(resting, at(2), active=True).schedule
    assert (back.state, back.paused, back.next_fire_ts) == (ScheduleState.PAUSED, True, None)


# --- delete --------------------------------------------------------------------------------------------


def test_deleting_is_soft_and_ends_every_time_to_come() -> None:
    change = delete(created(), now=at(0, 30), author=BOB)
    schedule = change.schedule
    assert (change.kind, change.decision) == (ChangeKind.DELETED, None)
    assert (schedule.deleted_ts, schedule.next_fire_ts, schedule.next_run_ts) == (at(0, 30), None, None)
    assert (schedule.aggregate_version, schedule.updated_by) == (2, "bob")


def test_deleting_decides_what_is_due() -> None:
    change = delete(created(), now=at(3, 30), author=BOB)
    assert change.decision is not None
    assert brief(change.decision) == (at(3), SkipReason.DELETED, 2, at(1))


def test_a_time_from_before_the_last_of_several_is_counted_by_the_trigger_it_came_from() -> None:
    schedule = created(trigger=EVERY_MINUTE, start_ts=NOON - timedelta(seconds=20))
    change = delete(schedule, now=at(3, 30), author=BOB)
    assert change.decision is not None
    assert brief(change.decision) == (at(2, 40), SkipReason.DELETED, 2, at(0, 40))

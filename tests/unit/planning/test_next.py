"""Which time is next, and when to act on it."""

from datetime import timedelta
from uuid import UUID

import pytest
from tests.unit.planning.schedules import EVERY_SECOND, SCHEDULE_ID, at, cadence_of, created

from foliot.model.ids import new_id
from foliot.planning.next import next_after, nominal_after, run_ts_of

OTHER_ID = UUID("01900000-0000-7000-8000-0000000000bb")


def test_without_jitter_one_acts_at_the_nominal_time() -> None:
    assert next_after(cadence_of(created()), SCHEDULE_ID, at(3)) == (at(4), at(4))


def test_the_trigger_yields_nothing_before_it_took_effect() -> None:
    cadence = cadence_of(created(start_ts=at(-60)))
    assert nominal_after(cadence, at(-30)) == at(1)


def test_nothing_comes_after_the_end() -> None:
    cadence = cadence_of(created(end_ts=at(2, 30)))
    assert nominal_after(cadence, at(1)) == at(2)
    assert nominal_after(cadence, at(2)) is None


def test_jitter_is_the_same_on_every_node_and_differs_between_schedules_and_times() -> None:
    cadence = cadence_of(created(jitter_seconds=50))
    assert run_ts_of(cadence, SCHEDULE_ID, at(1)) == run_ts_of(cadence, SCHEDULE_ID, at(1))
    offsets = {run_ts_of(cadence, SCHEDULE_ID, at(n)) - at(n) for n in range(1, 20)}
    assert len(offsets) == 19
    assert run_ts_of(cadence, OTHER_ID, at(1)) != run_ts_of(cadence, SCHEDULE_ID, at(1))


@pytest.mark.parametrize("jitter_s", [1, 30, 60, 61, 3600, 86400])
def test_jitter_never_reaches_the_next_nominal_time(jitter_s: float) -> None:
    cadence = cadence_of(created(jitter_seconds=jitter_s))
    for schedule_id in [new_id() for _ in range(200)]:
        delay = run_ts_of(cadence, schedule_id, at(1)) - at(1)
        assert timedelta() <= delay < timedelta(seconds=min(jitter_s, 60))


def test_jitter_spreads_over_the_whole_of_what_it_may_take() -> None:
    cadence = cadence_of(created(jitter_seconds=60))
    delays = [(run_ts_of(cadence, new_id(), at(1)) - at(1)).total_seconds() for _ in range(400)]
    assert min(delays) < 6
    assert max(delays) > 54
    assert 25 < sum(delays) / len(delays) < 35


def test_jitter_of_a_schedule_by_the_second_stays_within_the_second() -> None:
    cadence = cadence_of(created(trigger=EVERY_SECOND, jitter_seconds=300))
    for n in range(1, 100):
        run_ts = run_ts_of(cadence, SCHEDULE_ID, at(seconds=n))
        assert at(seconds=n) <= run_ts < at(seconds=n + 1)


def test_the_last_time_has_its_whole_jitter() -> None:
    cadence = cadence_of(created(trigger={"kind": "once", "at": at(1)}, jitter_seconds=3600))
    delays = [run_ts_of(cadence, new_id(), at(1)) - at(1) for _ in range(100)]
    assert max(delays) > timedelta(minutes=30)

"""What a schedule takes from its task function where its author left it out."""

from typing import Any

import pytest

from foliot.model.errors import InvalidError
from foliot.model.policy import RetryPolicy
from foliot.model.schedule import ScheduleSpec
from foliot.planning.task_defaults import TaskDefaults, fill_in

OF_TASK = TaskDefaults("reports", 600.0, RetryPolicy(max_attempts=6))


def spec(**fields: Any) -> ScheduleSpec:
    target = {"kind": "function", "name": "send"}
    return ScheduleSpec.parse(
        {"name": "a", "trigger": {"kind": "interval", "hours": 1}, "target": target, **fields}
    )


def test_what_is_left_out_comes_from_the_task() -> None:
    filled = fill_in(spec(), OF_TASK)
    assert (filled.queue, filled.timeout_seconds, filled.retry.max_attempts) == ("reports", 600, 6)


def test_what_is_given_stays_even_if_it_is_the_usual_default() -> None:
    given = spec(queue="default", timeout_seconds=300, retry=RetryPolicy().model_dump())
    assert fill_in(given, OF_TASK) == given


def test_of_a_retry_that_is_given_in_part_the_rest_comes_from_the_task() -> None:
    retry = fill_in(spec(retry={"initial_delay_seconds": 5}), OF_TASK).retry
    assert (retry.max_attempts, retry.initial_delay_seconds) == (6, 5)


def test_without_a_task_and_where_it_says_nothing_the_usual_defaults_hold() -> None:
    assert fill_in(spec(), None) == spec()
    assert fill_in(spec(), TaskDefaults()) == spec()


def test_filling_in_twice_changes_nothing_more() -> None:
    once = fill_in(spec(retry={"multiplier": 3}), OF_TASK)
    assert fill_in(once, TaskDefaults("others", 1.0, RetryPolicy(max_attempts=1))) == once


@pytest.mark.parametrize(
    ("defaults", "pointer"),
    [(TaskDefaults(queue="two words"), "/queue"), (TaskDefaults(timeout_seconds=1e9), "/timeout_seconds")],
)
def test_what_a_task_says_wrongly_is_refused_by_the_name_of_the_field(
    defaults: TaskDefaults, pointer: str
) -> None:
    with pytest.raises(InvalidError) as refused:
        fill_in(spec(), defaults)
    assert [problem.pointer for problem in refused.value.problems] == [pointer]

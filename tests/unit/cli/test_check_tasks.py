"""What `foliot doctor` says of task functions that nobody can run."""

from foliot.cli.process.checks import Level, check_tasks
from foliot.queries.unknown_tasks import UnknownTask


def test_tasks_that_no_live_worker_knows_are_named_with_a_schedule_and_what_to_do() -> None:
    finding = check_tasks([UnknownTask("a.task", 3, "nightly"), UnknownTask("b.task", 1, "hourly")])
    assert finding.level is Level.WARN
    assert finding.detail == "no live worker knows a.task (nightly), b.task (hourly)"
    assert "--tasks" in finding.advice


def test_all_is_well_where_every_task_is_known() -> None:
    assert check_tasks([]).level is Level.OK

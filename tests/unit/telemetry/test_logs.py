"""Every event is told in the log, once, at a level that suits it, and telling it never hurts the core."""

import io
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
import structlog
from tests.logging_state import logging_as_it_was

from foliot.kinds.task_logs import capturing
from foliot.model import delivery_events, event, instance_events
from foliot.model.event import (
    BackfillAdvanced,
    BatchFired,
    CancelledExecution,
    ClaimedExecution,
    DomainEvent,
    ExecutionRetried,
    ExecutionsCancelled,
    ExecutionsClaimed,
    ExecutionsRescued,
    ExecutionsSettled,
    ExecutionTriggered,
    FiredExecution,
    LostAttempt,
    ScheduleChanged,
    ScheduleParked,
    SettledExecution,
    SkippedExecution,
    TickCompleted,
)
from foliot.model.execution import TRANSITIONS, SkipReason, Status, TriggeredBy
from foliot.model.incident import FAILING
from foliot.model.instance_events import (
    ClockObserved,
    InstanceStarted,
    LeaderElected,
    LeaseAttempted,
    LeaseLost,
    LeaseReleased,
    RequestFailed,
    ServiceFailed,
    WriteFenced,
)
from foliot.model.policy import Priority
from foliot.model.schedule import ChangeKind
from foliot.model.trace import trace_id_text
from foliot.telemetry import logs
from foliot.telemetry.rendering import LONGEST_TEXT, Format, LevelName

SCHEDULE = UUID("01890000-0000-7000-8000-00000000000a")
FIRE_TS = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

EVENTS = [
    kind
    for module in (event, instance_events, delivery_events)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, DomainEvent) and kind is not DomainEvent
]


def execution_id(number: int) -> UUID:
    return UUID(int=number)


def fired(number: int, lateness_s: float = 0.25, missed_count: int = 0) -> FiredExecution:
    return FiredExecution(execution_id(number), SCHEDULE, FIRE_TS, lateness_s, missed_count)


def batch(fires: int, skips: int = 0, refused: int = 0) -> BatchFired:
    skipped = [
        SkippedExecution(execution_id(1000 + number), SCHEDULE, FIRE_TS, SkipReason.OVERLAP, 0)
        for number in range(skips)
    ]
    return BatchFired(
        0, 7, "node-1", [fired(number, number / 10) for number in range(fires)], skipped, refused, 0.02
    )


def settled(number: int, status: Status, error: str | None = None) -> SettledExecution:
    return SettledExecution(execution_id(number), SCHEDULE, 2, status, 1.5, error)


class Log:
    """The log of one instance, read back from what it wrote to stderr."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, log_format: Format, level: LevelName) -> None:
        self.stderr = io.StringIO()
        monkeypatch.setattr(sys, "stderr", self.stderr)
        logs.configure(log_format, level)
        self.observer = logs.LogObserver("node-1")

    def told(self, *told: DomainEvent) -> list[dict[str, Any]]:
        for each in told:
            self.observer.notify(each)
        return self.lines()

    def lines(self) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.text().splitlines()]
        for line in lines:
            assert datetime.fromisoformat(line.pop("timestamp")).tzinfo is not None
        return lines

    def text(self) -> str:
        text = self.stderr.getvalue()
        self.stderr.seek(0)
        self.stderr.truncate()
        return text


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    with logging_as_it_was():
        yield


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    return Log(monkeypatch, "json", "info")


@pytest.fixture
def debug_log(monkeypatch: pytest.MonkeyPatch) -> Log:
    return Log(monkeypatch, "json", "debug")


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> Log:
    return Log(monkeypatch, "console", "info")


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_every_event_has_a_line(debug_log: Log, kind: type[DomainEvent]) -> None:
    assert debug_log.observer.handles(kind)


def test_a_fired_execution_is_told_with_its_ids_its_time_and_its_lateness(log: Log) -> None:
    named = fired(1)._replace(schedule_name="report")
    [line] = log.told(BatchFired(0, 7, "node-1", [named], [], 0, 0.02))
    assert line == {
        "event": "execution_triggered",
        "level": "info",
        "execution_id": str(execution_id(1)),
        "schedule_id": str(SCHEDULE),
        "schedule_name": "report",
        "fire_time": "2026-03-29T01:00:00+00:00",
        "lateness_seconds": 0.25,
        "instance_id": "node-1",
        "trace_id": trace_id_text(execution_id(1)),
    }


@pytest.mark.parametrize("by", ["ada", None])
def test_a_run_by_hand_is_told_like_any_other_and_by_whom_it_was_asked_for(log: Log, by: str | None) -> None:
    [line] = log.told(
        ExecutionTriggered(
            execution_id(1), SCHEDULE, "report", 3, FIRE_TS, "default", TriggeredBy.MANUAL, by, TRACEPARENT
        )
    )
    assert line == {
        "event": "execution_triggered",
        "level": "info",
        "execution_id": str(execution_id(1)),
        "schedule_id": str(SCHEDULE),
        "schedule_name": "report",
        "fire_time": "2026-03-29T01:00:00+00:00",
        "triggered_by": "manual",
        "instance_id": "node-1",
        "trace_id": TRACEPARENT.split("-")[1],
        **({} if by is None else {"by": by}),
    }


def test_executions_of_a_backfill_are_told_one_by_one_or_summed_up(log: Log) -> None:
    [line] = log.told(BackfillAdvanced(SCHEDULE, "node-1", [fired(1)]))
    assert (line["event"], line["triggered_by"]) == ("execution_triggered", "backfill")
    assert line["backfill_id"] == str(SCHEDULE)
    [line] = log.told(BackfillAdvanced(SCHEDULE, "node-1", [fired(number) for number in range(21)]))
    assert (line["event"], line["count"]) == ("backfill_advanced", 21)


def test_a_fired_execution_that_stands_for_missed_times_says_how_many(log: Log) -> None:
    [line] = log.told(BatchFired(0, 7, "node-1", [fired(1, missed_count=3)], [], 0, 0.02))
    assert line["missed_count"] == 3


def test_a_skipped_execution_is_told_with_its_reason(log: Log) -> None:
    [line] = log.told(batch(0, skips=1))
    assert (line["event"], line["level"], line["reason"]) == ("execution_skipped", "info", "overlap")
    assert line["execution_id"] == str(execution_id(1000))


def test_twenty_executions_are_told_one_by_one(log: Log) -> None:
    lines = log.told(batch(15, skips=5))
    assert [line["event"] for line in lines] == ["execution_triggered"] * 15 + ["execution_skipped"] * 5


def test_more_than_twenty_are_summed_up_in_one_line(log: Log) -> None:
    [line] = log.told(batch(19, skips=2, refused=4))
    assert line["event"] == "batch_fired"
    assert line["level"] == "info"
    assert (line["count"], line["max_lateness_seconds"]) == (19, 1.8)
    assert (line["skipped"], line["refused"]) == ({"overlap": 2}, 4)


def test_a_large_batch_is_told_one_by_one_at_debug(debug_log: Log) -> None:
    lines = debug_log.told(batch(21))
    assert [(line["event"], line["level"]) for line in lines] == [
        ("batch_fired", "info"),
        *[("execution_triggered", "debug")] * 21,
    ]


def test_a_failed_execution_is_told_with_its_attempt_and_error(log: Log) -> None:
    [line] = log.told(ExecutionsSettled("worker-1", [settled(1, Status.FAILED, "ValueError: no")], []))
    assert line["event"] == "execution_failed"
    assert line["level"] == "error"
    assert (line["execution_id"], line["attempt"]) == (str(execution_id(1)), 2)
    assert (line["error"], line["worker_id"]) == ("ValueError: no", "worker-1")
    assert line["trace_id"] == trace_id_text(execution_id(1))
    assert "agent_url" not in line


def test_a_failed_execution_says_which_agent_was_asked_and_whose_trace_it_continues(log: Log) -> None:
    failed = settled(1, Status.FAILED, "no answer")._replace(
        schedule_name="report", agent_url="https://agent.example/run", trace_context=TRACEPARENT
    )
    [line] = log.told(ExecutionsSettled("worker-1", [failed], []))
    assert (line["agent_url"], line["schedule_name"]) == ("https://agent.example/run", "report")
    assert line["trace_id"] == TRACEPARENT.split("-")[1]


@pytest.mark.parametrize("status", sorted(TRANSITIONS[Status.RUNNING] - {Status.SUCCESS}))
def test_whatever_else_an_attempt_ends_in_is_told(log: Log, status: Status) -> None:
    [line] = log.told(ExecutionsSettled("worker-1", [settled(1, status)], []))
    assert line["level"] == ("error" if status in FAILING else "info")
    assert line["event"].startswith("execution_")


def test_success_and_claims_are_told_at_debug_only(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    success = ExecutionsSettled("worker-1", [settled(1, Status.SUCCESS)], [])
    claim = ExecutionsClaimed(
        "worker-1", [ClaimedExecution(execution_id(1), SCHEDULE, 1, "default", Priority.HIGH, 0.01)]
    )
    assert log.told(success, claim) == []
    lines = Log(monkeypatch, "json", "debug").told(success, claim)
    assert {(line["event"], line["level"]) for line in lines} == {
        ("executions_settled", "debug"),
        ("execution_succeeded", "debug"),
        ("execution_claimed", "debug"),
    }


def test_many_failures_at_once_are_summed_up_by_status(log: Log) -> None:
    failures = [settled(number, Status.FAILED) for number in range(21)]
    [line] = log.told(ExecutionsSettled("worker-1", [*failures, settled(99, Status.SUCCESS)], []))
    assert line["event"] == "executions_settled"
    assert (line["count"], line["failed"], line["success"]) == (22, 21, 1)


def test_a_few_failures_among_many_successes_are_told_one_by_one(log: Log) -> None:
    successes = [settled(number, Status.SUCCESS) for number in range(100)]
    lines = log.told(ExecutionsSettled("worker-1", [*successes, settled(500, Status.TIMEOUT)], []))
    assert [line["event"] for line in lines] == ["execution_timed_out"]


def test_settles_that_came_too_late_are_a_warning(log: Log) -> None:
    [line] = log.told(ExecutionsSettled("worker-1", [], [execution_id(number) for number in range(30)]))
    assert (line["event"], line["level"], line["count"]) == ("settles_refused", "warning", 30)
    assert line["execution_ids"] == [str(execution_id(number)) for number in range(20)]


def test_rescued_executions_are_a_warning_each_and_one_when_they_are_many(log: Log) -> None:
    lost = LostAttempt(
        execution_id(1), SCHEDULE, "report", 2, Status.RETRYING, "gone", "worker-1", "default", FIRE_TS, None
    )
    [line] = log.told(ExecutionsRescued(0, {execution_id(1): Status.RETRYING}, [lost]))
    assert (line["event"], line["level"], line["status"]) == ("execution_rescued", "warning", "retrying")
    assert (line["schedule_name"], line["attempt"], line["worker_id"]) == ("report", 2, "worker-1")
    assert (line["error"], line["trace_id"]) == ("gone", trace_id_text(execution_id(1)))
    many = {execution_id(number): Status.UNKNOWN for number in range(21)}
    [line] = log.told(ExecutionsRescued(0, many))
    assert (line["event"], line["level"], line["unknown"]) == ("executions_rescued", "warning", 21)


def test_an_execution_that_was_cancelled_while_it_waited_is_told_with_its_reason(log: Log) -> None:
    waited = CancelledExecution(execution_id(1), SCHEDULE, 0, "cancelled by ada", FIRE_TS, "report")
    [line] = log.told(ExecutionsCancelled([waited]))
    assert line == {
        "event": "execution_cancelled",
        "level": "info",
        "instance_id": "node-1",
        "execution_id": str(execution_id(1)),
        "schedule_id": str(SCHEDULE),
        "schedule_name": "report",
        "attempt": 0,
        "reason": "cancelled by ada",
        "trace_id": trace_id_text(execution_id(1)),
    }
    taken_over = waited._replace(worker_id="worker-1", started_ts=FIRE_TS - timedelta(seconds=3))
    [line] = log.told(ExecutionsCancelled([taken_over]))
    assert (line["worker_id"], line["duration_seconds"]) == ("worker-1", 3.0)


def test_many_that_are_cancelled_at_once_are_summed_up(log: Log) -> None:
    many = [CancelledExecution(execution_id(number), SCHEDULE, 0, "deleted", FIRE_TS) for number in range(21)]
    [line] = log.told(ExecutionsCancelled(many))
    assert (line["event"], line["count"], line["reason"]) == ("executions_cancelled", 21, "deleted")


def test_a_try_by_hand_is_told_and_by_whom(log: Log) -> None:
    [line] = log.told(ExecutionRetried(execution_id(1), SCHEDULE, "report", 3, "ada", TRACEPARENT))
    assert (line["event"], line["level"], line["by"], line["attempt"]) == (
        "execution_retried",
        "info",
        "ada",
        3,
    )
    assert line["trace_id"] == trace_id_text(execution_id(1), TRACEPARENT)


def test_a_due_time_that_a_change_holds_back_has_a_line_of_its_own(log: Log) -> None:
    skipped = SkippedExecution(execution_id(1), SCHEDULE, FIRE_TS, SkipReason.PAUSED, 2, "report")
    changed = ScheduleChanged(SCHEDULE, "report", ChangeKind.PAUSED, 4, "ada", skipped=skipped)
    _, line = log.told(changed)
    assert (line["event"], line["reason"], line["missed_count"]) == ("execution_skipped", "paused", 2)
    assert (line["execution_id"], line["schedule_name"]) == (str(execution_id(1)), "report")


def test_leading_is_told_from_election_to_loss(log: Log) -> None:
    lines = log.told(
        LeaderElected(3, 7, "node-1"),
        WriteFenced(3, 7),
        LeaseLost(3, 7, "no answer"),
        LeaseReleased(3, 8),
    )
    assert [(line["event"], line["level"]) for line in lines] == [
        ("leader_elected", "info"),
        ("write_fenced", "warning"),
        ("lease_lost", "warning"),
        ("lease_released", "info"),
    ]
    assert [(line["shard"], line["epoch"]) for line in lines] == [(3, 7), (3, 7), (3, 7), (3, 8)]
    assert lines[2]["reason"] == "no answer"
    assert {line["instance_id"] for line in lines} == {"node-1"}


def test_ticks_and_leases_held_by_others_say_nothing_at_info(log: Log) -> None:
    assert log.told(TickCompleted(0, 5, 100, 0.0, 0.001), LeaseAttempted(0, "held")) == []


def test_a_lost_race_for_a_lease_is_told(log: Log) -> None:
    [line] = log.told(LeaseAttempted(0, "contended"))
    assert (line["event"], line["result"]) == ("lease_attempted", "contended")


def test_durations_are_named_in_seconds(log: Log) -> None:
    [line] = log.told(ServiceFailed("firing", "ConnectionError: gone", 0.2))
    assert (line["event"], line["service"], line["retry_in_seconds"]) == ("service_failed", "firing", 0.2)


def test_a_clock_that_is_off_is_a_warning_once_until_it_came_back(log: Log) -> None:
    offsets = [0.01, 600.0, 600.1, 599.9, 0.02, 0.01, -600.0]
    lines = log.told(*[ClockObserved(offset_s) for offset_s in offsets])
    assert [(line["event"], line["level"], line["offset_seconds"]) for line in lines] == [
        ("clock_went_off", "warning", 600.0),
        ("clock_came_back", "info", 0.02),
        ("clock_went_off", "warning", -600.0),
    ]


def test_who_changed_a_schedule_is_told_if_known(log: Log) -> None:
    known, unknown = log.told(
        ScheduleChanged(SCHEDULE, "report", ChangeKind.PAUSED, 4, "ada"),
        ScheduleChanged(SCHEDULE, "report", ChangeKind.PAUSED, 5, None),
    )
    assert (known["change"], known["by"], known["schedule_name"]) == ("paused", "ada", "report")
    assert (known["aggregate_version"], known["level"]) == (4, "info")
    assert "by" not in unknown
    assert "trace_id" not in known
    [traced] = log.told(ScheduleChanged(SCHEDULE, "report", ChangeKind.EDITED, 6, None, FIRE_TS, TRACEPARENT))
    assert traced["trace_id"] == TRACEPARENT.split("-")[1]


def test_an_observer_made_before_its_instance_learns_the_id_from_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Log(monkeypatch, "json", "info")
    log.observer = logs.LogObserver()
    lines = log.told(
        InstanceStarted("node-9", ("api", "worker"), "0.1", "sqlite:///foliot.db"), LeaseReleased(0, 1)
    )
    assert [line["instance_id"] for line in lines] == ["node-9", "node-9"]
    assert lines[0]["roles"] == ["api", "worker"]


def test_lines_of_libraries_are_the_instances_too_from_its_start(log: Log) -> None:
    log.told(InstanceStarted("node-9", ("api",), "0.1", "sqlite:///foliot.db"))
    logging.getLogger("some.library").warning("pool is full")
    structlog.get_logger().info("listening")
    assert [line["instance_id"] for line in log.lines()] == ["node-9", "node-9"]


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_passwords_in_urls_are_hidden(monkeypatch: pytest.MonkeyPatch, log_format: Format) -> None:
    log = Log(monkeypatch, log_format, "info")
    log.observer.notify(InstanceStarted("node-1", (), "0.1", "postgresql://ada:s3cr/e@t@db:5432/foliot"))
    log.observer.notify(ServiceFailed("relay", "cannot reach amqp://:s3cret@broker/ now", 1.0))
    logging.getLogger("library").warning("redis://default:s3cret@cache is away")
    text = log.text()
    assert "s3cr" not in text
    assert "postgresql://ada:***@db:5432/foliot" in text
    assert "amqp://:***@broker/ now" in text


def test_a_password_in_a_traceback_is_hidden_and_local_variables_are_not_shown(console: Log) -> None:
    def connect(url: str) -> None:
        token = "hunter2"  # noqa: F841
        raise ConnectionError(f"no route to {url}")

    try:
        connect("postgresql://ada:s3cret@db/foliot")
    except ConnectionError:
        structlog.get_logger().exception("failed")
    text = console.text()
    assert "postgresql://ada:***@db/foliot" in text
    assert "s3cret" not in text
    assert "hunter2" not in text.replace('token = "hunter2"', "")


def test_no_text_can_forge_a_console_line_or_drive_the_terminal(console: Log) -> None:
    console.observer.notify(ScheduleParked(SCHEDULE, "bad\n2026-01-01 [info] all is well\x1b[2J\u202e"))
    text = console.text()
    assert text.count("\n") == 1
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "all is well" in text


def test_no_exception_can_drive_the_terminal_and_its_lines_stay_lines(console: Log) -> None:
    try:
        raise ValueError("bad\x1b[2J\u202e\r\nand more")
    except ValueError:
        structlog.get_logger().exception("failed")
    text = console.text()
    assert not {"\x1b", "\u202e", "\r"} & set(text)
    assert "\nValueError: bad\\x1b[2J\\u202e\\r\nand more" in text


def test_the_console_shows_values_without_python_around_them(console: Log) -> None:
    console.observer.notify(batch(0, skips=1))
    text = console.text()
    assert f"schedule_id={SCHEDULE}" in text
    assert "reason=overlap" in text
    assert "fire_time=2026-03-29T01:00:00+00:00" in text


def test_a_text_of_any_size_or_content_becomes_one_valid_line(log: Log) -> None:
    long, broken = log.told(
        ScheduleParked(SCHEDULE, "x" * 1_000_000),
        ScheduleParked(SCHEDULE, "half a pair \ud800"),
    )
    assert len(long["reason"]) == LONGEST_TEXT + 1
    assert broken["reason"] == "half a pair \ud800"


def test_what_libraries_warn_of_takes_the_same_form_and_their_chatter_is_left_out(log: Log) -> None:
    library = logging.getLogger("some.library")
    library.info("chatter")
    library.warning("pool of %d is full", 5)
    [line] = log.lines()
    assert line == {"event": "pool of 5 is full", "level": "warning", "logger": "some.library"}


@pytest.mark.parametrize(("level", "told"), [("info", ["warning", "error"]), ("error", ["error"])])
def test_levels_hold_also_once_a_task_has_run(
    monkeypatch: pytest.MonkeyPatch, level: LevelName, told: list[str]
) -> None:
    log, kept = Log(monkeypatch, "json", level), list[str]()
    with capturing(lambda line: kept.append(line.message)):
        for name in ("debug", "info", "warning", "error"):
            getattr(logging.getLogger("some.task"), name)(name)
    logging.getLogger("some.library").info("chatter")
    assert [line["event"] for line in log.lines()] == told
    assert kept == ["info", "warning", "error"]


def test_warnings_of_python_are_lines(log: Log) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old\nstyle", DeprecationWarning, stacklevel=1)
    [line] = log.lines()
    assert (line["level"], line["logger"]) == ("warning", "py.warnings")
    assert "DeprecationWarning: old\nstyle" in line["event"]


def test_configuring_again_does_not_double_the_lines(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", log.stderr)
    logs.configure("json", "info")
    logging.getLogger("some.library").warning("once")
    assert len(log.lines()) == 1


def test_a_level_hides_what_lies_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(monkeypatch, "json", "warning")
    assert log.told(batch(1), batch(100), LeaderElected(0, 1, "node-1")) == []
    assert [line["event"] for line in log.told(WriteFenced(0, 1))] == ["write_fenced"]


def test_a_log_that_cannot_be_written_does_not_reach_the_core(log: Log) -> None:
    log.stderr.close()
    with pytest.raises(ValueError, match="closed file"):
        structlog.get_logger().warning("not through the observer")
    log.observer.notify(WriteFenced(0, 1))
    log.observer.notify(batch(5))


def test_a_line_that_cannot_be_made_is_reported_once_per_kind_of_event(log: Log) -> None:
    broken = ExecutionsSettled("worker-1", [settled(1, Status.SKIPPED)], [])
    lines = log.told(broken, broken, WriteFenced(0, 1))
    assert [line["event"] for line in lines] == ["observer_failed", "write_fenced"]
    assert (lines[0]["observer"], lines[0]["told_of"]) == ("LogObserver", "ExecutionsSettled")


def test_a_defect_of_the_api_is_told_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        raise RuntimeError("a defect")
    except RuntimeError as error:
        (line,) = Log(monkeypatch, "json", "info").told(RequestFailed("r1", error))
    assert (line["event"], line["level"], line["request_id"]) == ("request_failed", "error", "r1")
    assert "RuntimeError" in json.dumps(line)
    assert "a defect" in json.dumps(line)


def test_what_failed_for_good_is_an_error_and_what_ended_otherwise_beside_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Log(monkeypatch, "json", "info")
    statuses = (Status.FAILED, Status.RETRYING, Status.TIMEOUT, Status.CANCELLED, Status.UNKNOWN)
    lines = log.told(ExecutionsSettled("w1", [settled(n, each) for n, each in enumerate(statuses)], []))
    assert [line["level"] for line in lines] == ["error", "info", "error", "info", "error"]
    (line,) = log.told(ExecutionsSettled("w1", [settled(9, Status.RETRYING)], []))
    assert line["level"] == "info"
    many = [settled(n, Status.FAILED) for n in range(logs.MAX_LINES + 1)]
    (line,) = log.told(ExecutionsSettled("w1", many, []))
    assert (line["event"], line["level"]) == ("executions_settled", "error")

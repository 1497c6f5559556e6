"""Events become finished spans, by the sampler that all processes share."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler, SamplingResult
from opentelemetry.trace import SpanKind, StatusCode
from structlog.testing import capture_logs

from foliot.model.event import (
    BackfillAdvanced,
    BatchFired,
    CancelledExecution,
    DomainEvent,
    ExecutionsCancelled,
    ExecutionsRescued,
    ExecutionsSettled,
    ExecutionTriggered,
    FiredExecution,
    LostAttempt,
    ScheduleChanged,
    SettledExecution,
    settled_at_once,
)
from foliot.model.execution import Status, TriggeredBy
from foliot.model.ids import new_id
from foliot.model.schedule import ChangeKind
from foliot.model.trace import cancel_span, create_span, execute_span, fire_span, settle_span
from foliot.telemetry.shipping import SpanQueue
from foliot.telemetry.traces import LONGEST_ERROR, TraceObserver

NOW = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
SCHEDULE = UUID("01890000-0000-7000-8000-00000000000a")
CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = CALLER[:-1] + "0"


class Spans:
    """What an observer makes of events."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        self.exporter = InMemorySpanExporter()
        shipping = SpanQueue("http://nowhere", exporter or self.exporter)
        self.observer = TraceObserver(shipping, "node-1", ["worker"], lambda: NOW)

    def of(self, *events: DomainEvent) -> list[ReadableSpan]:
        """The last ones: it is closed by this."""
        for event in events:
            self.observer.notify(event)
        self.observer.close()
        return list(self.exporter.get_finished_spans())


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    monkeypatch.delenv("OTEL_TRACES_SAMPLER", raising=False)
    made = Spans()
    yield made
    made.observer.close()


def fired(execution_id: UUID, **fields: object) -> FiredExecution:
    made = FiredExecution(execution_id, SCHEDULE, NOW - 3 * SECOND, 2.0, 0, "report", "default", 4)
    return made._replace(**fields)  # type: ignore[arg-type]


def batch(*fires: FiredExecution) -> BatchFired:
    return BatchFired(0, 7, "node-1", fires, (), 0, duration_s=0.5)


def settled(execution_id: UUID, status: Status, **fields: object) -> SettledExecution:
    made = SettledExecution(
        execution_id, SCHEDULE, 2, status, 5.0, None, "report", "default", settling_s=0.25
    )
    return made._replace(**fields)  # type: ignore[arg-type]


def times(span: ReadableSpan) -> tuple[datetime, datetime]:
    assert span.start_time is not None
    assert span.end_time is not None
    return tuple(datetime.fromtimestamp(each / 1e9, UTC) for each in (span.start_time, span.end_time))  # type: ignore[return-value]


def ids(span: ReadableSpan) -> tuple[int, int, int | None]:
    assert span.context is not None
    return span.context.trace_id, span.context.span_id, span.parent.span_id if span.parent else None


def links(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


def test_a_fire_is_from_the_time_that_was_due_to_its_commit_and_linked_to_its_version(spans: Spans) -> None:
    execution_id = new_id()
    [span] = spans.of(batch(fired(execution_id)))
    expected = fire_span(execution_id)
    assert (span.name, span.kind) == ("fire", SpanKind.PRODUCER)
    assert ids(span) == (expected.trace_id, expected.span_id, None)
    assert links(span) == [create_span(SCHEDULE, 4)[:2]]
    assert times(span) == (NOW - 2.5 * SECOND, NOW)
    assert span.attributes == {
        "schedule.id": str(SCHEDULE),
        "schedule.name": "report",
        "schedule.version": 4,
        "execution.id": str(execution_id),
        "execution.fire_time": "2026-03-29T00:59:57+00:00",
        "execution.triggered_by": "scheduler",
        "execution.lateness_seconds": 2.0,
        "execution.queue": "default",
        "scheduler.id": "node-1",
    }


def test_a_run_by_hand_goes_on_with_the_trace_of_who_asked_for_it(spans: Spans) -> None:
    execution_id = new_id()
    [span] = spans.of(
        ExecutionTriggered(
            execution_id, SCHEDULE, "report", 1, NOW - SECOND, "default", TriggeredBy.API, "ada", CALLER
        )
    )
    assert ids(span) == (
        int(CALLER.split("-")[1], 16),
        fire_span(execution_id).span_id,
        int(CALLER.split("-")[2], 16),
    )
    assert times(span) == (NOW - SECOND, NOW)
    assert span.attributes is not None
    assert span.attributes["execution.triggered_by"] == "api"


def test_executions_of_a_backfill_have_traces_of_their_own(spans: Spans) -> None:
    made = [new_id(), new_id()]
    found = spans.of(BackfillAdvanced(SCHEDULE, "node-1", [fired(each, lateness_s=0.0) for each in made]))
    assert [ids(span)[:2] for span in found] == [fire_span(each)[:2] for each in made]
    assert [(span.attributes or {})["execution.triggered_by"] for span in found] == ["backfill"] * 2


def test_an_attempt_is_executed_and_settled(spans: Spans) -> None:
    execution_id = new_id()
    started_ts = NOW - 6 * SECOND
    done = settled(execution_id, Status.SUCCESS, started_ts=started_ts)
    execute, settle = spans.of(ExecutionsSettled("worker-1", [done], ()))
    parents = fire_span(execution_id), execute_span(execution_id, 2), settle_span(execution_id, 2)
    assert ids(execute) == (parents[1].trace_id, parents[1].span_id, parents[0].span_id)
    assert ids(settle) == (parents[2].trace_id, parents[2].span_id, parents[1].span_id)
    assert times(execute) == (started_ts, NOW - 0.25 * SECOND)
    assert times(settle) == (NOW - 0.25 * SECOND, NOW)
    of_both = {
        "schedule.id": str(SCHEDULE),
        "schedule.name": "report",
        "execution.id": str(execution_id),
        "execution.attempt": 2,
        "worker.id": "worker-1",
    }
    own = {"execution.queue": "default", "execution.result": "success"}
    assert execute.attributes == {**of_both, **own}
    assert settle.attributes == {
        **of_both,
        "execution.status": "success",
        "execution.duration_seconds": 5.0,
    }
    assert execute.status.status_code is StatusCode.UNSET


def test_a_clock_that_is_ahead_makes_no_span_that_ends_before_it_begins(spans: Spans) -> None:
    ahead = settled(new_id(), Status.SUCCESS, started_ts=NOW + 60 * SECOND)
    for span in spans.of(
        ExecutionsSettled("worker-1", [ahead], ()),
        batch(fired(new_id(), lateness_s=-60.0)),
        ScheduleChanged(SCHEDULE, "report", ChangeKind.CREATED, 1, None, NOW + 60 * SECOND),
    ):
        start, end = times(span)
        assert start <= end <= NOW


@pytest.mark.parametrize(
    ("ended", "status", "is_error"),
    [
        (Status.FAILED, Status.RETRYING, True),
        (Status.TIMEOUT, Status.TIMEOUT, True),
        (Status.UNKNOWN, Status.UNKNOWN, True),
        (Status.CANCELLED, Status.CANCELLED, False),
        (Status.PENDING, Status.PENDING, False),
    ],
)
def test_a_failed_attempt_is_an_error_with_its_text_and_its_settling_is_not(
    spans: Spans, ended: Status, status: Status, is_error: bool
) -> None:
    done = settled(new_id(), status, attempt_status=ended, error="x" * 5000, agent_url="https://agent/run")
    execute, settle = spans.of(ExecutionsSettled("worker-1", [done], ()))
    assert execute.attributes is not None
    assert settle.attributes is not None
    assert execute.attributes["execution.result"] == ended
    assert execute.attributes["agent.url"] == "https://agent/run"
    assert settle.attributes["execution.status"] == status
    assert settle.status.status_code is StatusCode.UNSET
    assert (execute.status.status_code is StatusCode.ERROR) == is_error
    assert execute.status.description == ("x" * LONGEST_ERROR if is_error else None)


def test_an_attempt_whose_worker_vanished_is_in_the_trace_too(spans: Spans) -> None:
    execution_id = new_id()
    lost = LostAttempt(
        execution_id,
        SCHEDULE,
        "report",
        1,
        Status.RETRYING,
        "gone",
        "worker-9",
        "default",
        NOW - SECOND,
        None,
    )
    execute, _settle = spans.of(ExecutionsRescued(0, {execution_id: Status.RETRYING}, [lost]))
    assert ids(execute)[:2] == execute_span(execution_id, 1)[:2]
    assert times(execute) == (NOW - SECOND, NOW)
    assert execute.attributes is not None
    assert (execute.attributes["worker.id"], execute.attributes["execution.result"]) == (
        "worker-9",
        "unknown",
    )
    assert execute.status.description == "gone"


def test_an_execution_that_waited_and_was_cancelled_has_an_end_in_its_trace(spans: Spans) -> None:
    execution_id = new_id()
    waited = CancelledExecution(
        execution_id, SCHEDULE, 0, "cancelled by ann", NOW - SECOND, "report", "default", trace_context=CALLER
    )
    [cancel] = spans.of(ExecutionsCancelled([waited]))
    assert cancel.name == "cancel"
    trace_id, span_id, parent_id = ids(cancel)
    assert (trace_id, span_id) == cancel_span(execution_id, 0, CALLER)[:2]
    assert (trace_id, parent_id) == fire_span(execution_id, CALLER)[:2]
    assert times(cancel) == (NOW - SECOND, NOW)
    assert cancel.attributes == {
        "schedule.id": str(SCHEDULE),
        "schedule.name": "report",
        "execution.id": str(execution_id),
        "execution.queue": "default",
        "execution.status": "cancelled",
        "execution.reason": "cancelled by ann",
    }
    assert cancel.status.status_code is StatusCode.UNSET


def test_what_an_agent_was_at_when_it_was_cancelled_is_an_attempt_like_any_other(spans: Spans) -> None:
    execution_id = new_id()
    taken_over = CancelledExecution(
        execution_id,
        SCHEDULE,
        2,
        "replaced",
        NOW - SECOND,
        worker_id="worker-9",
        started_ts=NOW - 5 * SECOND,
    )
    execute, settle = spans.of(ExecutionsCancelled([taken_over]))
    assert ids(execute)[:2] == execute_span(execution_id, 2)[:2]
    assert times(execute) == (NOW - 5 * SECOND, NOW - SECOND)
    assert execute.attributes is not None
    assert (execute.attributes["execution.result"], execute.attributes["worker.id"]) == (
        "cancelled",
        "worker-9",
    )
    assert (settle.name, times(settle)) == ("settle", (NOW - SECOND, NOW))


def test_an_event_that_nobody_known_fired_names_no_worker(spans: Spans) -> None:
    execute, _settle = spans.of(settled_at_once("", [fired(new_id())]))
    assert execute.attributes is not None
    assert "worker.id" not in execute.attributes
    assert execute.attributes["execution.result"] == "success"


def test_a_changed_schedule_has_a_trace_of_its_own_linked_to_who_asked(spans: Spans) -> None:
    first, second = spans.of(
        ScheduleChanged(SCHEDULE, "report", ChangeKind.CREATED, 1, "ada", NOW - SECOND, CALLER),
        ScheduleChanged(SCHEDULE, "report", ChangeKind.PAUSED, 2, None, NOW - SECOND),
    )
    version_1, version_2 = create_span(SCHEDULE, 1), create_span(SCHEDULE, 2)
    assert ids(first) == (version_1.trace_id, version_1.span_id, None)
    assert ids(second) == (version_2.trace_id, version_2.span_id, version_1.span_id)
    assert links(first) == [(int(CALLER.split("-")[1], 16), int(CALLER.split("-")[2], 16))]
    assert links(second) == []
    assert first.attributes is not None
    assert (first.attributes["schedule.change"], first.attributes["schedule.changed_by"]) == (
        "created",
        "ada",
    )


def test_who_decided_against_a_trace_decided_for_all_that_continues_it(spans: Spans) -> None:
    execution_id = new_id()
    found = spans.of(
        ExecutionTriggered(
            execution_id, SCHEDULE, "report", 1, NOW, "default", TriggeredBy.API, None, UNSAMPLED
        ),
        ExecutionsSettled("w", [settled(execution_id, Status.SUCCESS, trace_context=UNSAMPLED)], ()),
    )
    assert found == []


@pytest.mark.parametrize(
    ("sampler", "caller", "is_kept"),
    [
        ("parentbased_traceidratio", CALLER, True),
        ("parentbased_traceidratio", UNSAMPLED, False),
        ("parentbased_always_on", UNSAMPLED, False),
        ("always_on", UNSAMPLED, True),
        ("always_off", CALLER, False),
    ],
)
def test_a_caller_is_heard_by_samplers_that_ask_the_parent(
    monkeypatch: pytest.MonkeyPatch, sampler: str, caller: str, is_kept: bool
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0")
    done = settled(new_id(), Status.SUCCESS, trace_context=caller)
    assert len(Spans().of(ExecutionsSettled("w", [done], ()))) == (2 if is_kept else 0)


def test_a_ratio_keeps_whole_traces_and_only_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.25")
    scheduler, worker = Spans(), Spans()
    executions = [new_id() for _ in range(400)]
    fires = scheduler.of(batch(*[fired(each) for each in executions]))
    done = [settled(each, Status.SUCCESS) for each in executions]
    attempts = worker.of(ExecutionsSettled("worker-1", done, ()))
    assert len(fires) == pytest.approx(100, abs=60)
    assert {ids(span)[0] for span in attempts} == {ids(span)[0] for span in fires}
    kept = [worker.observer.is_kept(fire_span(each).trace_id, None) for each in executions]
    assert sum(kept) == len(fires)


def test_a_sampler_that_fails_is_told_once_and_keeps_nothing(spans: Spans) -> None:
    """Attempts ask it on their way to the target."""

    class Broken(Sampler):
        def should_sample(self, *_: object, **__: object) -> SamplingResult:
            raise RuntimeError("told to")

        def get_description(self) -> str:
            return "broken"

    spans.observer._sampler = Broken()
    with capture_logs() as entries:
        assert not spans.observer.is_kept(1, None)
        assert spans.of(batch(fired(new_id()), fired(new_id()))) == []
    assert [(entry["event"], entry["error"]) for entry in entries] == [
        ("sampler_failed", "RuntimeError: told to")
    ]


def test_a_process_says_what_it_is_and_lets_the_operator_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    [span] = Spans().of(batch(fired(new_id())))
    assert span.resource.attributes["service.name"] == "foliot"
    assert span.resource.attributes["service.instance.id"] == "node-1"
    assert span.resource.attributes["foliot.roles"] == ("worker",)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "billing-jobs")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    [span] = Spans().of(batch(fired(new_id())))
    assert span.resource.attributes["service.name"] == "billing-jobs"
    assert span.resource.attributes["deployment.environment"] == "test"

"""Traces: build spans from events, after the work is done.

Span ids are derived from schedule and execution ids (`model/trace.py`). So no ids are passed between
processes, and independent processes contribute to one trace. The sampler decides by trace id, so all
processes agree. This module is imported only if tracing is enabled.

    create    a change of a schedule: from the transaction's time to its commit
    fire      from the due time to the commit; for a manual run, from the transaction's time
    execute   from the claim to the end of the attempt
    settle    from the end of the attempt until its result is written
    cancel    cancelling a waiting execution: from the request to its commit
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog
from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from foliot.model.event import (
    BackfillAdvanced,
    BatchFired,
    CancelledExecution,
    ExecutionsCancelled,
    ExecutionsRescued,
    ExecutionsSettled,
    ExecutionTriggered,
    FiredExecution,
    ScheduleChanged,
    SettledExecution,
)
from foliot.model.execution import Status as Ended
from foliot.model.execution import TriggeredBy
from foliot.model.trace import (
    SpanName,
    TraceContext,
    cancel_span,
    create_span,
    execute_span,
    fire_span,
    parse_traceparent,
    settle_span,
)
from foliot.telemetry.dispatch import Dispatch
from foliot.telemetry.shipping import SpanQueue
from foliot.version import __version__

Value = str | int | float | bool
Now = Callable[[], datetime]

LONGEST_ERROR = 2000
_FAILURES = frozenset({Ended.FAILED, Ended.TIMEOUT, Ended.UNKNOWN})
_SCOPE = InstrumentationScope("foliot", __version__)
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_UNNAMED = "unknown_service"
_UNSET = Status(StatusCode.UNSET)


class _Span(NamedTuple):
    """The data of a span, before it is converted to the SDK's type."""

    name: SpanName
    context: TraceContext
    parent: TraceContext | None
    start_ts: datetime
    end_ts: datetime
    attributes: Mapping[str, Value | None]
    links: Sequence[TraceContext] = ()
    kind: SpanKind = SpanKind.INTERNAL
    status: Status = _UNSET


class TraceObserver(Dispatch):
    """Builds spans from events and queues them for sending. `now` returns the cluster's time."""

    def __init__(self, shipping: SpanQueue, instance_id: str, roles: Sequence[str], now: Now) -> None:
        super().__init__()
        self._shipping = shipping
        self._instance_id = instance_id
        self._now = now
        self._resource = _resource_of(instance_id, roles)
        # The provider is used only for its sampler, which OTEL_TRACES_SAMPLER selects.
        self._sampler = TracerProvider(resource=self._resource, shutdown_on_exit=False).sampler
        self._has_sampler_failed = False
        self.on(ScheduleChanged, self._schedule_changed)
        self.on(ExecutionTriggered, self._execution_triggered)
        self.on(BatchFired, self._batch_fired)
        self.on(BackfillAdvanced, self._backfill_advanced)
        self.on(ExecutionsSettled, self._executions_settled)
        self.on(ExecutionsCancelled, self._executions_cancelled)
        self.on(ExecutionsRescued, self._executions_rescued)

    def is_kept(self, trace_id: int, trace_context: str | None) -> bool:
        """Whether a trace is sampled. `trace_context`: the trace that it continues, if any. Never raises."""
        try:
            return self._is_sampled(trace_id, trace_context)
        except Exception as error:
            # The sampler may be third-party code, and attempts call this before they call the target.
            if not self._has_sampler_failed:
                self._has_sampler_failed = True
                structlog.get_logger().error("sampler_failed", error=f"{type(error).__name__}: {error}")
            return False

    def _is_sampled(self, trace_id: int, trace_context: str | None) -> bool:
        continued = parse_traceparent(trace_context)
        # An empty context: the current one may be inside a span of the application.
        parent = Context()
        if continued is not None:
            parent = set_span_in_context(NonRecordingSpan(_context_of(continued, is_remote=True)), parent)
        asked = self._sampler.should_sample(parent, trace_id, SpanName.FIRE, SpanKind.PRODUCER)
        return asked.decision is Decision.RECORD_AND_SAMPLE

    def close(self) -> None:
        """Send the last spans. Blocks for a few seconds at most."""
        self._shipping.close()

    # --- from events ------------------------------------------------------------------------------

    def _schedule_changed(self, changed: ScheduleChanged) -> None:
        context = create_span(changed.schedule_id, changed.aggregate_version)
        if self._shipping.is_full or not self.is_kept(context.trace_id, None):
            return
        now = self._now()
        caller = parse_traceparent(changed.trace_context)
        first = create_span(changed.schedule_id, 1)
        self._put(
            _Span(
                SpanName.CREATE,
                context,
                None if context == first else first,
                min(changed.changed_ts or now, now),
                now,
                {
                    "schedule.id": str(changed.schedule_id),
                    "schedule.name": changed.schedule_name,
                    "schedule.version": changed.aggregate_version,
                    "schedule.change": changed.change.value,
                    "schedule.changed_by": changed.by,
                },
                () if caller is None else (caller,),
            )
        )

    def _execution_triggered(self, triggered: ExecutionTriggered) -> None:
        now = self._now()
        fired = FiredExecution(
            triggered.execution_id,
            triggered.schedule_id,
            triggered.fire_ts,
            0.0,
            0,
            triggered.schedule_name,
            triggered.queue,
            triggered.aggregate_version,
        )
        start_ts = min(triggered.fire_ts, now)
        self._fire(fired, start_ts, now, triggered.triggered_by, triggered.trace_context)

    def _batch_fired(self, batch: BatchFired) -> None:
        now = self._now()
        committing = timedelta(seconds=batch.duration_s)
        for count, fired in enumerate(batch.fired):
            if self._shipping.is_full:
                self._shipping.drop(len(batch.fired) - count)
                return
            late = timedelta(seconds=max(0.0, fired.lateness_s))
            self._fire(fired, now - committing - late, now, TriggeredBy.SCHEDULER, None)

    def _backfill_advanced(self, batch: BackfillAdvanced) -> None:
        now = self._now()
        for count, fired in enumerate(batch.fired):
            if self._shipping.is_full:
                self._shipping.drop(len(batch.fired) - count)
                return
            self._fire(fired, now, now, TriggeredBy.BACKFILL, None)

    def _fire(
        self,
        fired: FiredExecution,
        start_ts: datetime,
        end_ts: datetime,
        triggered_by: TriggeredBy,
        trace_context: str | None,
    ) -> None:
        context = fire_span(fired.execution_id, trace_context)
        if not self.is_kept(context.trace_id, trace_context):
            return
        self._put(
            _Span(
                SpanName.FIRE,
                context,
                parse_traceparent(trace_context),
                start_ts,
                end_ts,
                {
                    "schedule.id": str(fired.schedule_id),
                    "schedule.name": fired.schedule_name,
                    "schedule.version": fired.aggregate_version,
                    "execution.id": str(fired.execution_id),
                    "execution.fire_time": fired.fire_ts.isoformat(),
                    "execution.triggered_by": triggered_by.value,
                    "execution.lateness_seconds": max(0.0, fired.lateness_s),
                    "execution.missed_count": fired.missed_count or None,
                    "execution.queue": fired.queue,
                    "scheduler.id": self._instance_id,
                },
                (create_span(fired.schedule_id, fired.aggregate_version),),
                SpanKind.PRODUCER,
            )
        )

    def _executions_settled(self, batch: ExecutionsSettled) -> None:
        now = self._now()
        for count, settled in enumerate(batch.settled):
            if self._shipping.is_full:
                self._shipping.drop(2 * (len(batch.settled) - count))
                return
            context = execute_span(settled.execution_id, settled.attempt, settled.trace_context)
            if self.is_kept(context.trace_id, settled.trace_context):
                for span in _of_attempt(settled, context, batch.worker_id, now):
                    self._put(span)

    def _executions_cancelled(self, batch: ExecutionsCancelled) -> None:
        now = self._now()
        for count, cancelled in enumerate(batch.cancelled):
            if self._shipping.is_full:
                self._shipping.drop(len(batch.cancelled) - count)
                return
            context = cancel_span(cancelled.execution_id, cancelled.attempt, cancelled.trace_context)
            if self.is_kept(context.trace_id, cancelled.trace_context):
                for span in _of_cancelled(cancelled, context, now):
                    self._put(span)

    def _executions_rescued(self, batch: ExecutionsRescued) -> None:
        """Build the spans of attempts whose workers are gone and can't report them."""
        now = self._now()
        for lost in batch.attempts:
            started_ts = lost.started_ts or now
            settled = SettledExecution(
                lost.execution_id,
                lost.schedule_id,
                lost.attempt,
                lost.status,
                max(0.0, (now - started_ts).total_seconds()),
                lost.error,
                lost.schedule_name,
                lost.queue,
                started_ts,
                trace_context=lost.trace_context,
                attempt_status=Ended.UNKNOWN,
            )
            context = execute_span(lost.execution_id, lost.attempt, lost.trace_context)
            if not self._shipping.is_full and self.is_kept(context.trace_id, lost.trace_context):
                for span in _of_attempt(settled, context, lost.worker_id or "", now):
                    self._put(span)

    def _put(self, span: _Span) -> None:
        self._shipping.put(
            ReadableSpan(
                name=span.name.value,
                # Always marked as sampled here: the sampler may decide otherwise than the caller.
                context=_context_of(span.context._replace(is_sampled=True)),
                parent=None if span.parent is None else _context_of(span.parent, is_remote=True),
                resource=self._resource,
                attributes={name: value for name, value in span.attributes.items() if value is not None},
                links=[Link(_context_of(each, is_remote=True)) for each in span.links],
                kind=span.kind,
                status=span.status,
                start_time=_nanoseconds(span.start_ts),
                end_time=_nanoseconds(span.end_ts),
                instrumentation_scope=_SCOPE,
            )
        )


def open_traces(url: str, instance_id: str, roles: Sequence[str], now: Now) -> TraceObserver:
    """Create a trace observer. Raises SettingError if the OTEL_* variables are invalid."""
    return TraceObserver(SpanQueue(url), instance_id, roles, now)


def _of_attempt(
    settled: SettledExecution, context: TraceContext, worker_id: str, now: datetime
) -> Iterator[_Span]:
    ended_ts = now - timedelta(seconds=settled.settling_s)
    start_ts = ended_ts - timedelta(seconds=settled.duration_s)
    if settled.started_ts is not None:
        start_ts = min(start_ts, settled.started_ts)
    result = settled.attempt_status or settled.status
    of_both: dict[str, Value | None] = {
        "schedule.id": str(settled.schedule_id),
        "schedule.name": settled.schedule_name,
        "execution.id": str(settled.execution_id),
        "execution.attempt": settled.attempt,
        "worker.id": worker_id or None,
    }
    yield _Span(
        SpanName.EXECUTE,
        context,
        fire_span(settled.execution_id, settled.trace_context),
        start_ts,
        ended_ts,
        {
            **of_both,
            "execution.queue": settled.queue or None,
            "execution.result": result.value,
            "agent.url": settled.agent_url,
        },
        kind=SpanKind.CONSUMER,
        status=Status(StatusCode.ERROR, (settled.error or result.value)[:LONGEST_ERROR])
        if result in _FAILURES
        else _UNSET,
    )
    yield _Span(
        SpanName.SETTLE,
        settle_span(settled.execution_id, settled.attempt, settled.trace_context),
        context,
        ended_ts,
        now,
        {
            **of_both,
            "execution.status": settled.status.value,
            "execution.duration_seconds": settled.duration_s,
        },
    )


def _of_cancelled(cancelled: CancelledExecution, context: TraceContext, now: datetime) -> Iterator[_Span]:
    """Yield spans: of an attempt if an agent was working on it, else one `cancel` span."""
    if cancelled.duration_s is not None:
        settled = SettledExecution(
            cancelled.execution_id,
            cancelled.schedule_id,
            cancelled.attempt,
            Ended.CANCELLED,
            cancelled.duration_s,
            cancelled.reason,
            cancelled.schedule_name,
            cancelled.queue,
            cancelled.started_ts,
            max(0.0, (now - cancelled.cancelled_ts).total_seconds()),
            trace_context=cancelled.trace_context,
        )
        attempt = execute_span(cancelled.execution_id, cancelled.attempt, cancelled.trace_context)
        yield from _of_attempt(settled, attempt, cancelled.worker_id or "", now)
        return
    yield _Span(
        SpanName.CANCEL,
        context,
        fire_span(cancelled.execution_id, cancelled.trace_context),
        min(cancelled.cancelled_ts, now),
        now,
        {
            "schedule.id": str(cancelled.schedule_id),
            "schedule.name": cancelled.schedule_name,
            "execution.id": str(cancelled.execution_id),
            "execution.queue": cancelled.queue or None,
            "execution.status": Ended.CANCELLED.value,
            "execution.reason": cancelled.reason,
        },
    )


def _resource_of(instance_id: str, roles: Sequence[str]) -> Resource:
    """Return the resource of OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES. Default service: `foliot`."""
    given = Resource.create({})
    ours: dict[str, str | Sequence[str]] = {
        "service.instance.id": instance_id,
        "service.version": __version__,
        "foliot.roles": tuple(roles),
    }
    if str(given.attributes.get(SERVICE_NAME, _UNNAMED)).startswith(_UNNAMED):
        ours[SERVICE_NAME] = "foliot"
    return given.merge(Resource(ours))


def _context_of(context: TraceContext, *, is_remote: bool = False) -> SpanContext:
    flags = _SAMPLED if context.is_sampled else TraceFlags(TraceFlags.DEFAULT)
    return SpanContext(context.trace_id, context.span_id, is_remote=is_remote, trace_flags=flags)


def _nanoseconds(instant: datetime) -> int:
    return int(instant.timestamp() * 1_000_000) * 1000

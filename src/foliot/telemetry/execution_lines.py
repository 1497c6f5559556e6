"""Log lines about executions. Pure and lazy: lines below the log level are never built.

A batch has a summary line, and one line for each of its executions.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum

from foliot.model.event import (
    BackfillAdvanced,
    BatchFired,
    ClaimedExecution,
    ExecutionRetried,
    ExecutionsCancelled,
    ExecutionsRescued,
    ExecutionsSettled,
    ExecutionTriggered,
    FiredExecution,
    SettledExecution,
    SkippedExecution,
)
from foliot.model.execution import Status, TriggeredBy
from foliot.model.trace import trace_id_text

Fields = dict[str, object]
Line = tuple[str, Fields]

SETTLED_AS = {
    Status.SUCCESS: "execution_succeeded",
    Status.FAILED: "execution_failed",
    Status.TIMEOUT: "execution_timed_out",
    Status.CANCELLED: "execution_cancelled",
    Status.UNKNOWN: "execution_unknown",
    Status.RETRYING: "execution_retrying",
    Status.PENDING: "execution_handed_back",
}


def triggered_values(triggered: ExecutionTriggered) -> Fields:
    values: Fields = {
        "execution_id": triggered.execution_id,
        "schedule_id": triggered.schedule_id,
        "schedule_name": triggered.schedule_name,
        "fire_time": triggered.fire_ts,
        "triggered_by": triggered.triggered_by,
        "trace_id": trace_id_text(triggered.execution_id, triggered.trace_context),
    }
    return values | _known(by=triggered.by)


def backfill_summary(batch: BackfillAdvanced) -> Line:
    return "backfill_advanced", {"backfill_id": batch.backfill_id, "count": len(batch.fired)}


def backfill_lines(batch: BackfillAdvanced) -> Iterator[Line]:
    of_backfill: Fields = {"triggered_by": TriggeredBy.BACKFILL, "backfill_id": batch.backfill_id}
    for fired in batch.fired:
        yield "execution_triggered", fired_values(fired, batch.instance_id) | of_backfill


def claimed_values(claimed: ClaimedExecution, worker_id: str) -> Fields:
    return {
        "execution_id": claimed.execution_id,
        "schedule_id": claimed.schedule_id,
        "attempt": claimed.attempt,
        "queue": claimed.queue,
        "priority": claimed.priority,
        "start_delay_seconds": claimed.start_delay_s,
        "worker_id": worker_id,
        "trace_id": trace_id_text(claimed.execution_id, claimed.trace_context),
    }


def fired_summary(batch: BatchFired) -> Line:
    return "batch_fired", {
        "count": len(batch.fired),
        "max_lateness_seconds": max((fired.lateness_s for fired in batch.fired), default=0.0),
        "skipped": _counts(skipped.reason for skipped in batch.skipped),
        "refused": batch.refused,
        "duration_seconds": batch.duration_s,
        "shard": batch.shard,
        "epoch": batch.epoch,
    }


def fired_lines(batch: BatchFired) -> Iterator[Line]:
    for fired in batch.fired:
        yield "execution_triggered", fired_values(fired, batch.instance_id)
    for skipped in batch.skipped:
        yield "execution_skipped", skipped_values(skipped) | {"instance_id": batch.instance_id}


def skipped_values(skipped: SkippedExecution) -> Fields:
    values: Fields = {
        "execution_id": skipped.execution_id,
        "schedule_id": skipped.schedule_id,
        "fire_time": skipped.fire_ts,
        "reason": skipped.reason,
    }
    if skipped.schedule_name is not None:
        values["schedule_name"] = skipped.schedule_name
    if skipped.missed_count:
        values["missed_count"] = skipped.missed_count
    return values


def fired_values(fired: FiredExecution, instance_id: str) -> Fields:
    values: Fields = {
        "execution_id": fired.execution_id,
        "schedule_id": fired.schedule_id,
        "fire_time": fired.fire_ts,
        "lateness_seconds": fired.lateness_s,
        "instance_id": instance_id,
        "trace_id": trace_id_text(fired.execution_id),
    }
    if fired.schedule_name is not None:
        values["schedule_name"] = fired.schedule_name
    if fired.missed_count:
        values["missed_count"] = fired.missed_count
    return values


def settled_summary(batch: ExecutionsSettled) -> Line:
    counts = _counts(settled.status for settled in batch.settled)
    known = _known(worker_id=batch.worker_id or None)
    return "executions_settled", {**known, "count": len(batch.settled), **counts}


def settled_lines(batch: ExecutionsSettled, settleds: Iterable[SettledExecution]) -> Iterator[Line]:
    for settled in settleds:
        values: Fields = {
            "execution_id": settled.execution_id,
            "schedule_id": settled.schedule_id,
            "attempt": settled.attempt,
            "duration_seconds": settled.duration_s,
            "trace_id": trace_id_text(settled.execution_id, settled.trace_context),
        }
        values |= _known(
            worker_id=batch.worker_id or None,
            schedule_name=settled.schedule_name,
            error=settled.error,
            agent_url=settled.agent_url,
        )
        yield SETTLED_AS[settled.status], values


def cancelled_summary(batch: ExecutionsCancelled) -> Line:
    return "executions_cancelled", {"count": len(batch.cancelled), "reason": batch.cancelled[0].reason}


def cancelled_lines(batch: ExecutionsCancelled) -> Iterator[Line]:
    for cancelled in batch.cancelled:
        values: Fields = {
            "execution_id": cancelled.execution_id,
            "schedule_id": cancelled.schedule_id,
            "attempt": cancelled.attempt,
            "reason": cancelled.reason,
            "trace_id": trace_id_text(cancelled.execution_id, cancelled.trace_context),
        }
        values |= _known(
            worker_id=cancelled.worker_id,
            schedule_name=cancelled.schedule_name,
            duration_seconds=cancelled.duration_s,
        )
        yield SETTLED_AS[Status.CANCELLED], values


def rescued_summary(batch: ExecutionsRescued) -> Line:
    counts = _counts(batch.rescued.values())
    return "executions_rescued", {"shard": batch.shard, "count": len(batch.rescued), **counts}


def rescued_lines(batch: ExecutionsRescued) -> Iterator[Line]:
    for lost in batch.attempts:
        yield (
            "execution_rescued",
            {
                "execution_id": lost.execution_id,
                "schedule_id": lost.schedule_id,
                "schedule_name": lost.schedule_name,
                "attempt": lost.attempt,
                "status": lost.status,
                "error": lost.error,
                "worker_id": lost.worker_id,
                "trace_id": trace_id_text(lost.execution_id, lost.trace_context),
            },
        )


def retried_values(retried: ExecutionRetried) -> Fields:
    values: Fields = {
        "execution_id": retried.execution_id,
        "schedule_id": retried.schedule_id,
        "attempt": retried.attempt,
        "trace_id": trace_id_text(retried.execution_id, retried.trace_context),
    }
    return values | _known(schedule_name=retried.schedule_name, by=retried.by)


def _known(**values: object) -> Fields:
    return {name: value for name, value in values.items() if value is not None}


def _counts(values: Iterable[StrEnum]) -> dict[str, int]:
    return {str(value): count for value, count in Counter(values).items()}

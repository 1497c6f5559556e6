"""An execution, read back from a row of `execution_t`."""

from typing import Any

from foliot.model.execution import Execution, Status, TriggeredBy
from foliot.model.policy import Priority


def execution_of(row: Any) -> Execution:
    return Execution(
        execution_id=row.execution_id,
        schedule_id=row.schedule_id,
        host_id=row.host_id,
        aggregate_version=row.aggregate_version,
        fire_ts=row.fire_ts,
        missed_count=row.missed_count,
        missed_from_ts=row.missed_from_ts,
        status=Status(row.status),
        reason=row.reason,
        triggered_by=TriggeredBy(row.triggered_by),
        triggered_by_user=row.triggered_by_user,
        args=row.args,
        queue=row.queue,
        priority=Priority(row.priority),
        ready_ts=row.ready_ts,
        due_by_ts=row.due_by_ts,
        lease_until=row.lease_until,
        worker_id=row.worker_id,
        attempt=row.attempt,
        started_ts=row.started_ts,
        ended_ts=row.ended_ts,
        duration_seconds=row.duration_seconds,
        result=row.result,
        error=row.error,
        traceback=row.traceback,
        scheduler_instance_id=row.scheduler_instance_id,
        created_ts=row.created_ts,
    )

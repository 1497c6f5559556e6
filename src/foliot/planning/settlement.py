"""Settles the end of an attempt by the policies of the schedule version that it was fired with."""

from datetime import datetime

from foliot.model.attempt import Claim, Settlement
from foliot.model.execution import Status
from foliot.model.schedule import ScheduleSpec
from foliot.planning.outcome import outcome_of


def settlement_of(
    claim: Claim,
    spec: ScheduleSpec | None,
    ended: Status,
    *,
    now: datetime,
    duration_s: float,
    is_permanent: bool = False,
    retry_after_s: float | None = None,
    ended_at: float | None = None,
) -> Settlement:
    """Return the settlement of an ended attempt, without result or error, which the caller adds."""
    status, retry_in_s = ended, 0.0
    if spec is not None:
        outcome = outcome_of(
            ended,
            retry=spec.retry,
            delivery=spec.delivery,
            failures=claim.failed_attempts + 1,
            execution_id=claim.execution_id,
            now=now,
            is_permanent=is_permanent,
            retry_after_s=retry_after_s,
        )
        status = outcome.status
        if outcome.ready_ts is not None:
            retry_in_s = (outcome.ready_ts - now).total_seconds()
    return Settlement(
        claim=claim,
        attempt_status=ended,
        status=status,
        retry_in_s=retry_in_s,
        duration_s=duration_s,
        is_delay=spec is not None and spec.trigger.counts_from_end,
        schedule_name=None if spec is None else spec.name,
        agent_url=None if spec is None else spec.target.agent_url,
        ended_at=ended_at,
    )

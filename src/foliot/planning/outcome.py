"""What happens to an execution after an attempt: it is final, or it is retried later."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from foliot.model.execution import Status
from foliot.model.policy import Delivery, RetryPolicy


@dataclass(frozen=True, slots=True)
class Outcome:
    status: Status
    ready_ts: datetime | None = None
    """When the next attempt may start; only with status `retrying`."""


def outcome_of(
    ended: Status,
    *,
    retry: RetryPolicy,
    delivery: Delivery,
    failures: int,
    execution_id: UUID,
    now: datetime,
    is_permanent: bool = False,
    retry_after_s: float | None = None,
) -> Outcome:
    """Decide what follows an attempt that ended as `ended`, the `failures`-th failed one of its execution.

    `unknown` as input means lost: the worker vanished, and nobody knows what it did. A permanent failure is
    not retried. No retry starts before the target's requested `retry_after_s`.
    """
    if ended in (Status.SUCCESS, Status.CANCELLED):
        return Outcome(ended)
    if delivery is Delivery.AT_MOST_ONCE:
        # Work that began and was handed back may have had effects: it must not begin again.
        return Outcome(Status.UNKNOWN if ended is Status.PENDING else ended)
    if ended is Status.PENDING:
        return Outcome(ended)
    if is_permanent or failures >= retry.max_attempts:
        return Outcome(Status.FAILED if ended is Status.UNKNOWN else ended)
    delay_s = max(backoff_s(retry, failures, execution_id), retry_after_s or 0.0)
    return Outcome(Status.RETRYING, now + timedelta(seconds=delay_s))


def backoff_s(retry: RetryPolicy, failures: int, execution_id: UUID) -> float:
    """Return the seconds to wait after the `failures`-th failure: exponential, capped.

    With jitter it is 50 to 100 % of that.
    """
    exponent = min(failures - 1, 64)
    delay_s = float(min(retry.initial_delay_seconds * retry.multiplier**exponent, retry.max_delay_seconds))
    if not retry.jitter:
        return delay_s
    digest = hashlib.blake2b(execution_id.bytes + failures.to_bytes(4), digest_size=8).digest()
    share = int.from_bytes(digest) / 2**64
    return delay_s * (0.5 + share / 2)

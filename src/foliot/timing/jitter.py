"""Jitter: how much later than its nominal time a schedule fires, to spread load."""

from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from uuid import UUID

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


def jitter_s(schedule_id: UUID, fire_ts: datetime, max_s: float) -> float:
    """Return seconds in [0, max_s): equal on every node, spread evenly over schedules and fire times."""
    if max_s <= 0:
        return 0.0
    moment = (fire_ts - _EPOCH) // _TICK
    digest = blake2b(schedule_id.bytes + moment.to_bytes(8, "big", signed=True), digest_size=8).digest()
    # A float holds 53 bits exactly; all 64 could round up to max_s itself.
    return (int.from_bytes(digest, "big") >> 11) / 2**53 * max_s

"""Renews the leases of a worker's attempts, and stops those that were cancelled or lost.

A worker that can't renew stops its attempts before the lease expires, so that a rescued execution does not
run twice.
"""

import asyncio
from collections.abc import Mapping
from uuid import UUID

from foliot.db.hints import Hint, Hints
from foliot.model.execution import Status
from foliot.service import Wake
from foliot.timing.clock import ClusterClock
from foliot.worker.attempt import Attempt
from foliot.worker.work_sql import Work
from foliot.worker.worker import Worker

LOST_AT = 0.8
"""Fraction of the lease after which a worker that could not renew stops its attempts."""


class Renewer:
    """A service that renews all leases in one statement, by default every third of the lease."""

    name = "renewal"

    def __init__(
        self,
        worker: Worker,
        store: Work,
        clock: ClusterClock,
        hints: Hints,
        lease_s: float,
        every_s: float | None = None,
    ) -> None:
        self._every_s = every_s or lease_s / 3
        self.wake = Wake()
        self._worker = worker
        self._store = store
        self._clock = clock
        self._lease_s = lease_s
        self._renewed_at = clock.monotonic()
        hints.listen(Hint.CANCEL, lambda _ids: self.wake.set())

    async def step(self) -> float | None:
        attempts = dict(self._worker.running)
        if not attempts:
            self._renewed_at = self._clock.monotonic()
            return self._every_s
        sent_at = self._clock.monotonic()
        left_s = self._renewed_at + self._lease_s * LOST_AT - sent_at
        try:
            async with asyncio.timeout(max(0.05, left_s)), self._worker.journal.rows:
                renewal = await self._store.renew(
                    self._worker.worker_id, [each.claim for each in attempts.values()], self._lease_s
                )
        except Exception:
            self._stop_what_may_be_lost(attempts)
            raise
        self._renewed_at = sent_at
        for execution_id in renewal.lost:
            # An attempt that ended meanwhile is settled or about to be. It is not lost.
            if execution_id in self._worker.running:
                attempts[execution_id].stop(None)
        for execution_id in renewal.cancelled:
            attempts[execution_id].stop(Status.CANCELLED)
        return self._every_s

    def _stop_what_may_be_lost(self, attempts: Mapping[UUID, Attempt]) -> None:
        """Stop all attempts if their leases are about to expire, before another worker may claim them."""
        if self._clock.monotonic() - self._renewed_at >= self._lease_s * LOST_AT:
            for attempt in attempts.values():
                attempt.stop(None)

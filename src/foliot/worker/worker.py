"""Claims the most urgent executions, up to the worker's free slots, and starts them."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from uuid import UUID

from foliot.db.hints import Hint, Hints
from foliot.kinds.target_protocol import TargetRunner
from foliot.model.attempt import Claim, Settlement
from foliot.model.event import (
    ClaimedExecution,
    ExecutionsClaimed,
    Observer,
    WorkerLoadChanged,
)
from foliot.model.execution import Status
from foliot.model.policy import Priority
from foliot.model.schedule import ScheduleSpec
from foliot.model.trace import Sampling, sampled_by_caller
from foliot.service import Wake
from foliot.timing.clock import ClusterClock
from foliot.transport.transport_protocol import BrokerQueue
from foliot.worker.attempt import STOPPING_S, Attempt, Ended, Handover, Prepare, as_given
from foliot.worker.claim_scope import ClaimScope, PollScope
from foliot.worker.journal import Journal
from foliot.worker.settler import Settler
from foliot.worker.unrunnable import Unrunnable
from foliot.worker.versions import Versions
from foliot.worker.work_sql import Work

CLAIM_BATCH = 500
"""Executions per claim. A worker with more free slots claims again while the first ones run."""
HAND_BACK_PAUSE_S = 1.0
"""Delay before an execution may be claimed again that was handed back because it could not be started."""
QUEUES_EVERY_S = 2.0
"""Maximum age of the cached list of queues."""
LAST_WORDS_S = 5.0
"""Minimum time that a stopping worker tries to write the results of ended attempts. It is longer if the grace
period is longer, but never longer than the lease."""


class Worker:
    """A service that claims executions and starts an attempt for each of them."""

    name = "worker"

    def __init__(
        self,
        worker_id: str,
        store: Work,
        runners: Mapping[str, TargetRunner],
        clock: ClusterClock,
        hints: Hints,
        observer: Observer,
        journal: Journal,
        *,
        queues: Sequence[str] | None,
        concurrency: int,
        lease_s: float,
        poll_s: float,
        prepare: Prepare = as_given,
        reach: PollScope | None = None,
        sampling: Sampling = sampled_by_caller,
    ) -> None:
        self.wake = Wake()
        self.worker_id = worker_id
        self.journal = journal
        self._prepare = prepare
        self._sampling = sampling
        self.concurrency = concurrency
        self.running: dict[UUID, Attempt] = {}
        self._leaving: set[Attempt] = set()
        """Attempts that lost their claim but whose work has not ended yet. They still occupy a slot."""
        self._unrunnable = Unrunnable(clock)
        self._store = store
        self._runners = runners
        self._clock = clock
        self._hints = hints
        self._observer = observer
        self._queue_names = queues
        self._queues: list[tuple[UUID, str]] = []
        self._queues_at = float("-inf")
        self._lease_s = lease_s
        self._poll_s = poll_s
        self._reach = reach
        """None: no broker is used; the worker claims everything from the database."""
        self._claiming = 0
        """Slots reserved for claims that are in progress."""
        self._on_room: list[Callable[[], None]] = []
        self._versions = Versions(store)
        self.settler = Settler(worker_id, store, hints, observer, journal, clock)
        self.settler.on_retrying = self._poll_again_in
        self._again_at: list[float] = []
        self._is_draining = False
        self._is_resting = False
        self._has_plenty = False
        """Whether the last claim returned as many executions as it asked for, in full batches."""
        self._idle: asyncio.Event | None = None
        hints.listen(Hint.READY, self._ready)

    def _ready(self, _ids: tuple[UUID, ...]) -> None:
        self.wake.set()

    async def step(self) -> float | None:
        if self.is_draining:
            return None
        scope = None if self._reach is None else self._reach.scope()
        if scope is not None and scope.is_empty:
            return self._pause_s()
        room = self.room
        if self._has_plenty and room >= 2 * CLAIM_BATCH:
            # Two claims overlap: while one commits, the other is read and started.
            batches = [CLAIM_BATCH, CLAIM_BATCH]
        else:
            batches = [min(room, CLAIM_BATCH)]
        # Reserve slots now, not when a claim begins: a receiver may check for free slots in between.
        with self._reserved(sum(batches)):
            counts = await asyncio.gather(
                *(self._claim(limit, scope) for limit in batches), return_exceptions=True
            )
        self._tell_load()
        for failure in counts:
            if isinstance(failure, BaseException):
                raise failure
        if self._reach is not None:
            self._reach.note_claim(scope, has_plenty=any(counts) and counts == batches)
        self._has_plenty = counts == [CLAIM_BATCH] * len(batches)
        return 0.0 if any(counts) and not self._is_full else self._pause_s()

    @property
    def is_draining(self) -> bool:
        """Whether the worker claims no more, because it is stopping or an operator asked it to drain."""
        return self._is_draining or self._is_resting

    def rest(self, is_resting: bool) -> None:
        """Stop claiming and let running attempts finish (True), or claim again (False)."""
        if is_resting != self._is_resting:
            self._is_resting = is_resting
            self.wake.set()
            self._tell_room()

    @property
    def room(self) -> int:
        """Number of free slots: how many more executions may be claimed."""
        return max(0, self.concurrency - self._load - self._claiming)

    def on_room(self, listener: Callable[[], None]) -> None:
        """Register a callback for when slots may be free again, and for when the worker starts or stops
        draining."""
        self._on_room.append(listener)

    async def broker_queues(self, priorities: Sequence[Priority]) -> list[BrokerQueue]:
        """Return the broker queues that hold this worker's messages, for the given priorities."""
        names = sorted({queue for _host_id, queue in await self._known_queues()})
        return [BrokerQueue(name, priority) for priority in priorities for name in names]

    @property
    def _is_full(self) -> bool:
        return self._load >= self.concurrency

    @property
    def _load(self) -> int:
        return len(self.running) + len(self._leaving)

    def _poll_again_in(self, seconds: float) -> None:
        """Poll again in this many seconds, when an execution that failed here may be retried. No hint
        announces it."""
        heappush(self._again_at, self._clock.monotonic() + seconds)
        self.wake.set()

    def _pause_s(self) -> float:
        """Return the seconds until the next poll, or until an execution that failed here may be retried."""
        now = self._clock.monotonic()
        while self._again_at and self._again_at[0] <= now:
            heappop(self._again_at)
        poll_s = self._poll_s if self._reach is None else self._reach.pause_s(self._poll_s)
        return min(poll_s, self._again_at[0] - now) if self._again_at else poll_s

    # --- claim and run ----------------------------------------------------------------------------

    async def take(self, execution_ids: Sequence[UUID]) -> int:
        """Claim and start those of the given executions that can be claimed; return their number."""
        unique = list(dict.fromkeys(execution_ids))
        with self._reserved(len(unique)):
            queues = await self._known_queues()
            count = await self._begin(
                await self._store.claim_some(
                    self.worker_id,
                    queues,
                    unique,
                    lease_s=self._lease_s,
                    excluding=self._unrunnable.passed_over(),
                )
            )
        self._tell_load()
        return count

    async def _claim(self, limit: int, scope: ClaimScope | None) -> int:
        if limit < 1:
            return 0
        queues = await self._known_queues()
        return await self._begin(
            await self._store.claim(
                self.worker_id,
                queues,
                limit=limit,
                lease_s=self._lease_s,
                scope=scope,
                excluding=self._unrunnable.passed_over(),
            )
        )

    @contextlib.contextmanager
    def _reserved(self, count: int) -> Iterator[None]:
        """Reserve slots, so that claims by polling and claims after a message don't use the same slots."""
        self._claiming += count
        try:
            yield
        finally:
            self._claiming -= count
            self._tell_room()

    async def _begin(self, claims: Sequence[Claim]) -> int:
        if not claims:
            return 0
        self._observer.notify(ExecutionsClaimed(self.worker_id, [_claimed(claim) for claim in claims]))
        try:
            specs = await self._versions.of(claims)
        except Exception:
            # They are claimed, but can't be started. Hand them back, so that they need no rescue.
            self._hand_back(claims, retry_in_s=HAND_BACK_PAUSE_S)
            raise
        if self._is_draining:
            self._hand_back(claims)
            return 0
        for claim in claims:
            self._start(claim, specs.get((claim.schedule_id, claim.aggregate_version)))
        return len(claims)

    def _hand_back(self, claims: Sequence[Claim], retry_in_s: float = 0.0) -> None:
        for claim in claims:
            self.settler.settle(Settlement(claim, Status.PENDING, Status.PENDING, retry_in_s))

    def forget_queues(self) -> None:
        """Clear the cached list of queues. The next claim reads it from the database."""
        self._queues = []

    async def _known_queues(self) -> list[tuple[UUID, str]]:
        if self._clock.monotonic() - self._queues_at >= QUEUES_EVERY_S or not self._queues:
            self._queues = await self._store.queues(self._queue_names)
            self._queues_at = self._clock.monotonic()
        return self._queues

    def _start(self, claim: Claim, spec: ScheduleSpec | None) -> None:
        attempt = Attempt(claim, spec, self.journal, self._clock, self._sampling)
        self.journal.begin()
        earlier = self.running.get(claim.execution_id)
        if earlier is not None:
            # It was rescued, and this worker claimed it again before the earlier attempt had stopped.
            earlier.stop(None)
            self._leaving.add(earlier)
        self.running[claim.execution_id] = attempt
        attempt.start(self._runners, self._prepare, self._finished)

    def _finished(self, attempt: Attempt, ended: Ended) -> None:
        was_full = self._is_full
        if self.running.get(attempt.claim.execution_id) is attempt:
            del self.running[attempt.claim.execution_id]
        self._leaving.discard(attempt)
        self.journal.end()
        if isinstance(ended, Handover):
            self.settler.accept(ended)
        elif ended is not None:
            self.settler.settle(self._left_to_others(ended))
        if was_full:
            self.wake.set()
            self._tell_room()
        if not self._load and self._idle is not None:
            self._idle.set()

    def _left_to_others(self, ended: Settlement) -> Settlement:
        """Exclude a version that can't run here from later claims, and let others claim it without delay."""
        if ended.status is not Status.PENDING or ended.error is None:
            return ended
        claim = ended.claim
        is_passed_over = self._unrunnable.add((claim.schedule_id, claim.aggregate_version))
        return ended._replace(retry_in_s=0.0) if is_passed_over else ended

    def _tell_room(self) -> None:
        for listener in self._on_room:
            listener()

    def _tell_load(self) -> None:
        self._observer.notify(WorkerLoadChanged(self.worker_id, len(self.running), self.concurrency))

    # --- stopping ---------------------------------------------------------------------------------

    async def drain(self, grace_s: float) -> None:
        """Stop claiming, let running attempts finish within `grace_s` seconds, then hand back the rest."""
        self._is_draining = True
        self._tell_room()
        await self._idle_within(grace_s)
        for attempt in list(self.running.values()):
            attempt.stop(Status.PENDING)
        await self._idle_within(STOPPING_S + 1)
        await self.settler.write_within(min(self._lease_s, max(grace_s, LAST_WORDS_S)))

    async def _idle_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.idle()

    async def idle(self) -> None:
        """Wait until no attempt is running."""
        if self._load:
            self._idle = asyncio.Event()
            await self._idle.wait()


def _claimed(claim: Claim) -> ClaimedExecution:
    delay_s = (claim.started_ts - claim.ready_ts).total_seconds()
    return ClaimedExecution(
        claim.execution_id,
        claim.schedule_id,
        claim.attempt,
        claim.queue,
        claim.priority,
        delay_s,
        claim.trace_context,
    )

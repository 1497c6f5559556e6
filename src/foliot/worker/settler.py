"""Writes the results of ended attempts in batches, independently of claiming and renewing."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence

from foliot.db.hints import Hint, Hints
from foliot.model.attempt import Settled, Settlement
from foliot.model.errors import DatabaseUnreachableError, UnstorableError
from foliot.model.event import ExecutionsCancelled, ExecutionsSettled, Observer, SettledExecution
from foliot.model.execution import FINAL, Status
from foliot.service import Wake
from foliot.timing.clock import Clock
from foliot.worker.attempt import Handover
from foliot.worker.journal import Journal
from foliot.worker.work_sql import Work

BATCH = 500
AGAIN_S = 0.2


class Settler:
    """A service that writes settlements and handovers. What can't be written is kept and retried."""

    name = "settling"

    def __init__(
        self,
        worker_id: str,
        store: Work,
        hints: Hints,
        observer: Observer,
        journal: Journal,
        clock: Clock,
    ) -> None:
        self.wake = Wake()
        self.on_retrying: Callable[[float], None] | None = None
        """Called with the seconds until a retry, for each execution that will be retried."""
        self._worker_id = worker_id
        self._store = store
        self._hints = hints
        self._observer = observer
        self._journal = journal
        self._clock = clock
        self._ended: list[Settlement] = []
        self._handovers: list[Handover] = []
        self._turn = asyncio.Lock()

    def settle(self, settlement: Settlement) -> None:
        self._ended.append(settlement)
        self.wake.set()

    def accept(self, handover: Handover) -> None:
        self._handovers.append(handover)
        self.wake.set()

    async def step(self) -> float | None:
        await self.write()
        return None

    async def write(self) -> None:
        """Write the results of all attempts that have ended so far."""
        async with self._turn:
            if self._ended:
                # Write the journal first: once an execution has ended, all its log lines must be visible.
                await self._journal.write()
            while self._ended:
                batch, self._ended = self._ended[:BATCH], self._ended[BATCH:]
                await self._write_or_keep(batch)
            while self._handovers:
                await self._hand_over(self._handovers[0])
                self._handovers.pop(0)

    async def write_within(self, seconds: float) -> None:
        """Write before shutdown. Retry for up to this many seconds while writing fails."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    try:
                        return await self.write()
                    except Exception:
                        await asyncio.sleep(AGAIN_S)

    async def _write_or_keep(self, batch: Sequence[Settlement]) -> None:
        try:
            await self._write_batch(batch)
        except (DatabaseUnreachableError, asyncio.CancelledError):
            # It is unknown whether they were written. Writing again is safe: the store refuses those already
            # settled.
            self._ended = [*batch, *self._ended]
            raise
        except Exception:
            # Write them one by one: one that can't be written must not block the others.
            if len(batch) == 1:
                self._ended.extend(batch)
                raise
            failure: Exception | None = None
            for each in batch:
                try:
                    await self._write_or_keep([each])
                except DatabaseUnreachableError:
                    raise
                except Exception as error:
                    failure = error
            if failure is not None:
                raise failure from None

    async def _write_batch(self, batch: Sequence[Settlement]) -> None:
        try:
            async with self._journal.rows:
                outcome = await self._store.settle(self._worker_id, batch)
        except UnstorableError as error:
            if len(batch) > 1:
                raise
            batch = [_unstorable(batch[0], error)]
            async with self._journal.rows:
                outcome = await self._store.settle(self._worker_id, batch)
        self._tell(batch, outcome)

    async def _hand_over(self, handover: Handover) -> None:
        claim, external_id, lease_s = handover
        try:
            accepted = await self._store.accept(
                self._worker_id, claim, lease_s=lease_s, external_id=external_id
            )
        except UnstorableError:
            accepted = await self._store.accept(self._worker_id, claim, lease_s=lease_s, external_id=None)
        if not accepted.is_open:
            self._hints.send(Hint.ENDED)
        if accepted.cancelled:
            self._observer.notify(ExecutionsCancelled(accepted.cancelled))

    def _tell(self, batch: Sequence[Settlement], outcome: Settled) -> None:
        settled = batch if outcome == Settled() else list(_as_written(batch, outcome))
        now = self._clock.monotonic()
        self._observer.notify(
            ExecutionsSettled(
                self._worker_id, [_settled(each, now) for each in settled], tuple(outcome.refused)
            )
        )
        statuses = {each.status for each in settled}
        if not statuses.isdisjoint(FINAL):
            self._hints.send(Hint.ENDED)
        delays = tuple(each.claim.schedule_id for each in settled if each.is_delay)
        if delays:
            self._hints.send(Hint.SCHEDULES, delays)
        if Status.PENDING in statuses:
            self._hints.send(Hint.READY)
        if Status.RETRYING in statuses and self.on_retrying is not None:
            for each in settled:
                if each.status is Status.RETRYING:
                    self.on_retrying(each.retry_in_s)


def _as_written(batch: Sequence[Settlement], outcome: Settled) -> Iterator[Settlement]:
    for each in batch:
        if each.claim.execution_id in outcome.cancelled:
            yield each._replace(status=Status.CANCELLED)
        elif each.claim.execution_id not in outcome.refused:
            yield each


def _unstorable(settlement: Settlement, error: Exception) -> Settlement:
    """Replace result and error of a settlement by an error text, because the database can't store them."""
    message = f"what it returned or raised could not be stored: {type(error).__name__}"
    return settlement._replace(result=None, error=message, traceback=None)


def _settled(each: Settlement, now: float) -> SettledExecution:
    claim, ended_at = each.claim, each.ended_at
    return SettledExecution(
        claim.execution_id,
        claim.schedule_id,
        claim.attempt,
        each.status,
        each.duration_s,
        each.error,
        each.schedule_name,
        claim.queue,
        claim.started_ts,
        0.0 if ended_at is None else now - ended_at,
        each.agent_url,
        claim.trace_context,
        each.attempt_status,
    )

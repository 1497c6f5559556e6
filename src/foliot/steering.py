"""What people and agents do to schedules and executions, each with the hint that makes it quick.

One place, so that the SDK, the API and the tests steer in the same way: write, then wake whoever waits.
"""

import contextlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic_core import to_json

from foliot.model.backfill import Backfill
from foliot.model.calendar import CalendarSpec
from foliot.model.errors import FoliotError, IllegalTransitionError, InvalidError
from foliot.model.event import ExecutionsSettled, Observer, SettledExecution
from foliot.model.execution import FINAL, Execution, Status, TriggeredBy
from foliot.model.policy import OverlapPolicy
from foliot.model.schedule import Schedule, ScheduleSpec
from foliot.planning.change import Author, delete, pause, resume
from foliot.security.callback import CallbackTokens
from foliot.security.kept import NOTHING_HIDDEN, kept_result, kept_text
from foliot.security.secrets import Redactor, SecretError, SecretResolver, references
from foliot.store.agents import RunningAttempt
from foliot.store.hints import Hint, Hints
from foliot.store.protocol import Claim, Settlement
from foliot.store.settlement import settlement_of
from foliot.store.sql import SqlStore
from foliot.timing.clock import ClusterClock


class BadTokenError(FoliotError):
    """The token was not made for this execution, or for an attempt that another has followed."""

    def __init__(self, execution_id: UUID) -> None:
        super().__init__(f"the token is not valid for execution {execution_id} or its present attempt")
        self.execution_id = execution_id


class Steering:
    def __init__(
        self,
        store: SqlStore,
        hints: Hints,
        observer: Observer,
        clock: ClusterClock,
        secrets: SecretResolver | None = None,
    ) -> None:
        self._secrets = secrets
        self._store = store
        self._hints = hints
        self._observer = observer
        self._clock = clock

    # --- schedules --------------------------------------------------------------------------------

    async def pause(self, schedule_id: UUID, author: Author, *, until_ts: datetime | None = None) -> Schedule:
        changed = await self._store.schedules.change(
            schedule_id, lambda known, now: pause(known, now=now, author=author, until_ts=until_ts), author
        )
        return self._changed(changed)

    async def resume(self, schedule_id: UUID, author: Author) -> Schedule:
        changed = await self._store.schedules.change(
            schedule_id, lambda known, now: resume(known, now=now, author=author), author
        )
        return self._changed(changed)

    async def delete(self, schedule_id: UUID, author: Author) -> Schedule:
        changed = await self._store.schedules.change(
            schedule_id, lambda known, now: delete(known, now=now, author=author), author
        )
        return self._changed(changed)

    def _changed(self, schedule: Schedule) -> Schedule:
        self._hints.send(Hint.SCHEDULES, (schedule.schedule_id,))
        return schedule

    async def trigger(
        self,
        schedule_id: UUID,
        *,
        by: TriggeredBy,
        user: str | None,
        args: Mapping[str, Any] | None = None,
    ) -> UUID:
        """Run it now, besides its own times."""
        if args is not None and _has_nul(args):
            raise InvalidError.at("/args", "nul", "must not contain NUL characters", "leave them out")
        execution_id = await self._store.schedules.trigger(schedule_id, by=by, user=user, args=args)
        self._hints.send(Hint.READY)
        await self._tell_replaced(schedule_id)
        return execution_id

    async def _tell_replaced(self, schedule_id: UUID) -> None:
        """A run that was added may have taken the place of one that runs."""
        schedule = await self._store.schedules.get(schedule_id)
        if schedule.spec.overlap.policy is OverlapPolicy.CANCEL_RUNNING:
            self._hints.send(Hint.CANCEL)

    async def backfill(
        self, schedule_id: UUID, from_ts: datetime, to_ts: datetime, *, by: str | None
    ) -> Backfill:
        """Run it for the times that it would have had in a range, paced."""
        backfill = await self._store.backfills.create(schedule_id, from_ts, to_ts, by=by)
        self._hints.send(Hint.BACKFILL)
        return backfill

    # --- executions -------------------------------------------------------------------------------

    async def cancel(
        self, execution_id: UUID, *, by: str | None, reason: str | None = None, host_id: UUID | None = None
    ) -> Execution:
        """Stop it: at once what waits, within a second what runs."""
        execution = await self._store.executions.cancel(execution_id, by=by, reason=reason, host_id=host_id)
        self._hints.send(Hint.ENDED if execution.status in FINAL else Hint.CANCEL, (execution_id,))
        return execution

    async def retry(self, execution_id: UUID, *, by: str | None, host_id: UUID | None = None) -> Execution:
        """Try an execution that has ended badly once more, with its whole budget of attempts."""
        execution = await self._store.executions.retry(execution_id, by=by, host_id=host_id)
        self._hints.send(Hint.READY)
        await self._tell_replaced(execution.schedule_id)
        return execution

    async def set_calendar(self, host_id: UUID, spec: CalendarSpec, author: Author) -> None:
        await self._store.calendars.put(host_id, spec, author)
        self._hints.send(Hint.SCHEDULES)

    async def delete_calendar(self, host_id: UUID, name: str) -> None:
        await self._store.calendars.delete(host_id, name)
        self._hints.send(Hint.SCHEDULES)

    async def pause_queue(self, host_id: UUID, queue: str, *, is_paused: bool) -> None:
        """Let workers claim nothing from a queue, or again; what runs goes on."""
        await self._store.work.pause_queue(host_id, queue, is_paused=is_paused)
        self._hints.send(Hint.READY)

    # --- agents -----------------------------------------------------------------------------------

    async def agent_progress(
        self, tokens: CallbackTokens, token: str, execution_id: UUID, fraction: float, text: str
    ) -> None:
        running = await self._trusted(tokens, token, execution_id)
        spec = await self._spec_of(running.claim)
        redactor = await self._redactor(running.claim, spec)
        progress = {"fraction": fraction, "text": kept_text(text, redactor)}
        if not await self._store.agents.progress(running.claim, progress):
            raise IllegalTransitionError(execution_id, running.status, Status.RUNNING)

    async def agent_complete(
        self,
        tokens: CallbackTokens,
        token: str,
        execution_id: UUID,
        *,
        status: Status,
        result: Any = None,
        error: str | None = None,
    ) -> Status:
        """Settle what an agent has finished. A failure is tried again as the schedule's policy says."""
        claim, worker_id, _ = await self._trusted(tokens, token, execution_id)
        spec = await self._spec_of(claim)
        redactor = await self._redactor(claim, spec)
        now = self._clock.now()
        ended = settlement_of(
            claim, spec, status, now=now, duration_s=max(0.0, (now - claim.started_ts).total_seconds())
        )
        settlement = ended._replace(
            result=kept_result(result, redactor),
            error=None if error is None else kept_text(error, redactor),
        )
        if await self._store.work.settle(worker_id, [settlement]):
            raise IllegalTransitionError(execution_id, "no longer running", status)
        self._tell(worker_id, settlement)
        return settlement.status

    async def _spec_of(self, claim: Claim) -> ScheduleSpec | None:
        version = (claim.schedule_id, claim.aggregate_version)
        return (await self._store.work.specs([version])).get(version)

    async def _redactor(self, claim: Claim, spec: ScheduleSpec | None) -> Redactor:
        """Hides the secrets that the agent was sent: it may say them back."""
        names = references(spec.target.model_dump(mode="json")) if spec is not None else frozenset()
        if not names or self._secrets is None:
            return NOTHING_HIDDEN
        with contextlib.suppress(SecretError):  # gone since: there is nothing left to hide
            return Redactor((await self._secrets.values(claim.host_id, names)).values())
        return NOTHING_HIDDEN

    async def _trusted(self, tokens: CallbackTokens, token: str, execution_id: UUID) -> RunningAttempt:
        running = await self._store.agents.attempt(execution_id)
        if not tokens.is_valid(token, execution_id, running.claim.attempt):
            raise BadTokenError(execution_id)
        if running.status is not Status.RUNNING:
            raise IllegalTransitionError(execution_id, running.status, Status.RUNNING)
        return running

    def _tell(self, worker_id: str, settlement: Settlement) -> None:
        claim = settlement.claim
        told = SettledExecution(
            claim.execution_id,
            claim.schedule_id,
            claim.attempt,
            settlement.status,
            settlement.duration_s,
            settlement.error,
        )
        self._observer.notify(ExecutionsSettled(worker_id, [told], ()))
        self._hints.send(Hint.ENDED if settlement.status in FINAL else Hint.READY)
        if settlement.is_delay:
            self._hints.send(Hint.SCHEDULES, (claim.schedule_id,))


def _has_nul(document: Any) -> bool:
    return "\\u0000" in to_json(document).decode()

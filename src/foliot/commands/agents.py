"""Reports of agents that run an execution asynchronously: progress and the final result."""

import contextlib
from typing import Any
from uuid import UUID

from foliot.access.callback_tokens import CallbackTokens, key_in
from foliot.access.cipher import UndecipherableError
from foliot.access.sealed_secrets import unseal
from foliot.access.secrets import Redactor, references
from foliot.access.stored_text import NOTHING_HIDDEN, kept_result, kept_text
from foliot.commands.agents_sql import Agents, RunningAttempt
from foliot.db.database import Database
from foliot.db.hints import Hint, Hints
from foliot.model.attempt import Claim, Settlement
from foliot.model.errors import BadTokenError, IllegalTransitionError
from foliot.model.event import ExecutionsSettled, Observer, SettledExecution
from foliot.model.execution import FINAL, Status
from foliot.model.schedule import ScheduleSpec
from foliot.planning.settlement import settlement_of
from foliot.timing.clock import ClusterClock
from foliot.worker.work_sql import Work

WITHHELD = (
    "withheld: the secrets that this attempt was sent with can't be read any more, "
    "so they could not be redacted from what the agent reported"
)


class AgentCommands:
    def __init__(
        self,
        database: Database,
        hints: Hints,
        observer: Observer,
        clock: ClusterClock,
    ) -> None:
        self._agents = Agents(database)
        self._work = Work(database)
        self._hints = hints
        self._observer = observer
        self._clock = clock

    async def progress(self, running: RunningAttempt, fraction: float, text: str) -> None:
        redactor = _redactor(running, await self._spec_of(running.claim))
        progress = {"fraction": fraction, "text": _kept_text(text, redactor)}
        if not await self._agents.progress(running.claim, progress):
            raise IllegalTransitionError(running.claim.execution_id, running.status, Status.RUNNING)

    async def complete(
        self,
        running: RunningAttempt,
        *,
        status: Status,
        result: Any = None,
        error: str | None = None,
    ) -> Status:
        """Settle the attempt that an agent has finished. A failure is retried by the schedule's retry policy.

        Return the new status. Raises IllegalTransitionError if the attempt no longer runs.
        """
        claim, worker_id = running.claim, running.worker_id
        spec = await self._spec_of(claim)
        redactor = _redactor(running, spec)
        now = self._clock.now()
        ended = settlement_of(
            claim,
            spec,
            status,
            now=now,
            duration_s=max(0.0, (now - claim.started_ts).total_seconds()),
            ended_at=self._clock.monotonic(),
        )
        settlement = ended._replace(
            result=_kept_result(result, redactor),
            error=None if error is None else _kept_text(error, redactor),
        )
        outcome = await self._work.settle(worker_id, [settlement])
        if outcome.refused:
            raise IllegalTransitionError(claim.execution_id, "no longer running", status)
        if outcome.cancelled:
            settlement = settlement._replace(status=Status.CANCELLED)
        self._tell(worker_id, settlement)
        return settlement.status

    async def _spec_of(self, claim: Claim) -> ScheduleSpec | None:
        version = (claim.schedule_id, claim.aggregate_version)
        return (await self._work.specs([version])).get(version)

    async def authenticate(self, tokens: CallbackTokens, token: str, execution_id: UUID) -> RunningAttempt:
        """Return the attempt that the token was made for.

        Raises BadTokenError, NotFoundError, and IllegalTransitionError if the attempt has ended. The attempt
        can still end after this check: `progress` and `complete` check again in their write.
        """
        running = await self._agents.attempt(execution_id)
        if not tokens.is_valid(token, execution_id, running.claim.attempt):
            raise BadTokenError(execution_id)
        if running.status is not Status.RUNNING:
            raise IllegalTransitionError(execution_id, running.status, Status.RUNNING)
        return running._replace(sealed_key=key_in(token))

    def _tell(self, worker_id: str, settlement: Settlement) -> None:
        claim = settlement.claim
        settled = SettledExecution(
            claim.execution_id,
            claim.schedule_id,
            claim.attempt,
            settlement.status,
            settlement.duration_s,
            settlement.error,
            settlement.schedule_name,
            claim.queue,
            claim.started_ts,
            0.0 if settlement.ended_at is None else self._clock.monotonic() - settlement.ended_at,
            settlement.agent_url,
            claim.trace_context,
            settlement.attempt_status,
        )
        self._observer.notify(ExecutionsSettled(worker_id, [settled], ()))
        self._hints.send(Hint.ENDED if settlement.status in FINAL else Hint.READY)
        if settlement.is_delay:
            self._hints.send(Hint.SCHEDULES, (claim.schedule_id,))


def _redactor(running: RunningAttempt, spec: ScheduleSpec | None) -> Redactor | None:
    """Return a redactor for the secrets that the agent received. None: their values are unknown.

    It uses the values that were sent, because a secret may have changed since.
    """
    if running.sealed_key and running.sealed is not None:
        with contextlib.suppress(UndecipherableError):
            return Redactor(unseal(running.sealed, running.sealed_key))
        return None
    is_free = spec is not None and not references(spec.target.model_dump(mode="json"))
    return NOTHING_HIDDEN if is_free else None


def _kept_text(text: str, redactor: Redactor | None) -> str:
    return WITHHELD if redactor is None and text else kept_text(text, redactor or NOTHING_HIDDEN)


def _kept_result(result: Any, redactor: Redactor | None) -> str | None:
    is_withheld = redactor is None and result is not None
    return kept_result(WITHHELD if is_withheld else result, redactor or NOTHING_HIDDEN)

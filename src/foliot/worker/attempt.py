"""One attempt: run the target under its timeout and return how it ended."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from foliot.access.secrets import Redactor
from foliot.access.stored_text import NOTHING_HIDDEN, kept_end, kept_result, kept_text
from foliot.kinds.function_target import RemoteFailedError, UnknownTaskError
from foliot.kinds.target_protocol import (
    PASSED_ON,
    TIMED_OUT,
    AcceptedByAgent,
    Assignment,
    AttemptFailedError,
    Fire,
    LogLine,
    TargetRunner,
)
from foliot.kinds.task_failures import error_of, traceback_of
from foliot.model.attempt import Claim, Settlement
from foliot.model.errors import FoliotError
from foliot.model.execution import Status
from foliot.model.kind import TARGETS
from foliot.model.redaction import hiding, running
from foliot.model.schedule import ScheduleSpec
from foliot.model.trace import Sampling, execute_span, sampled_by_caller
from foliot.planning.settlement import settlement_of
from foliot.timing.clock import ClusterClock
from foliot.worker.journal import AttemptJournal, Journal

UNKNOWN_TASK_PAUSE_S = 5.0
"""Seconds before an execution that can't run here is offered again, if too many versions are excluded
already."""
STOPPING_S = 5.0
"""How long stopped work may take to end. A process is killed sooner. A coroutine that ignores its
cancellation, or a thread, is left running after this time, and the attempt is reported as stopped."""


_WHY_STOPPED = {None: PASSED_ON, Status.PENDING: PASSED_ON, Status.TIMEOUT: TIMED_OUT}


class StopDecision(NamedTuple):
    """How to settle an attempt that was stopped. Status None: don't settle it."""

    status: Status | None
    error: str | None = None


class UnreadableVersionError(FoliotError):
    """This worker can't parse the schedule version of an execution. A newer worker may be able to."""

    def __init__(self, claim: Claim) -> None:
        super().__init__(
            f"version {claim.aggregate_version} of schedule {claim.schedule_id} can't be read by this worker"
        )


class UnknownKindError(FoliotError):
    """This worker can't run targets of this kind. Another worker may be able to."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"this worker can't run targets of kind {kind}: {TARGETS[kind].remedy}")


class Handover(NamedTuple):
    """An attempt that an agent has accepted and continues on its own."""

    claim: Claim
    external_id: str | None
    lease_s: float


Ended = Settlement | Handover | None
"""How an attempt ended for this worker. None: the worker no longer held the execution."""

Prepare = Callable[[UUID, dict[str, Any]], Awaitable[tuple[dict[str, Any], Redactor]]]
"""Puts a host's secrets into the arguments. Returns them with a redactor that removes the secrets from
everything that is stored."""


async def as_given(_host_id: UUID, args: dict[str, Any]) -> tuple[dict[str, Any], Redactor]:
    return args, NOTHING_HIDDEN


class Attempt:
    """A claimed execution and the task that runs it.

    The attempt ends when its work ends, or when stopped work has not ended after STOPPING_S. `on_ended` is
    called exactly once, and never from within `start` or `stop`.
    """

    __slots__ = (
        "_ending",
        "_journal",
        "_on_ended",
        "_page",
        "_redactor",
        "_sampling",
        "_started_at",
        "_timer",
        "claim",
        "clock",
        "spec",
        "task",
    )

    def __init__(
        self,
        claim: Claim,
        spec: ScheduleSpec | None,
        journal: Journal,
        clock: ClusterClock,
        sampling: Sampling = sampled_by_caller,
    ) -> None:
        self.claim = claim
        self.spec = spec
        self._journal = journal
        self._page: AttemptJournal | None = None
        self.clock = clock
        self.task: asyncio.Task[Any] | None = None
        self._on_ended: Callable[[Attempt, Ended], None] | None = None
        self._started_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._ending: StopDecision | None = None
        self._redactor = NOTHING_HIDDEN
        self._sampling = sampling

    def start(
        self,
        runners: Mapping[str, TargetRunner],
        prepare: Prepare,
        on_ended: "Callable[[Attempt, Ended], None]",
    ) -> None:
        self._on_ended = on_ended
        self._started_at = self.clock.monotonic()
        self.task = asyncio.create_task(self._carry_out(runners, prepare))
        self.task.add_done_callback(self._done)
        if self.spec is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self.spec.timeout_seconds, self._expire)

    def stop(self, status: Status | None, error: str | None = None) -> None:
        """Stop the work and settle it with this status. None: don't settle it, because the claim is lost."""
        if self.task is None or self.task.done() or self._ending is not None:
            return
        self._ending = StopDecision(status, error)
        self.task.cancel(_WHY_STOPPED.get(status))
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(STOPPING_S, self._end, self._ending)

    def _expire(self) -> None:
        assert self.spec is not None
        self.stop(Status.TIMEOUT, f"stopped after timeout_seconds ({self.spec.timeout_seconds:g} s)")

    # --- work -------------------------------------------------------------------------------------

    async def _carry_out(self, runners: Mapping[str, TargetRunner], prepare: Prepare) -> Any:
        spec, claim = self.spec, self.claim
        if spec is None:
            raise UnreadableVersionError(claim)
        runner = runners.get(spec.target.kind)
        if runner is None:
            raise UnknownKindError(spec.target.kind)
        fire = Fire(
            claim.execution_id,
            claim.schedule_id,
            spec.name,
            claim.fire_ts,
            claim.attempt,
            self._report,
            self._traceparent,
        )
        args: dict[str, Any] = dict(getattr(spec.target, spec.target.arguments_field, {}))
        if args:
            # Resolve secrets only in the schedule's own arguments. A user who may trigger a schedule must not
            # be able to read any secret by passing a reference to it.
            args, self._redactor = await prepare(claim.host_id, args)
            self._hide()
        args = {**args, **(claim.args or {})}
        return await runner.run(
            Assignment(fire, spec, args, claim.host_id, self._log, self._keep_external_id)
        )

    def _hide(self) -> None:
        """Redact this attempt's secrets in the process's log."""
        if self._redactor.forms:
            hiding.set(self._redactor.text)
            running.add(self._redactor.forms)

    def _traceparent(self) -> str:
        claim = self.claim
        context = execute_span(claim.execution_id, claim.attempt, claim.trace_context)
        is_kept = self._sampling(context.trace_id, claim.trace_context)
        return str(context._replace(is_sampled=is_kept))

    def _report(self, fraction: float, text: str) -> None:
        self._opened().report(fraction, self._redactor.text(text))

    def _log(self, line: LogLine) -> None:
        self._opened().log(line._replace(message=self._redactor.text(line.message)))

    def _keep_external_id(self, external_id: str) -> None:
        self._opened().keep_external_id(external_id)

    def _opened(self) -> AttemptJournal:
        # Opened on first use: most attempts report nothing. Two threads of one attempt may get here at once.
        with self._journal.lock:
            if self._page is None:
                self._page = self._journal.open(self.claim)
            return self._page

    # --- end of the attempt -----------------------------------------------------------------------

    def _done(self, task: asyncio.Task[Any]) -> None:
        running.remove(self._redactor.forms)
        failure = None if task.cancelled() else task.exception()
        if self._ending is not None:
            self._end(self._ending)
        elif task.cancelled():
            self._settle(Status.FAILED, error="CancelledError: the work cancelled itself")
        elif failure is None:
            self._succeed(task.result())
        elif isinstance(failure, UnknownTaskError | UnknownKindError | UnreadableVersionError):
            self._tell(self._left_to_others(str(failure)))
        elif isinstance(failure, AttemptFailedError):
            self._settle(Status.FAILED, failure.result, str(failure), refusal=failure)
        else:
            error, trace = _error_and_traceback(failure)
            self._settle(Status.FAILED, None, error, trace)

    def _succeed(self, value: Any) -> None:
        if isinstance(value, AcceptedByAgent):
            assert self.spec is not None
            self._tell(Handover(self.claim, value.external_id, self.spec.timeout_seconds))
        else:
            spec, ended_at = self.spec, self.clock.monotonic()
            self._tell(
                Settlement(
                    self.claim,
                    Status.SUCCESS,
                    Status.SUCCESS,
                    result=kept_result(value, self._redactor),
                    duration_s=ended_at - self._started_at,
                    is_delay=spec is not None and spec.trigger.counts_from_end,
                    schedule_name=None if spec is None else spec.name,
                    ended_at=ended_at,
                )
            )

    def _end(self, ending: StopDecision) -> None:
        """End a stopped attempt: its work has ended, or has not ended in time."""
        if ending.status is None:
            self._tell(None)
        else:
            self._settle(ending.status, error=ending.error)

    def _settle(
        self,
        status: Status,
        result: Any = None,
        error: str | None = None,
        trace: str | None = None,
        refusal: AttemptFailedError | None = None,
    ) -> None:
        ended_at = self.clock.monotonic()
        settlement = settlement_of(
            self.claim,
            self.spec,
            status,
            now=self.clock.now(),
            duration_s=ended_at - self._started_at,
            ended_at=ended_at,
            is_permanent=refusal is not None and refusal.is_permanent,
            retry_after_s=None if refusal is None else refusal.retry_after_s,
        )
        if result is not None or error is not None:
            settlement = settlement._replace(
                result=kept_result(result, self._redactor),
                error=None if error is None else kept_text(error, self._redactor),
                traceback=None if trace is None else kept_end(trace, self._redactor),
            )
        self._tell(settlement)

    def _tell(self, ended: Ended) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._on_ended is not None:
            tell, self._on_ended = self._on_ended, None
            tell(self, ended)

    def _left_to_others(self, why: str) -> Settlement:
        """Hand the execution back, without counting a failure or an attempt. Another worker may run it."""
        return Settlement(
            self.claim,
            attempt_status=Status.PENDING,
            status=Status.PENDING,
            retry_in_s=UNKNOWN_TASK_PAUSE_S,
            error=why,
        )


def _error_and_traceback(failure: BaseException) -> tuple[str, str | None]:
    """Return error and traceback of a failure. A RemoteFailedError carries those of the other process."""
    if isinstance(failure, RemoteFailedError):
        return str(failure), failure.remote_traceback
    return error_of(failure), traceback_of(failure)

"""The `celery` target: runs one task of an existing Celery application per attempt, and follows it.

    send     by name, as JSON, with a task id computed from the execution and the attempt
    follow   poll its state in the result backend: progress while it runs, then its result or traceback
    revoke   when the attempt is cancelled or exceeds its timeout

After a crash, the task goes on without an attempt. The next attempt computes the task ids of earlier attempts
and asks the backend. A task that runs or has succeeded is followed, not sent again. A task that has not
started is revoked, so that it does not run beside the new one. An attempt that is passed on (its worker
stops, or could not renew) leaves its task to the next attempt in the same way.

Without a result backend that others can read, tasks can't be followed. Then a message that the broker
accepted counts as a success.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import UTC
from typing import Any, ClassVar, Literal
from uuid import UUID, uuid5

from pydantic import Field, JsonValue

from foliot.access.secrets import NAME, Redactor, SecretError, SecretResolver, references, resolve
from foliot.access.stored_text import kept_end
from foliot.brokers.celery_app import (
    CeleryApp,
    CeleryCall,
    CeleryRefusedError,
    CeleryUnreachableError,
    TaskState,
)
from foliot.kinds.function_target import RemoteFailedError, TaskName
from foliot.kinds.target_protocol import PASSED_ON, Assignment, AttemptFailedError, LogLine, RunnerContext
from foliot.kinds.task_failures import error_of
from foliot.model.errors import Problem
from foliot.model.kind import BaseTarget, CliOption
from foliot.model.redaction import running
from foliot.model.schedule import ScheduleSpec
from foliot.timing.clock import Clock

FIRST_POLL_S = 0.05
POLL_GROWTH = 1.5
MAX_POLL_S = 1.0
MAX_FORMER = 10
"""How many earlier attempts are checked for a task that may still run."""
REVOKE_WITHIN_S = 4.0
"""Less than the five seconds after which stopped work is given up."""
LONGEST_EXPIRY_S = 40 * 86400.0
"""RabbitMQ's limit: the lifetime of a message is in milliseconds, up to 2^32."""
IS_OVER = frozenset({"FAILURE", "REVOKED", "REJECTED", "IGNORED"})


def task_id_of(execution_id: UUID, attempt: int) -> str:
    """Return Celery's task id for an attempt. It depends on nothing else, so sending twice makes one task."""
    return str(uuid5(execution_id, f"attempt {attempt}"))


class CeleryTarget(BaseTarget):
    """A task of an existing Celery application."""

    display_name: ClassVar = "Celery task"
    position: ClassVar = 4
    cli_options: ClassVar = (
        CliOption("--celery", ("task",), "TASK", "Call a Celery task; --arg gives its kwargs."),
    )
    arguments_field: ClassVar = "kwargs"
    remedy: ClassVar = "set FOLIOT_CELERY_APP, as proj.celery:app, here and for workers"

    kind: Literal["celery"] = "celery"
    task: TaskName
    args: tuple[JsonValue, ...] = ()
    kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    queue: str | None = Field(default=None, min_length=1, max_length=126)

    def describe(self) -> str:
        return f"celery {self.task}"

    @classmethod
    def open_runner(cls, context: RunnerContext) -> "CeleryRunner | None":
        if context.celery is None:
            return None
        return CeleryRunner(context.celery, context.secrets, context.clock)


class CeleryRunner:
    """Runs tasks of a Celery application."""

    def __init__(self, celery: CeleryApp, secrets: SecretResolver, clock: Clock) -> None:
        self._celery = celery
        self._secrets = secrets
        self._clock = clock

    def check(self, spec: ScheduleSpec) -> list[Problem]:
        target = spec.target
        assert isinstance(target, CeleryTarget)
        problems = [
            Problem(
                f"/target/{where}",
                "secret_name",
                f'"{name}" is not a name of a secret',
                "letters, digits, _ . and -, such as ${secret:api_token}",
            )
            for where, part in (("args", target.args), ("kwargs", target.kwargs))
            for name in sorted(references(part))
            if not NAME.match(name)
        ]
        if target.queue is not None and not self._celery.has_queue(target.queue):
            detail = f'the Celery application has no queue "{target.queue}", and makes none'
            problems.append(Problem("/target/queue", "unknown_queue", detail, "one of its task_queues"))
        return problems

    async def run(self, assignment: Assignment) -> Any:
        target = assignment.spec.target
        assert isinstance(target, CeleryTarget)
        try:
            secrets = await self._secrets.values(assignment.host_id, references([target.args, target.kwargs]))
        except SecretError as error:
            raise AttemptFailedError(str(error), is_permanent=True) from None
        work = _Work(self._celery, assignment, target, secrets, self._clock)
        try:
            with running.hidden(work.redactor.forms):
                return await work.run()
        except CeleryRefusedError as error:
            raise AttemptFailedError(work.redactor.text(str(error)), is_permanent=True) from None
        except CeleryUnreachableError as error:
            raise AttemptFailedError(work.redactor.text(str(error))) from None

    async def close(self) -> None:
        """Do nothing: the application is shared with others, which close it."""


class _Work:
    """One attempt of a Celery target."""

    def __init__(
        self,
        celery: CeleryApp,
        assignment: Assignment,
        target: CeleryTarget,
        secrets: Mapping[str, str],
        clock: Clock,
    ) -> None:
        self._celery = celery
        self._assignment = assignment
        self._target = target
        self._secrets = secrets
        self._clock = clock
        self.redactor = Redactor(secrets.values())
        self._can_follow = celery.can_follow
        self._task_id = task_id_of(assignment.fire.execution_id, assignment.fire.attempt)

    async def run(self) -> Any:
        try:
            former = await self._former() if self._can_follow else None
            if former is None:
                self._assignment.keep_external_id(self._task_id)
                await self._celery.send([self._call()])
            else:
                self._task_id = former
                self._assignment.keep_external_id(former)
                self._say("info", f"goes on with the Celery task of an earlier attempt: {former}")
            if not self._can_follow:
                return {"task_id": self._task_id, "followed": False}
            return await self._follow()
        except asyncio.CancelledError as stopped:
            if PASSED_ON not in stopped.args:
                await self._revoke(self._task_id)
            raise

    async def _former(self) -> str | None:
        """Return an earlier attempt's task that runs or has succeeded. Revoke tasks that have not started."""
        fire = self._assignment.fire
        for attempt in range(fire.attempt - 1, max(0, fire.attempt - 1 - MAX_FORMER), -1):
            task_id = task_id_of(fire.execution_id, attempt)
            state = (await self._celery.state(task_id)).name
            if state in IS_OVER:
                return None
            if state != "PENDING":
                return task_id
            await self._revoke(task_id)
        return None

    def _call(self) -> CeleryCall:
        target = self._target
        # Merged after secrets are resolved: who may trigger a schedule must not be able to send secrets by
        # reference.
        kwargs = {**resolve(target.kwargs, self._secrets), **self._assignment.args}
        return CeleryCall(
            target.task,
            self._task_id,
            resolve(target.args, self._secrets),
            kwargs,
            target.queue,
            expires_s=min(self._assignment.spec.timeout_seconds, LONGEST_EXPIRY_S),
            traceparent=self._assignment.fire.traceparent,
        )

    async def _follow(self) -> Any:
        pause_s, trouble = FIRST_POLL_S, ""
        while True:
            try:
                state, trouble = await self._celery.state(self._task_id), ""
            except CeleryUnreachableError as error:
                # The task goes on while the backend can't be read. The attempt's timeout ends the wait.
                if str(error) != trouble:
                    trouble = str(error)
                    self._say("warning", trouble)
            else:
                if state.name == "SUCCESS":
                    return self.redactor.document(state.result)
                if state.name in IS_OVER:
                    raise self._failure(state)
                self._tell_progress(state)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * POLL_GROWTH, MAX_POLL_S)

    def _failure(self, state: TaskState) -> Exception:
        if state.name == "FAILURE":
            error = state.result
            message = error_of(error) if isinstance(error, BaseException) else str(error)
            trace = None if state.traceback is None else kept_end(state.traceback, self.redactor)
            return RemoteFailedError(self.redactor.text(message), trace)
        message = str(state.result or "")
        # Expired: its worker's clock is ahead of ours by more than the timeout. Another worker's may not be.
        return AttemptFailedError(
            f"the Celery task was {message or state.name.lower()}", is_permanent="expired" not in message
        )

    def _tell_progress(self, state: TaskState) -> None:
        found = progress_of(state.result)
        if found is not None:
            fraction, text = found
            self._assignment.fire.progress(fraction, self.redactor.text(text))

    async def _revoke(self, task_id: str) -> None:
        """Revoke a task if that succeeds in time. Otherwise it expires by itself."""
        with contextlib.suppress(CeleryUnreachableError, CeleryRefusedError, TimeoutError):
            async with asyncio.timeout(REVOKE_WITHIN_S):
                await self._celery.revoke(task_id)

    def _say(self, level: str, message: str) -> None:
        now = self._clock.now().astimezone(UTC)
        self._assignment.log(LogLine(now, level, "foliot.celery", self.redactor.text(message)))


def progress_of(meta: Any) -> tuple[float, str] | None:
    """Return fraction and text that a task reported by `update_state(state="PROGRESS", meta=…)`. `meta` has a
    `fraction`, or `current` and `total`."""
    if not isinstance(meta, Mapping):
        return None
    fraction, current, total = (_number(meta.get(name)) for name in ("fraction", "current", "total"))
    if fraction is None and current is not None and total:
        fraction = current / total
    if fraction is None or not 0 <= fraction <= 1:
        return None
    return fraction, str(meta.get("text") or meta.get("status") or "")


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

"""One attempt: run the target under its timeout, and say how it ended."""

import asyncio
import traceback
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json

from foliot.model.errors import InvalidError
from foliot.model.execution import Status
from foliot.model.schedule import ScheduleSpec
from foliot.planning.outcome import outcome_of
from foliot.store.protocol import Claim, Settlement
from foliot.target.function import UnknownTaskError
from foliot.target.protocol import Assignment, Fire, Progress, Target
from foliot.timing.clock import ClusterClock

UNKNOWN_TASK_PAUSE_S = 5.0
"""How long an execution waits for a worker that knows its task function, before it is offered again."""
RESULT_BYTES = 64 * 1024
TEXT_LENGTH = 20_000


class Stopped(Exception):  # noqa: N818 - not an error: somebody asked for it
    """Cancels an attempt's task and says how the attempt is to be settled; None: not at all."""

    def __init__(self, status: Status | None) -> None:
        super().__init__(status)
        self.status = status


class Attempt:
    """A claimed execution being worked on."""

    def __init__(self, claim: Claim, spec: ScheduleSpec | None) -> None:
        self.claim = claim
        self.spec = spec
        self.stopped: Stopped | None = None
        self.task: asyncio.Task[Settlement | None] | None = None

    def start(
        self, targets: Mapping[str, Target], clock: ClusterClock, report: Progress
    ) -> asyncio.Task[Settlement | None]:
        self.task = asyncio.create_task(self._run(targets, clock, report))
        return self.task

    def stop(self, status: Status | None) -> None:
        """End the work: settled as the status says, or not at all when it is no longer ours."""
        if self.task is not None and not self.task.done() and self.stopped is None:
            self.stopped = Stopped(status)
            self.task.cancel()

    async def _run(
        self, targets: Mapping[str, Target], clock: ClusterClock, report: Progress
    ) -> Settlement | None:
        started = clock.monotonic()
        status, result, error, trace = Status.SUCCESS, None, None, None
        try:
            result = _result_of(await self._work(targets, report))
        except asyncio.CancelledError:
            if self.stopped is None:
                raise
            if self.stopped.status is None:
                return None
            status = self.stopped.status
        except UnknownTaskError as unknown:
            return self._left_to_others(str(unknown))
        except TimeoutError as late:
            status, error = Status.TIMEOUT, str(late) or "it took longer than timeout_seconds"
        except (Exception, SystemExit) as failure:
            status, error, trace = Status.FAILED, _error_of(failure), _trace_of(failure)
        return self._settlement(status, clock.now(), clock.monotonic() - started, result, error, trace)

    async def _work(self, targets: Mapping[str, Target], report: Progress) -> Any:
        spec, claim = self.spec, self.claim
        if spec is None:
            raise LookupError(f"version {claim.aggregate_version} of schedule {claim.schedule_id} is gone")
        target = targets.get(spec.target.kind)
        if target is None:
            raise LookupError(f"this worker can't carry out targets of kind {spec.target.kind}")
        fire = Fire(claim.execution_id, claim.schedule_id, spec.name, claim.fire_ts, claim.attempt, report)
        args = {**getattr(spec.target, "args", {}), **(claim.args or {})}
        work = asyncio.ensure_future(target.run(Assignment(fire, spec, args)))
        try:
            done, _ = await asyncio.wait({work}, timeout=spec.timeout_seconds)
        finally:
            if not work.done():
                work.cancel()
        if not done:
            # Told apart from a TimeoutError that the work itself raised: that one is a failure like others.
            await asyncio.wait({work}, timeout=1)
            raise TimeoutError(f"stopped after timeout_seconds ({spec.timeout_seconds:g} s)")
        if work.cancelled():
            raise RuntimeError("CancelledError: the work cancelled itself")
        try:
            return work.result()
        except TimeoutError as failure:
            raise RuntimeError(f"TimeoutError: {failure}") from failure

    def _left_to_others(self, why: str) -> Settlement:
        """Not a failure: another worker of the queue may know the task. This one is to look again later."""
        return Settlement(
            self.claim,
            attempt_status=Status.PENDING,
            status=Status.PENDING,
            retry_in_s=UNKNOWN_TASK_PAUSE_S,
            error=why,
        )

    def _settlement(
        self,
        status: Status,
        now: datetime,
        duration_s: float,
        result: str | None,
        error: str | None,
        trace: str | None,
    ) -> Settlement:
        claim, spec = self.claim, self.spec
        settled, retry_in_s = status, 0.0
        if spec is not None:
            outcome = outcome_of(
                status,
                retry=spec.retry,
                delivery=spec.delivery,
                failures=claim.failed_attempts + 1,
                execution_id=claim.execution_id,
                now=now,
            )
            settled = outcome.status
            if outcome.ready_ts is not None:
                retry_in_s = (outcome.ready_ts - now).total_seconds()
        return Settlement(
            claim=claim,
            attempt_status=status,
            status=settled,
            retry_in_s=retry_in_s,
            result=result,
            error=error,
            traceback=trace,
            duration_s=duration_s,
            is_delay=spec is not None and spec.trigger.kind == "delay",
        )


def _result_of(value: Any) -> str | None:
    """The result as JSON text. What JSON can't hold is kept as words; what is too long is cut off."""
    if value is None:
        return None
    try:
        text = to_json(value, fallback=repr, inf_nan_mode="null", bytes_mode="base64").decode()
    except Exception:
        text = to_json(_plain(repr(value))).decode()
    if len(text) > RESULT_BYTES:
        text = to_json({"truncated": text[: RESULT_BYTES // 2]}).decode()
    # PostgreSQL's JSON has no NUL.
    return text.replace("\\u0000", "\\ufffd")


def _error_of(failure: BaseException) -> str:
    if isinstance(failure, InvalidError | ValidationError | UnknownTaskError | LookupError):
        return _plain(str(failure) or type(failure).__name__)
    return _plain(f"{type(failure).__name__}: {failure}")


def _trace_of(failure: BaseException) -> str:
    lines = "".join(traceback.format_exception(failure))
    return _plain(lines[-TEXT_LENGTH:])


def _plain(text: str) -> str:
    """What every database can hold: no NUL, and no half of a character (as file names may have)."""
    whole = text[:TEXT_LENGTH].encode("utf-8", "replace").decode()
    return whole.replace("\0", "\ufffd")

"""Runs task functions in separate processes: the worker's side of isolation."""

import asyncio
import contextlib
import itertools
import logging
import os
import signal
from collections.abc import Iterable, Mapping
from typing import Any

from foliot.kinds.function_target import RemoteFailedError, Task, why_unreachable
from foliot.kinds.target_protocol import Fire, Log
from foliot.model.errors import InvalidError
from foliot.timing.clock import Clock, SystemClock
from foliot.worker.isolation.loading import refuse_in_template
from foliot.worker.isolation.memory import over_limit
from foliot.worker.isolation.origin import origin_of
from foliot.worker.isolation.running_child import RunningChild, out_of_memory, why_ended
from foliot.worker.isolation.template_process import LOST, TemplateLostError, TemplateProcess
from foliot.worker.limits import Limits

_log = logging.getLogger(__name__)

GRACE_S = 1.0
"""Seconds between SIGTERM and SIGKILL."""
SILENT_WITHIN_S = 2.0
MEASURE_EVERY_S = 0.2
"""Seconds between measurements of memory, if there is a limit."""
STOPPED = "the worker has stopped"


class Processes:
    """Runs each function in its own process. The process is gone when `run` returns or raises.

    There is no limit of its own on parallel calls: the worker's concurrency is the limit.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        *,
        grace_s: float = GRACE_S,
        limits: Limits | None = None,
        clock: Clock | None = None,
    ) -> None:
        refuse_in_template()
        self._tasks = tasks
        self._grace_s = grace_s
        self._limits = limits or Limits()
        self._clock = clock or SystemClock()
        self._template: TemplateProcess | None = None
        self._starting: asyncio.Task[None] | None = None
        self._running: dict[int, RunningChild] = {}
        self._numbers = itertools.count(1)
        self._last_words: set[asyncio.Task[None]] = set()
        self._measuring: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start a template process, or a new one if the last has died. Does nothing if one is alive."""
        if self._template is not None and self._template.is_alive:
            return
        # The start is a task of its own, not part of an attempt: attempts with timeouts shorter than the
        # imports would cancel every start. asyncio.wait, not shield: if `close` cancels the start, its
        # waiters are not cancelled.
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(_take_notice)
        starting = self._starting
        await asyncio.wait({starting})
        if starting.cancelled():
            raise TemplateLostError(STOPPED)
        starting.result()

    async def _start(self) -> None:
        if self._template is not None:
            await self._template.close()
        self._template = None
        origins = [origin_of(task) for task in self._tasks if _is_wanted(task)]
        if origins:
            template = TemplateProcess(self._take, self._lose)
            await template.start(origins, self._limits)
            self._template = template
            _warn_of(template.refused)
            if self._limits.memory_bytes is not None and self._measuring is None:
                self._measuring = asyncio.create_task(self._keep_to_memory(self._limits.memory_bytes))

    async def close(self) -> None:
        """Stop the template and end everything that still runs."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait({self._starting})
        if self._measuring is not None:
            self._measuring.cancel()
            await asyncio.wait({self._measuring})
        template, self._template = self._template, None
        if template is not None:
            await template.close()
        for child in list(self._running.values()):
            child.end(STOPPED)
        if self._last_words:
            await asyncio.gather(*self._last_words, return_exceptions=True)

    def serves(self, name: str) -> bool:
        """Return whether the running template has found the function."""
        return self._template is not None and name in self._template.served

    def pids(self) -> tuple[int, ...]:
        """Return the pids of the functions that run now."""
        return tuple(child.pid for child in self._running.values() if child.pid is not None)

    @property
    def template_pid(self) -> int | None:
        return None if self._template is None else self._template.pid

    # --- one attempt ------------------------------------------------------------------------------

    async def run(self, task: Task, args: Mapping[str, Any], fire: Fire, log: Log) -> Any:
        """Run the function and return its result. If cancelled, stop the process and return when it is gone.

        Raises RemoteFailedError if the function fails, or the AttemptFailedError that the function raised.
        """
        problems = task.check(dict(args))
        if problems:
            raise InvalidError(problems)
        await self.start()
        template = self._template
        if template is None or task.name not in template.served:
            refused = {} if template is None else template.refused
            why = refused.get(task.name, "it was registered after the worker had started")
            raise RemoteFailedError(f'task function "{task.name}" can\'t run in a process: {why}')
        child = RunningChild(fire, log, self._clock)
        number = next(self._numbers)
        try:
            await template.fork(number, child.descriptors)
            self._running[number] = child
            child.start_reading()
            try:
                await child.request(task.name, args)
                await asyncio.shield(child.ended)
            except BaseException:
                await _whole(self._stop(template, number, child))
                raise
            return child.result()
        finally:
            self._running.pop(number, None)
            child.close()

    async def _stop(self, template: TemplateProcess, number: int, child: RunningChild) -> None:
        for sent in (signal.SIGTERM, signal.SIGKILL):
            # If the template has died, its children die too, and their end is reported.
            with contextlib.suppress(TemplateLostError):
                await template.signal(number, sent)
            if sent is signal.SIGTERM:
                await asyncio.wait({child.ended}, timeout=self._grace_s)
            if child.ended.done():
                return
        await child.ended

    async def _keep_to_memory(self, limit: int) -> None:
        """Kill each function that uses more memory than the limit, with all processes it has started."""
        while True:
            await asyncio.sleep(MEASURE_EVERY_S)
            template = self._template
            pids = {number: child.pid for number, child in self._running.items() if child.pid is not None}
            if template is None or template.pid is None or not pids:
                continue
            try:
                over = await asyncio.to_thread(over_limit, pids, template.pid, limit)
            except Exception:
                _log.exception("the memory of isolated functions can't be measured")
                continue
            for number, used in over.items():
                child = self._running.get(number)
                if child is not None:
                    child.killed_because = out_of_memory(limit, used)
                    with contextlib.suppress(TemplateLostError):
                        await template.signal(number, signal.SIGKILL)

    # --- reports of the template ------------------------------------------------------------------

    def _take(self, frame: Mapping[str, Any]) -> None:
        if "forked" in frame:
            child = self._running.get(frame["forked"])
            if child is not None:
                child.pid = frame["pid"]
            return
        child = self._running.get(frame["ended"])
        if child is not None:
            if frame.get("out_of_memory") and self._limits.memory_bytes is not None:
                child.killed_because = out_of_memory(self._limits.memory_bytes)
            child.end(frame["failed"] if "failed" in frame else why_ended(frame["status"]))

    def _lose(self, _template: TemplateProcess) -> None:
        """End all children: they died with the template, but the processes they started did not."""
        for child in self._running.values():
            task = asyncio.ensure_future(_end_without_template(child))
            self._last_words.add(task)
            task.add_done_callback(self._last_words.discard)


def _is_wanted(task: Task) -> bool:
    return not task.is_async and task.isolation != "thread" and why_unreachable(task.function) is None


def _warn_of(refused: Mapping[str, str]) -> None:
    """Log which functions can't run in a process, one line per reason."""
    names: dict[str, list[str]] = {}
    for name, reason in sorted(refused.items()):
        names.setdefault(reason, []).append(name)
    for reason, of_it in names.items():
        _log.warning(
            "task functions %s can't run in a process and run in a thread instead, "
            "unless they ask for a process: %s",
            ", ".join(of_it),
            reason,
        )


def _take_notice(starting: asyncio.Task[None]) -> None:
    """Retrieve the error of a failed start: perhaps nobody waits for it. The next attempt starts again."""
    if not starting.cancelled():
        starting.exception()


async def _end_without_template(child: RunningChild) -> None:
    if child.pid is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    await asyncio.wait({child.silent}, timeout=SILENT_WITHIN_S)
    child.end(LOST)


async def _whole(work: Any) -> None:
    """Run a coroutine to its end, even if the caller is cancelled."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    task.result()

"""A Foliot worker inside a Celery process: it claims only the executions it is given, and does not poll.

It is an instance without the service that polls. Its event loop runs in its own thread, and Celery's task
threads wait for it. Like any instance it has a row in the registry, renews the leases of its executions, and
receives cancels.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from uuid import UUID

from foliot.instance.runtime import Instance
from foliot.instance.spec import InstanceSpec
from foliot.model.execution import Status
from foliot.service import Loop
from foliot.worker.attempt import Attempt
from foliot.worker.worker import Worker

START_WITHIN_S = 60.0
SEEN_WITHIN_S = 0.5
"""Interval for checking whether the worker gave up an attempt whose function still runs, in seconds."""
LAST_WORDS_S = 5.0


class Engine:
    """Starts on creation. Runs one execution per calling thread, with no limit of its own."""

    def __init__(self, plan: Callable[[], InstanceSpec]) -> None:
        self._plan = plan
        self._loop = asyncio.new_event_loop()
        self._ready: Future[Instance] = Future()
        self._stopping: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._serve, name="foliot-engine", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def carry_out(self, execution_id: UUID) -> bool:
        """Claim an execution, run it and write its result. Return False if there was nothing to claim.

        If waiting is interrupted by an exception, the execution is handed back.
        """
        worker = _worker_of(self._ready.result(START_WITHIN_S))
        work = asyncio.run_coroutine_threadsafe(self._carry_out(worker, execution_id), self._loop)
        try:
            return work.result()
        except BaseException:
            work.cancel()
            raise

    def close(self) -> None:
        """Hand back the running executions, leave the registry, and stop."""
        if self._stopping is not None:
            with contextlib.suppress(RuntimeError):  # the loop is already closed
                self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(LAST_WORDS_S * 2)

    # --- in its thread ----------------------------------------------------------------------------

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._run())
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
        finally:
            self._loop.close()

    async def _run(self) -> None:
        self._stopping = asyncio.Event()
        instance = Instance(self._plan())
        try:
            await instance.prepare()
        except BaseException:
            await instance.close()
            raise
        services = [service for service in instance.services if service is not instance.worker]
        loops = [Loop(service, instance.observer) for service in services]
        tasks = [asyncio.create_task(loop.run(), name=loop.service.name) for loop in loops]
        self._ready.set_result(instance)
        await self._stopping.wait()
        with contextlib.suppress(Exception):
            await _worker_of(instance).drain(0)
        for loop in loops:
            loop.stop()
        _done, late = await asyncio.wait(tasks, timeout=LAST_WORDS_S)
        for task in late:
            task.cancel()
        with contextlib.suppress(Exception):
            await instance.store.registry.leave(instance.instance_id)
        await instance.close()

    async def _carry_out(self, worker: Worker, execution_id: UUID) -> bool:
        if not await worker.take([execution_id]):
            # The execution may be in a new queue.
            worker.forget_queues()
            if not await worker.take([execution_id]):
                return False
        attempt = worker.running.get(execution_id)
        try:
            if attempt is not None:
                await _ended(worker, attempt)
        except asyncio.CancelledError:
            if attempt is not None:
                attempt.stop(Status.PENDING)
            raise
        # Write now: Celery may end this process as soon as the task ends.
        await worker.settler.write_within(LAST_WORDS_S)
        return True


async def _ended(worker: Worker, attempt: Attempt) -> None:
    execution_id = attempt.claim.execution_id
    done = asyncio.Event()
    if attempt.task is not None:
        attempt.task.add_done_callback(lambda _task: done.set())
    while worker.running.get(execution_id) is attempt:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SEEN_WITHIN_S):
                await done.wait()
        await asyncio.sleep(0)


def _worker_of(instance: Instance) -> Worker:
    assert instance.worker is not None
    return instance.worker

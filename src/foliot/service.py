"""How long-lived work runs: a service is a named `step`. Looping, backoff and stopping exist only here.

A step does what is due now, and returns the seconds until the next one. It is called again after that time,
or as soon as it is woken. If it raises, the observer is notified and the step is retried after a growing
pause. So an unreachable database stops no service for good.
"""

import asyncio
import sysconfig
import traceback
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Protocol

from foliot.model.event import Observer
from foliot.model.instance_events import ServiceFailed, ServiceRecovered
from foliot.timing.clock import Clock, SystemClock

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0


class Wake:
    """Lets others end a service's pause early."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    def clear(self) -> None:
        self._event.clear()

    async def wait(self, timeout_s: float | None) -> None:
        """Return when woken, or after the timeout. Then clear the wake-up."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            pass
        finally:
            self._event.clear()


class Service(Protocol):
    name: str
    wake: Wake

    async def step(self) -> float | None:
        """Do what is due. Return the seconds until the next step; None: wait until woken."""
        ...


class Loop:
    """Runs one service until it is stopped."""

    def __init__(self, service: Service, observer: Observer, clock: Clock | None = None) -> None:
        self.service = service
        self._observer = observer
        self._clock = clock or SystemClock()
        self._began_at: float | None = None
        """When the current step, or the first of a series of failed steps, began; None: no step runs."""
        self._failures = 0
        self._is_stopping = False

    def stop(self) -> None:
        """Let the current step finish, and begin no other."""
        self._is_stopping = True
        self.service.wake.set()

    @property
    def stuck_s(self) -> float:
        """Seconds that a step has been running, or that steps have been failing in a row; 0: neither."""
        return 0.0 if self._began_at is None else self._clock.monotonic() - self._began_at

    async def run(self) -> None:
        while not self._is_stopping:
            pause_s = await self.turn()
            if pause_s is not None and pause_s <= 0:
                await asyncio.sleep(0)
            elif not self._is_stopping:
                await self.service.wake.wait(pause_s)

    async def turn(self) -> float | None:
        """Run one step. If it raises, notify the observer and return the backoff."""
        if self._began_at is None:
            self._began_at = self._clock.monotonic()
        try:
            pause_s = await self.service.step()
        except Exception as error:
            pause_s = min(FIRST_PAUSE_S * float(2**self._failures), LONGEST_PAUSE_S)
            self._failures = min(self._failures + 1, 16)
            self._observer.notify(ServiceFailed(self.service.name, _reason_of(error), pause_s))
            return pause_s
        self._began_at = None
        if self._failures:
            self._failures = 0
            self._observer.notify(ServiceRecovered(self.service.name))
        return pause_s


class ServiceRunner:
    """Runs the services of an instance, each in a task of its own."""

    def __init__(self, observer: Observer, clock: Clock, stop_within_s: float) -> None:
        self._observer = observer
        self._clock = clock
        self._stop_within_s = stop_within_s
        self._loops: dict[Service, tuple[Loop, asyncio.Task[None]]] = {}

    def exchange(self, old: Iterable[Service], new: Iterable[Service]) -> None:
        """Stop the old services after their current step, and run the new ones."""
        for service in old:
            if service in self._loops:
                self._loops.pop(service)[0].stop()
        for service in new:
            loop = Loop(service, self._observer, self._clock)
            self._loops[service] = (loop, asyncio.create_task(loop.run(), name=service.name))

    def stop(self, *, but: Collection[Service | None] = ()) -> None:
        """Let all services end after their current step, but for these."""
        for service, (loop, _task) in self._loops.items():
            if service not in but:
                loop.stop()

    async def finish(self, services: Iterable[Service] | None = None) -> None:
        """Wait until stopped services have ended, or end them by force. None: all of them."""
        chosen = self._loops if services is None else services
        tasks = [self._loops[service][1] for service in chosen if service in self._loops]
        if tasks:
            _done, late = await asyncio.wait(tasks, timeout=self._stop_within_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def stuck(self, services: Iterable[Service], limit_s: float) -> dict[str, float]:
        """Return those of the services that are stuck longer than the limit, with their seconds."""
        ages = [(each.name, self._loops[each][0].stuck_s) for each in services if each in self._loops]
        # Services of several shards share a name: the longest time counts.
        return {name: age_s for name, age_s in sorted(ages) if age_s > limit_s}


def _reason_of(error: Exception) -> str:
    """Return the error's text. If it has none (TimeoutError), return the line of ours that raised it."""
    kind = type(error).__name__
    if str(error).strip():
        return f"{kind}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    last = [frame for frame in frames if _is_ours(frame.filename)][-1]  # never empty: this file is in it
    return f"{kind} in {last.name} ({Path(last.filename).name}, line {last.lineno})"


_OURS = str(Path(__file__).parent)
_OF_OTHERS = tuple(sysconfig.get_path(name) for name in ("stdlib", "platlib", "purelib"))


def _is_ours(file: str) -> bool:
    return file.startswith(_OURS) or not file.startswith(_OF_OTHERS)

"""How long-lived work runs. A service is a named `step`; looping, backing off and stopping exist once, here.

A step does what is due now and says how long nothing will be. It is called again after that time, or as soon
as it is woken. A step that raises is told to the observer and tried again after a growing pause, so that a
database that is away stops nothing for good.
"""

import asyncio
import sysconfig
import traceback
from pathlib import Path
from typing import Protocol

from foliot.model.event import Observer, ServiceFailed, ServiceRecovered
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
        """Return when woken, or after so many seconds; being woken is then forgotten."""
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
        """Do what is due; the seconds until the next step, None to wait until woken."""
        ...


class Loop:
    """Runs one service until it is told to stop."""

    def __init__(self, service: Service, observer: Observer, clock: Clock | None = None) -> None:
        self.service = service
        self._observer = observer
        self._clock = clock or SystemClock()
        self._began_at: float | None = None
        """When the first step began that has not come to a good end; None: there is none such."""
        self._failures = 0
        self._is_stopping = False

    def stop(self) -> None:
        """Let the step that is under way finish, and begin no other."""
        self._is_stopping = True
        self.service.wake.set()

    @property
    def stuck_s(self) -> float:
        """For how long a step has been under way, or has failed again and again; 0 while all is well."""
        return 0.0 if self._began_at is None else self._clock.monotonic() - self._began_at

    async def run(self) -> None:
        while not self._is_stopping:
            pause_s = await self.turn()
            if pause_s is not None and pause_s <= 0:
                await asyncio.sleep(0)
            elif not self._is_stopping:
                await self.service.wake.wait(pause_s)

    async def turn(self) -> float | None:
        """One step, whatever it raises."""
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


def _reason_of(error: Exception) -> str:
    """What an error says; of one that says nothing, as a TimeoutError does, where it came from."""
    kind = type(error).__name__
    if str(error).strip():
        return f"{kind}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    last = [frame for frame in frames if _is_ours(frame.filename)][-1]  # the first is this file's
    return f"{kind} in {last.name} ({Path(last.filename).name}, line {last.lineno})"


_OURS = str(Path(__file__).parent)
_OF_OTHERS = tuple(sysconfig.get_path(name) for name in ("stdlib", "platlib", "purelib"))


def _is_ours(file: str) -> bool:
    return file.startswith(_OURS) or not file.startswith(_OF_OTHERS)

"""The worker's handle on the template process: starts it, sends requests and receives reports."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from foliot.access.environment import is_withheld, without_credentials
from foliot.kinds.function_target import RemoteFailedError
from foliot.worker.isolation.frames import FrameReader, encode
from foliot.worker.isolation.origin import Origin
from foliot.worker.limits import Limits

START_WITHIN_S = 60.0
"""Maximum seconds for importing the task modules."""
LEAVE_WITHIN_S = 10.0
READ_BYTES = 64 * 1024
LOST = "the process that starts isolated functions has died"


class TemplateLostError(RemoteFailedError):
    """The template process has died, and its children with it."""


class TemplateProcess:
    """One template process. `on_report` is called with its reports on children, `on_lost` when it has
    died."""

    def __init__(
        self, on_report: Callable[[Mapping[str, Any]], None], on_lost: Callable[["TemplateProcess"], None]
    ) -> None:
        self.served: frozenset[str] = frozenset()
        self.refused: Mapping[str, str] = {}
        self.is_alive = False
        self._on_report = on_report
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._control, self._theirs = socket.socketpair()
        self._control.setblocking(False)
        self._frames = FrameReader()
        self._sending = asyncio.Lock()
        self._process: Process | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def start(self, origins: Sequence[Origin], limits: Limits) -> None:
        """Start the template; return when its imports are done. Then `served` and `refused` are set."""
        try:
            # -P: don't import from the current folder.
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-P", "-m", "foliot.worker.isolation.template", str(self._theirs.fileno())),
                # The initial environment stays readable in /proc, so cleaning os.environ later is not enough.
                env=without_credentials(os.environ),
                pass_fds=(self._theirs.fileno(),),
                stdin=DEVNULL,
                stdout=DEVNULL,
                start_new_session=True,
            )
            self._theirs.close()
            self._loop.add_reader(self._control.fileno(), self._read)
            setup = {
                "path": sys.path,
                "argv": sys.argv,
                "limits": asdict(limits),
                "withheld": sorted(name.upper() for name in os.environ if is_withheld(name)),
                "origins": [asdict(origin) for origin in origins],
            }
            async with asyncio.timeout(START_WITHIN_S):
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    await self._loop.sock_sendall(self._control, encode(setup))
                await self._ready
        except TimeoutError:
            await self.close()
            raise TemplateLostError(
                f"importing the task modules took longer than {START_WITHIN_S:g} s"
            ) from None
        except BaseException:
            await self.close()
            raise

    # --- requests ---------------------------------------------------------------------------------

    async def fork(self, attempt: int, descriptors: Sequence[int]) -> None:
        await self._send({"fork": attempt}, descriptors)

    async def signal(self, attempt: int, number: signal.Signals) -> None:
        await self._send({"attempt": attempt, "signal": int(number)})

    async def _send(self, frame: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
        data = encode(frame)
        async with self._sending:
            while self.is_alive:
                try:
                    # A frame this short is sent completely or not at all.
                    socket.send_fds(self._control, [data], descriptors)
                    return
                except BlockingIOError:
                    await self._writable()
                except OSError:
                    break
        raise TemplateLostError(LOST)

    async def _writable(self) -> None:
        writable: asyncio.Future[None] = self._loop.create_future()
        descriptor = self._control.fileno()
        self._loop.add_writer(descriptor, _finish, writable)
        try:
            await writable
        finally:
            if descriptor == self._control.fileno():
                self._loop.remove_writer(descriptor)

    # --- reports ----------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            data = os.read(self._control.fileno(), READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self._lose()
            return
        for frame in self._frames.feed(data):
            if "served" in frame:
                self.served, self.refused = frozenset(frame["served"]), frame["refused"]
                self.is_alive = True
                self._ready.set_result(None)
            else:
                self._on_report(frame)

    def _lose(self) -> None:
        was_alive, self.is_alive = self.is_alive, False
        self._loop.remove_reader(self._control.fileno())
        if not self._ready.done():
            message = "the process for isolated functions ended while it imported the task modules"
            self._ready.set_exception(TemplateLostError(message))
        if was_alive:
            self._on_lost(self)

    async def close(self) -> None:
        """Make the template end its children and exit; return when it is gone."""
        self.is_alive = False
        # Cancelled also if the caller of `start` was cancelled. That does not mean the process has ended.
        if self._ready.cancelled() or self._ready.cancel():
            # It is still importing and would not see the socket close.
            self._kill()
        if self._control.fileno() >= 0:
            self._loop.remove_reader(self._control.fileno())
            self._loop.remove_writer(self._control.fileno())
        self._control.close()
        self._theirs.close()
        if self._process is not None:
            try:
                async with asyncio.timeout(LEAVE_WITHIN_S):
                    await self._process.wait()
            except TimeoutError:
                self._kill()
                await self._process.wait()

    def _kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)

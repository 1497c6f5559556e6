"""The worker's view of a child process: its output so far and how it ended."""

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import struct
import termios
from collections.abc import Callable, Mapping
from datetime import datetime
from io import FileIO
from typing import Any

from foliot.kinds.function_target import RemoteFailedError
from foliot.kinds.target_protocol import AttemptFailedError, Fire, Log, LogLine
from foliot.timing.clock import Clock
from foliot.worker.isolation.frames import FrameError, FrameReader, encode
from foliot.worker.isolation.lines import Lines

READ_BYTES = 16 * 1024
"""Maximum bytes per read. Many children with much output must not block the event loop."""
_INT = struct.Struct("i")
_SIGNALS = frozenset(signal.Signals)


class RunningChild:
    """The worker's ends of a child's socket and pipes. They are read as long as the child runs."""

    def __init__(self, fire: Fire, log: Log, clock: Clock) -> None:
        self.pid: int | None = None
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[str] = self._loop.create_future()
        """Done when the process is gone. Its result is the reason, for a function that sent no result or
        error."""
        self.silent: asyncio.Future[None] = self._loop.create_future()
        """Done when no process holds the other ends any more."""
        self._fire = fire
        self._log = log
        self._connection, theirs = socket.socketpair()
        self._output, their_output = _pipe()
        self._errors, their_errors = _pipe()
        self._theirs = (theirs, their_output, their_errors)
        self._frames = FrameReader()
        self._lines = {
            self._output.fileno(): Lines("stdout", log, clock),
            self._errors.fileno(): Lines("stderr", log, clock),
        }
        self._readers: dict[int, Callable[[int], int]] = {}
        self._outcome: Mapping[str, Any] | None = None
        self._broken: str | None = None
        self.killed_because: str | None = None
        """Why the worker killed the process, for example for its memory use. It replaces the reason in
        `ended`."""

    @property
    def descriptors(self) -> list[int]:
        """The child's ends, to be passed to the template."""
        return [end.fileno() for end in self._theirs]

    def start_reading(self) -> None:
        """Start reading. Closes this process's copies of the child's ends, else the end of file would never
        arrive."""
        for end in self._theirs:
            end.close()
        self._listen(self._connection.fileno(), self._read_frames)
        for descriptor in self._lines:
            self._listen(descriptor, self._read_lines)

    def _listen(self, descriptor: int, read: Callable[[int], int]) -> None:
        os.set_blocking(descriptor, False)
        self._readers[descriptor] = read
        self._loop.add_reader(descriptor, read, descriptor)

    async def request(self, task: str, args: Mapping[str, Any]) -> None:
        """Send the child the task and arguments to run."""
        fire = self._fire
        fields = {
            "execution_id": str(fire.execution_id),
            "schedule_id": str(fire.schedule_id),
            "schedule_name": fire.schedule_name,
            "fire_ts": fire.fire_ts.isoformat(),
            "attempt": fire.attempt,
            "traceparent": fire.traceparent,
        }
        self._connection.setblocking(False)
        # If the child is gone already, its end is reported in another way.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            await self._loop.sock_sendall(
                self._connection, encode({"task": task, "args": args, "fire": fields})
            )

    # --- reading: each returns the number of bytes read -------------------------------------------

    def _read_frames(self, descriptor: int) -> int:
        data = self._read(descriptor)
        # Keep reading after an invalid frame: otherwise the child would block for ever while sending.
        if data and self._broken is None:
            try:
                for frame in self._frames.feed(data):
                    self._take(frame)
            except (FrameError, KeyError, ValueError, TypeError) as error:
                self._broken = f"its process sent what can't be understood: {error}"
        return len(data)

    def _take(self, frame: Mapping[str, Any]) -> None:
        if "progress" in frame:
            self._fire.progress(frame["progress"], frame["text"])
        elif "log" in frame:
            logged_ts, level, logger, message = frame["log"]
            self._log(LogLine(datetime.fromisoformat(logged_ts), level, logger, message))
        else:
            self._outcome = frame

    def _read_lines(self, descriptor: int) -> int:
        data = self._read(descriptor)
        if data:
            self._lines[descriptor].feed(data)
        return len(data)

    def _read(self, descriptor: int) -> bytes:
        try:
            data = os.read(descriptor, READ_BYTES)
        except BlockingIOError:
            return b""
        except ConnectionResetError:
            data = b""
        if not data:
            self._unlisten(descriptor)
        return data

    def _unlisten(self, descriptor: int) -> None:
        del self._readers[descriptor]
        self._loop.remove_reader(descriptor)
        if not self._readers and not self.silent.done():
            self.silent.set_result(None)

    # --- end of the process -----------------------------------------------------------------------

    def end(self, why: str) -> None:
        """Read what is left in the pipes and mark the process as ended. Called when the process is gone."""
        if self.ended.done():
            return
        for descriptor, read in list(self._readers.items()):
            # Read only what is there now: a program that left the process group may write for ever.
            held = _held(descriptor)
            while held > 0 and (count := read(descriptor)):
                held -= count
        for lines in self._lines.values():
            lines.finish()
        self.ended.set_result(why)

    def close(self) -> None:
        for descriptor in list(self._readers):
            self._unlisten(descriptor)
        for end in (*self._theirs, self._connection, self._output, self._errors):
            end.close()

    def result(self) -> Any:
        """Return what the function returned, or raise its failure."""
        outcome = self._outcome
        if outcome is None:
            raise RemoteFailedError(self.killed_because or self._broken or self.ended.result())
        if "refusal" in outcome:
            raise AttemptFailedError(outcome["error"], **outcome["refusal"])
        if "error" in outcome:
            raise RemoteFailedError(outcome["error"], outcome["trace"])
        return outcome["result"]


def why_ended(status: int) -> str:
    """Describe why a process ended that sent neither result nor error. `status` is as from waitpid."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name if number in _SIGNALS else f"signal {number}"
        return f"its process was killed ({name})" + (", maybe out of memory" if name == "SIGKILL" else "")
    return f"its process ended with exit status {os.WEXITSTATUS(status)} before the function returned"


def out_of_memory(limit: int, used: int | None = None) -> str:
    """Describe that a process was killed for its memory use. `used` None: the kernel killed it."""
    allowed = f"{limit / 2**20:.0f} MB"
    if used is None:
        return f"its process was killed: it used more memory than its limit of {allowed}"
    return f"its process was killed: it used {used / 2**20:.0f} MB of memory, its limit is {allowed}"


def _held(descriptor: int) -> int:
    """Return how many bytes can be read now: at most the capacity of a pipe or socket."""
    (held,) = _INT.unpack(fcntl.ioctl(descriptor, termios.FIONREAD, _INT.pack(0)))
    assert isinstance(held, int)
    return held


def _pipe() -> tuple[FileIO, FileIO]:
    ours, theirs = os.pipe()
    return FileIO(ours, "r"), FileIO(theirs, "w")

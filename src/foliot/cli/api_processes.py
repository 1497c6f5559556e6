"""Several processes that serve one address: Python computes in one core, and a machine has more.

The first process only watches. It keeps the address, so that nobody else takes it while others come and go;
each of the rest listens there by itself, and the kernel spreads connections over them. One that dies is
started again in its place, unless it could not even start: then all stop, and what it ended by is how the
command ends. Asked to stop, it asks them all and waits; killed, it takes them with it.
"""

import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from types import FrameType

from foliot.api.server import listen
from foliot.probing.siblings import Place, make_places
from foliot.worker.isolation.kernel import die_with_parent

YOUNG_S = 5.0
"""One that fails before this age would fail again."""


Serve = Callable[[socket.socket, Place], None]


def serve_in_processes(count: int, host: str, port: int, serve: Serve) -> None:
    """Call `serve` in so many processes, each with a socket and a place of its own; returns when all have
    ended."""
    kept = listen(host, port, is_shared=True, is_kept=True)
    chosen = int(kept.getsockname()[1])
    places = make_places(count)

    def start(place: Place) -> int:
        process = os.fork()
        if process:
            return process
        die_with_parent(signal.SIGTERM)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        listener = listen(host, chosen, is_shared=True)
        kept.close()
        for other in places:
            if other is not place:
                other.listener.close()
        serve(listener, place)
        raise SystemExit(0)

    with kept:
        _Watch(start).run(places)


class _Watch:
    def __init__(self, start: Callable[[Place], int]) -> None:
        self._start = start
        self._started_at: dict[int, float] = {}
        self._places: dict[int, Place] = {}
        """Both by process."""
        self._is_stopping = False
        self._code = 0

    def run(self, places: Sequence[Place]) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        for place in places:
            self._add(place)
        while self._started_at:
            process, ended = os.wait()
            code = os.waitstatus_to_exitcode(ended)
            age_s = time.monotonic() - self._started_at.pop(process, 0.0)
            place = self._places.pop(process)
            if self._is_stopping:
                continue
            if age_s < YOUNG_S:
                self._code = code or 1
                self._stop()
            else:
                self._add(place)
        if self._code:
            raise SystemExit(self._code if self._code > 0 else 128 - self._code)

    def _add(self, place: Place) -> None:
        process = self._start(place)
        self._places[process] = place
        self._started_at[process] = time.monotonic()
        if self._is_stopping:  # asked while it was made
            os.kill(process, signal.SIGTERM)

    def _stop(self, number: int = signal.SIGTERM, _frame: FrameType | None = None) -> None:
        self._is_stopping = True
        for process in self._started_at:
            os.kill(process, number)

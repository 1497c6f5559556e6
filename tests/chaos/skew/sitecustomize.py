"""Gives a process a wrong wall clock, which may jump: a file contains the error in seconds.

Python imports a module of this name at its start, from a folder in PYTHONPATH. The monotonic clock is not
changed: on a real machine it never jumps.
"""

import os
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

CLOCK_FILE = os.environ.get("CHAOS_CLOCK_FILE")

if CLOCK_FILE is not None:
    from foliot.timing.clock import SystemClock

    _right = SystemClock.now
    _file = Path(CLOCK_FILE)

    def _wrong(self: SystemClock) -> datetime:
        offset_s = 0.0
        with suppress(FileNotFoundError, ValueError):  # the file is just being written
            offset_s = float(_file.read_text())
        return _right(self) + timedelta(seconds=offset_s)

    SystemClock.now = _wrong  # type: ignore[method-assign]

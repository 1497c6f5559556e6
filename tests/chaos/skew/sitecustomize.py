"""Gives a process a wall clock that is wrong, and may jump: by the seconds that a file says at the time.

Python imports a module of this name as it starts, from a folder that PYTHONPATH names. The monotonic clock is
left alone: a machine's own never jumps.
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
        with suppress(FileNotFoundError, ValueError):  # written at this moment
            offset_s = float(_file.read_text())
        return _right(self) + timedelta(seconds=offset_s)

    SystemClock.now = _wrong  # type: ignore[method-assign]

"""Log lines, made of what a child writes to its stdout or stderr."""

from foliot.target.protocol import Log, LogLine
from foliot.timing.clock import Clock

LINE_BYTES = 64 * 1024
"""Longer lines are cut in pieces."""


class Lines:
    """Tells each line when it is whole. Programs talk to stderr for many reasons, so all of it is `info`."""

    def __init__(self, logger: str, log: Log, clock: Clock) -> None:
        self._logger = logger
        self._log = log
        self._clock = clock
        self._held = b""

    def feed(self, data: bytes) -> None:
        *lines, self._held = (self._held + data).split(b"\n")
        for line in lines:
            self._tell(line)
        while len(self._held) >= LINE_BYTES:
            piece, self._held = self._held[:LINE_BYTES], self._held[LINE_BYTES:]
            self._tell(piece)

    def finish(self) -> None:
        """No more will come: what has no end of line is a line as well."""
        if self._held:
            self._tell(self._held)
            self._held = b""

    def _tell(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\r")
        self._log(LogLine(self._clock.now(), "info", self._logger, text))

"""Turns a child's stdout or stderr into log lines."""

from foliot.kinds.target_protocol import Log, LogLine
from foliot.timing.clock import Clock

LINE_BYTES = 64 * 1024
"""Maximum bytes per line. Longer lines are split."""


class Lines:
    """Logs each complete line. The level is always `info`: programs write to stderr for many reasons."""

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
        """Log the rest as a line: the output ended without a newline."""
        if self._held:
            self._tell(self._held)
            self._held = b""

    def _tell(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\r")
        self._log(LogLine(self._clock.now(), "info", self._logger, text))

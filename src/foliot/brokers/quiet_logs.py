"""Limits the log of libraries that repeat several times a second that they can't connect.

The transport reports once that the broker is away.
"""

import logging

EVERY_S = 60.0


class RepeatedWarningFilter(logging.Filter):
    """Passes each kind of warning at most once per EVERY_S seconds."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[str, int], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        kind = (record.pathname, record.lineno)
        if record.created - self._last.get(kind, float("-inf")) < EVERY_S:
            return False
        self._last[kind] = record.created
        return True


_SELDOM = RepeatedWarningFilter()


def quieten(*loggers: str) -> None:
    # A filter applies only to records of the logger it is set on, not to those of its children.
    for name in loggers:
        logging.getLogger(name).addFilter(_SELDOM)

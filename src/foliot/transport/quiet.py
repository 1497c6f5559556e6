"""Libraries that say several times a second that they can't connect: one line in a while is enough.

What it means is told by the carrier, once.
"""

import logging

EVERY_S = 60.0


class Seldom(logging.Filter):
    """Lets each kind of complaint pass once in a while."""

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


_SELDOM = Seldom()


def quieten(*loggers: str) -> None:
    # A filter holds for records of the very logger that it is on.
    for name in loggers:
        logging.getLogger(name).addFilter(_SELDOM)

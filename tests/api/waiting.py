"""Waits for what a server does in the background."""

import time
from collections.abc import Callable

WITHIN_S = 60.0
EVERY_S = 0.05


def until(condition: Callable[[], bool]) -> None:
    """Wait until the condition is true. The timeout only prevents a hanging test."""
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(EVERY_S)

"""Waiting for what a server does by itself."""

import time
from collections.abc import Callable

WITHIN_S = 60.0
EVERY_S = 0.05


def until(condition: Callable[[], bool]) -> None:
    """Wait for something to become true; the limit is only against hanging for ever."""
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(EVERY_S)

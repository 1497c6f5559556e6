"""Waits for what happens in the background, in tests that are not async. Others use `engine.until`."""

import time
from collections.abc import Callable

WITHIN_S = 60.0
EVERY_S = 0.05


def until(condition: Callable[[], bool], what: str = "it") -> None:
    """Wait until the condition is true. The timeout only prevents a hanging test."""
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(EVERY_S)

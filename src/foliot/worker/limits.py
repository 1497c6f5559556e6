"""Limits on the CPU cores and memory that a worker may use. Without a limit, it uses what it needs.

Cores are limited by CPU affinity, which isolated processes inherit. Memory is limited by measuring its use.
An isolated function that exceeds the limit is killed with all processes it started. A worker that exceeds it
drains: it claims no more, finishes what runs and exits, so that its supervisor restarts it.
"""

import os
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from foliot.service import Wake

EVERY_S = 1.0
_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*$", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def size_of(text: str) -> int:
    """Convert a size like `2GB`, `512MiB` or `800000` to bytes. GB and GiB are both 1024³. Raises
    ValueError."""
    match = _SIZE.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size; write it as 512MB or 2GB")
    return int(float(match[1]) * 1024 ** _POWERS[match[2].lower()])


@dataclass(frozen=True, slots=True)
class Limits:
    memory_bytes: int | None = None
    cpu_count: int | None = None


def keep_to_cores(count: int) -> None:
    """Bind this process to `count` of its allowed cores, chosen at random so that workers use different
    ones."""
    if not hasattr(os, "sched_setaffinity"):
        return
    allowed = sorted(os.sched_getaffinity(0))
    if count < len(allowed):
        os.sched_setaffinity(0, random.sample(allowed, count))


class MemoryWatch:
    """A service that calls `on_passed` once, when this process's memory exceeds the limit."""

    name = "memory"

    def __init__(
        self,
        limit: int,
        on_passed: Callable[[int], None],
        resident: Callable[[], int] = lambda: int(psutil.Process().memory_info().rss),
    ) -> None:
        self.wake = Wake()
        self._limit = limit
        self._on_passed = on_passed
        self._resident = resident

    async def step(self) -> float | None:
        resident = self._resident()
        if resident <= self._limit:
            return EVERY_S
        self._on_passed(resident)
        return None

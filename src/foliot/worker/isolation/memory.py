"""Measures the memory of isolated functions, including all processes they have started.

It counts memory in use, not address space: a JVM reserves gigabytes that it never touches. Memory that
several processes share is divided among them (PSS). Memory shared with the template does not count as the
function's, so the template's own share is subtracted.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import psutil


def over_limit(pids: Mapping[int, int], template: int, limit: int) -> dict[int, int]:
    """Return the attempts that use more than `limit` bytes, and how many. `pids` maps attempts to processes.

    Blocks while it reads one line of /proc per process. It reads more only if that line suggests an excess.
    """
    own = _resident(template)
    over = {}
    for attempt, pid in pids.items():
        processes = _tree(pid)
        if sum(map(_resident, processes)) - own <= limit:
            continue
        used = sum(map(_proportional, processes)) - _proportional(template)
        if used > limit:
            over[attempt] = used
    return over


def _tree(pid: int) -> list[int]:
    """Return a process and all its descendants. Orphans are included, since the process adopts them."""
    found = [pid]
    for each in found:
        found += _children(each)
    return found


def _children(pid: int) -> list[int]:
    folder = Path(f"/proc/{pid}/task")
    try:
        # psutil would read every process of the machine for each attempt.
        return [
            int(child) for thread in folder.iterdir() for child in (thread / "children").read_text().split()
        ]
    except OSError:
        if sys.platform == "linux":
            return []  # it has just ended
    try:
        return [each.pid for each in psutil.Process(pid).children()]
    except psutil.Error:
        return []


def _resident(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def _proportional(pid: int) -> int:
    try:
        used = psutil.Process(pid).memory_full_info()
    except psutil.AccessDenied:
        # It runs as another user, for example after sudo: its shared memory can't be determined.
        return _resident(pid)
    except psutil.Error:
        return 0
    return int(getattr(used, "pss", used.rss))

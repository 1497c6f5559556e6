"""How much memory isolated functions use, with all the programs that they have started.

Counted is what is really in use, not address space: a JVM reserves gigabytes that it never touches. Memory
that several processes share is divided among them (PSS). What a process shares with the template it was
forked from is not the function's, so the template's own share is taken off.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import psutil


def over_limit(pids: Mapping[int, int], template: int, limit: int) -> dict[int, int]:
    """Which attempts use more bytes than the limit, and how many. `pids` are processes by attempt.

    Blocks while it reads: for each process a line of /proc, and more only where that line is alarming.
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
    """A process and what it has started; orphans among them belong to it, since it adopts them."""
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
        # It runs as another user, as after sudo: what it shares can't be told apart.
        return _resident(pid)
    except psutil.Error:
        return 0
    return int(getattr(used, "pss", used.rss))

"""Kernel settings for the template and its children."""

import contextlib
import ctypes
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIKELY_VICTIM = "500"


def die_with_parent(number: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel send this signal to this process when its parent dies. Only on Linux."""
    _prctl(_PR_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Become the parent of orphaned descendants. Only on Linux."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0)


if sys.platform == "linux":
    # Loaded before the first fork: a new child should do as little as possible before it is set up.
    _libc = ctypes.CDLL(None, use_errno=True)


def prefer_as_victim() -> None:
    """Make the kernel kill this process rather than the worker when memory runs out."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_LIKELY_VICTIM)

"""What the kernel is asked to do for the template and its children."""

import contextlib
import ctypes
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIKELY_VICTIM = "500"


def die_with_parent(number: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send this signal when the parent dies. Only on Linux."""
    _prctl(_PR_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Become the parent of whatever a descendant leaves behind. Only on Linux."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0)


if sys.platform == "linux":
    # Looked up before the first fork: a child between fork and its limits should do as little as it can.
    _libc = ctypes.CDLL(None, use_errno=True)


def prefer_as_victim() -> None:
    """When memory runs out the kernel is to end this process, not the worker."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_LIKELY_VICTIM)

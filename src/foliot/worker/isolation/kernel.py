"""What the kernel is asked to do for the template and its children."""

import contextlib
import ctypes
import resource
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


def limit_memory(added_bytes: int | None) -> None:
    """Let this process take so much more than it has.

    What is limited is address space, the only limit there is without privileges. An interpreter with its
    libraries has a good part of it before it does anything, so the limit counts from there. Each program
    that the process starts has the same limit for itself.
    """
    if added_bytes is None:
        return
    _soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = _address_space() + added_bytes
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def lift_memory_limit() -> None:
    """The function has had its MemoryError; telling of it needs memory, too."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _address_space() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return 0
    return pages * resource.getpagesize()


def prefer_as_victim() -> None:
    """When memory runs out the kernel is to end this process, not the worker."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_LIKELY_VICTIM)

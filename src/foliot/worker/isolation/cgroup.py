"""Memory limits that the kernel keeps: a cgroup (version 2) for each attempt.

Only where this process was given cgroups to manage: in a systemd unit with `Delegate=yes`, or in a container
that may write to its /sys/fs/cgroup. Everywhere else memory is measured and nothing more (`memory.py`).

    base                     subtree_control: +memory
    ├── foliot-worker        the worker and its template: base may hold no process of its own then
    └── foliot-<pid>-<n>     attempt n of the template with this pid; removed when the attempt has ended
"""

import contextlib
import os
from pathlib import Path

import psutil

ROOT = Path("/sys/fs/cgroup")
LEAF = "foliot-worker"
CONTROLLER = "memory"
_DELEGATED = ("user.delegate", "trusted.delegate")
"""Attributes that systemd puts on the cgroup of a unit with Delegate=yes."""


class MemoryGroups:
    """The cgroups of attempts, all with one limit. Made in the template process; children enter theirs."""

    def __init__(self, base: Path, limit: int) -> None:
        self._base = base
        self._limit = limit
        self._template = os.getpid()

    @classmethod
    def open(
        cls, limit: int, worker: int, root: Path = ROOT, own: Path | None = None
    ) -> "MemoryGroups | None":
        """None: there are no cgroups for us to manage. `worker` is the pid of the worker."""
        try:
            base = _base(root, own or root / _own_path())
            if base is None or not _vacate(base, worker):
                return None
            (base / "cgroup.subtree_control").write_text(f"+{CONTROLLER}")
            _remove_abandoned(base)
        except (OSError, psutil.Error):
            return None
        return cls(base, limit)

    def add(self, attempt: int) -> None:
        """Make the cgroup of an attempt; where that fails, the attempt runs without one."""
        folder = self._folder(attempt)
        with contextlib.suppress(OSError):
            folder.mkdir()
            (folder / "memory.max").write_text(str(self._limit))
            # All its processes or none: a function must not go on without the program that it waits for.
            (folder / "memory.oom.group").write_text("1")
            (folder / "memory.swap.max").write_text("0")

    def enter(self, attempt: int) -> None:
        """Move the calling process into the cgroup of its attempt."""
        with contextlib.suppress(OSError):
            (self._folder(attempt) / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self, attempt: int) -> bool:
        """Remove the cgroup of an attempt that has ended; returns whether the kernel has killed it."""
        folder = self._folder(attempt)
        is_out_of_memory = False
        with contextlib.suppress(OSError, ValueError):
            events = dict(line.split() for line in (folder / "memory.events").read_text().splitlines())
            is_out_of_memory = int(events.get("oom_kill", 0)) > 0
        with contextlib.suppress(OSError):
            folder.rmdir()
        return is_out_of_memory

    def _folder(self, attempt: int) -> Path:
        return self._base / f"foliot-{self._template}-{attempt}"


def _own_path() -> str:
    """Where this process is in the one hierarchy of version 2; raises FileNotFoundError without cgroups."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::"):
            return line.removeprefix("0::").removeprefix("/")
    raise FileNotFoundError("/proc/self/cgroup names no cgroup of version 2")


def _base(root: Path, own: Path) -> Path | None:
    """The cgroup below which ours may be made: our own, or the one above where ours is a part of it."""
    if own.name != LEAF and _is_delegated(own, root):
        return own
    # A template that was started again, or systemd's DelegateSubgroup=.
    return own.parent if own != root and _is_delegated(own.parent, root) else None


def _is_delegated(folder: Path, root: Path) -> bool:
    control = folder / "cgroup.subtree_control"
    if (
        not os.access(control, os.W_OK)
        or CONTROLLER not in (folder / "cgroup.controllers").read_text().split()
    ):
        return False
    if folder == root:
        # The root of a container; that of the machine has no such file.
        return (folder / "memory.max").exists()
    for name in _DELEGATED:
        with contextlib.suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return True
    return False


def _vacate(base: Path, worker: int) -> bool:
    """Move the processes of a cgroup into a leaf of their own; not if some are none of ours."""
    listed = {int(pid) for pid in (base / "cgroup.procs").read_text().split()}
    process = psutil.Process(worker)
    ours = {worker, os.getpid()} | {each.pid for each in process.parents()}
    if not listed <= ours:
        return False
    leaf = base / LEAF
    if listed:
        leaf.mkdir(exist_ok=True)
    for pid in listed:
        (leaf / "cgroup.procs").write_text(str(pid))
    return True


def _remove_abandoned(base: Path) -> None:
    """Remove what templates that were killed have left; a cgroup in use can't be removed."""
    for folder in base.glob("foliot-*-*"):
        pid = folder.name.split("-")[1]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            with contextlib.suppress(OSError):
                folder.rmdir()

"""Memory limits enforced by the kernel: one cgroup (version 2) per attempt.

Used only if this process may manage cgroups: in a systemd unit with `Delegate=yes`, or in a container that
may write to its /sys/fs/cgroup. Otherwise memory use is only measured (`memory.py`).

    base                     subtree_control: +memory
    ├── foliot-worker        the worker and its template: base may then hold no process of its own
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
"""Extended attributes that systemd sets on the cgroup of a unit with Delegate=yes."""


class MemoryGroups:
    """The cgroups of attempts, all with the same limit. The template creates them; each child enters its
    own."""

    def __init__(self, base: Path, limit: int) -> None:
        self._base = base
        self._limit = limit
        self._template = os.getpid()

    @classmethod
    def open(
        cls, limit: int, worker: int, root: Path = ROOT, own: Path | None = None
    ) -> "MemoryGroups | None":
        """Return None if this process may not manage cgroups. `worker` is the pid of the worker."""
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
        """Create the cgroup of an attempt. If that fails, the attempt runs without one."""
        folder = self._folder(attempt)
        with contextlib.suppress(OSError):
            folder.mkdir()
            (folder / "memory.max").write_text(str(self._limit))
            # Kill all processes or none: a function must not go on without the program that it waits for.
            (folder / "memory.oom.group").write_text("1")
            (folder / "memory.swap.max").write_text("0")

    def enter(self, attempt: int) -> None:
        """Move the calling process into the cgroup of its attempt."""
        with contextlib.suppress(OSError):
            (self._folder(attempt) / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self, attempt: int) -> bool:
        """Remove the cgroup of an ended attempt; return whether the kernel killed it for its memory use."""
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
    """Return this process's path in the version 2 hierarchy. Raises FileNotFoundError without cgroups."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::"):
            return line.removeprefix("0::").removeprefix("/")
    raise FileNotFoundError("/proc/self/cgroup names no cgroup of version 2")


def _base(root: Path, own: Path) -> Path | None:
    """Return the cgroup to create ours in: our own or its parent. None: neither is delegated to us."""
    if own.name != LEAF and _is_delegated(own, root):
        return own
    # Our own is a leaf after a restart of the template, or with systemd's DelegateSubgroup=.
    return own.parent if own != root and _is_delegated(own.parent, root) else None


def _is_delegated(folder: Path, root: Path) -> bool:
    control = folder / "cgroup.subtree_control"
    if (
        not os.access(control, os.W_OK)
        or CONTROLLER not in (folder / "cgroup.controllers").read_text().split()
    ):
        return False
    if folder == root:
        # Only a container's root has this file; the machine's root cgroup has not.
        return (folder / "memory.max").exists()
    for name in _DELEGATED:
        with contextlib.suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return True
    return False


def _vacate(base: Path, worker: int) -> bool:
    """Move all processes of a cgroup into a leaf. Returns False if it also holds processes that are not
    ours."""
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
    """Remove cgroups of templates that no longer exist. A cgroup in use can't be removed."""
    for folder in base.glob("foliot-*-*"):
        pid = folder.name.split("-")[1]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            with contextlib.suppress(OSError):
                folder.rmdir()

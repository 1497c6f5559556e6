"""Limits a process to a share of one core, with its own control group (cgroup)."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

PERIOD_US = 20_000
ROOTS = {Path("/sys/fs/cgroup/cpu"): "cpu.cfs_quota_us", Path("/sys/fs/cgroup"): "cpu.max"}
"""Root folder of cgroup v1 and v2, with the file that sets the limit."""


@contextmanager
def capped(pids: Sequence[int], share: float) -> Iterator[bool]:
    """Limit each process to a share of a core. Yield whether that worked.

    It needs root and a kernel that allows it.
    """
    with ExitStack() as stack:
        yield all(_cap(stack, pid, share) for pid in pids)


def _cap(stack: ExitStack, pid: int, share: float) -> bool:
    for root, limit in ROOTS.items():
        if not (root / "cgroup.procs").exists():
            continue
        group = root / f"foliot-bench-{os.getpid()}-{pid}"
        with suppress(OSError):
            group.mkdir()
            stack.callback(_remove, group)
            quota = str(int(PERIOD_US * share))
            if limit == "cpu.max":
                (group / limit).write_text(f"{quota} {PERIOD_US}")
            else:
                (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (group / limit).write_text(quota)
            (group / "cgroup.procs").write_text(str(pid))
            return True
    return False


def _remove(group: Path) -> None:
    """Remove the group. This works only after its process has ended."""
    with suppress(OSError):
        group.rmdir()

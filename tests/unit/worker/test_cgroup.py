"""Which cgroups are taken for attempts, and what is written to them.

A folder stands in for /sys/fs/cgroup: machines that run the tests rarely have a memory controller to use.
That the kernel then keeps the limit is the kernel's.
"""

import os
from pathlib import Path

import psutil
import pytest

from foliot.worker.isolation.cgroup import LEAF, MemoryGroups

LIMIT = 64 * 2**20


def group(folder: Path, *pids: int, controllers: str = "cpu memory") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "cgroup.controllers").write_text(controllers)
    (folder / "cgroup.subtree_control").write_text("")
    (folder / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
    return folder


@pytest.fixture
def container(tmp_path: Path) -> Path:
    """The root of a container, with this process in it."""
    root = group(tmp_path / "cgroup", os.getpid())
    (root / "memory.max").write_text("max")
    return root


def test_in_a_container_the_worker_moves_aside_and_attempts_get_their_limit(container: Path) -> None:
    groups = MemoryGroups.open(LIMIT, os.getpid(), container, container)
    assert groups is not None
    assert (container / LEAF / "cgroup.procs").read_text() == str(os.getpid())
    assert (container / "cgroup.subtree_control").read_text() == "+memory"

    groups.add(7)
    [made] = container.glob("foliot-*-7")
    assert (made / "memory.max").read_text() == str(LIMIT)
    assert (made / "memory.oom.group").read_text() == "1"
    groups.enter(7)
    assert (made / "cgroup.procs").read_text() == str(os.getpid())


@pytest.mark.parametrize(("killed", "told"), [(0, False), (3, True)])
def test_an_attempt_that_the_kernel_killed_is_told_from_others(
    container: Path, killed: int, told: bool
) -> None:
    groups = MemoryGroups.open(LIMIT, os.getpid(), container, container)
    assert groups is not None
    groups.add(1)
    [made] = container.glob("foliot-*-1")
    (made / "memory.events").write_text(f"low 0\nhigh 0\nmax 9\noom 1\noom_kill {killed}\n")
    assert groups.remove(1) is told
    assert groups.remove(2) is False


def test_a_template_that_is_started_again_uses_the_same_base(container: Path) -> None:
    (container / "cgroup.procs").write_text("")
    leaf = group(container / LEAF, os.getpid())
    gone = container / f"foliot-{psutil.Process().pid + 2**22}-1"
    gone.mkdir()
    assert MemoryGroups.open(LIMIT, os.getpid(), container, leaf) is not None
    assert not gone.exists()
    assert not (leaf / LEAF).exists()


def test_processes_of_others_are_never_moved(container: Path) -> None:
    group(container, os.getpid(), 2**22 + 1)
    assert MemoryGroups.open(LIMIT, os.getpid(), container, container) is None
    assert not (container / LEAF).exists()


def test_a_unit_that_was_not_delegated_is_left_alone(container: Path) -> None:
    unit = group(container / "foliot.service", os.getpid())
    (container / "memory.max").unlink()  # the machine's own root
    assert MemoryGroups.open(LIMIT, os.getpid(), container, unit) is None


@pytest.mark.parametrize("controllers", ["", "cpu io"])
def test_without_a_memory_controller_there_are_no_groups(container: Path, controllers: str) -> None:
    (container / "cgroup.controllers").write_text(controllers)
    assert MemoryGroups.open(LIMIT, os.getpid(), container, container) is None


def test_without_cgroups_of_version_2_there_are_none(tmp_path: Path) -> None:
    assert MemoryGroups.open(LIMIT, os.getpid(), tmp_path, tmp_path) is None

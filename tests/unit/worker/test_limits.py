"""How much of the machine a worker may use."""

import os

import pytest

from foliot.instance.settings import Settings
from foliot.worker.limits import Limits, MemoryWatch, keep_to_cores, size_of


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GB", 2 * 1024**3),
        ("512MiB", 512 * 1024**2),
        ("1.5g", 3 * 1024**3 // 2),
        ("800000", 800000),
        (" 1 kb ", 1024),
    ],
)
def test_a_size_is_read_as_people_write_it(text: str, size: int) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize("text", ["", "lots", "2 G B", "-1GB", "2XB", "1e3"])
def test_what_is_no_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="2GB"):
        size_of(text)


async def test_memory_past_the_limit_is_told_once() -> None:
    told: list[int] = []
    sizes = iter([10, 90, 101])
    watch = MemoryWatch(100, told.append, lambda: next(sizes))
    assert await watch.step() is not None
    assert await watch.step() is not None
    assert await watch.step() is None
    assert told == [101]


def test_a_process_keeps_to_some_of_the_cores_that_it_may_use() -> None:
    before = os.sched_getaffinity(0)
    try:
        keep_to_cores(1)
        kept = os.sched_getaffinity(0)
        assert len(kept) == 1
        assert kept <= before
        keep_to_cores(64)
        assert os.sched_getaffinity(0) == kept
    finally:
        os.sched_setaffinity(0, before)


def test_there_is_no_limit_unless_one_is_set() -> None:
    assert Settings().worker_limits == Limits(memory_bytes=None, cpu_count=None)
    given = Settings(worker_memory_limit="2GB", worker_cpu_limit=4)
    assert given.worker_limits == Limits(memory_bytes=2 * 1024**3, cpu_count=4)
    with pytest.raises(ValueError, match="at least 64MB"):
        Settings(worker_memory_limit="1MB")

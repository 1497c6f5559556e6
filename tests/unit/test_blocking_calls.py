"""Calls that block, made by threads that stay."""

import asyncio
import threading

import pytest

from foliot.blocking_calls import BlockingCalls


async def test_a_call_returns_or_raises_to_who_asked() -> None:
    threads = BlockingCalls("test")

    def fail() -> None:
        raise ValueError("no")

    assert await threads.run(lambda: 42) == 42
    with pytest.raises(ValueError, match="no"):
        await threads.run(fail)
    threads.close()


async def test_one_thread_makes_all_calls_in_their_order() -> None:
    threads = BlockingCalls("test")
    made: list[tuple[int, int]] = []
    calls = [threads.run(lambda n=n: made.append((n, threading.get_ident()))) for n in range(20)]  # type: ignore[misc]
    await asyncio.gather(*calls)
    assert [number for number, _ in made] == list(range(20))
    assert len({thread for _, thread in made}) == 1
    threads.close()


async def test_a_call_that_was_cancelled_before_it_began_is_not_made() -> None:
    threads = BlockingCalls("test")
    gate, made = threading.Event(), list[str]()
    first = threads.run(gate.wait)
    second = threads.run(lambda: made.append("second"))
    second.cancel()
    gate.set()
    await first
    await threads.run(lambda: made.append("third"))
    assert made == ["third"]
    threads.close()


async def test_threads_end_when_it_is_closed_and_a_new_call_starts_one() -> None:
    threads = BlockingCalls("test-closing", threads=2)
    await asyncio.gather(*(threads.run(lambda: None) for _ in range(4)))
    mine = [thread for thread in threading.enumerate() if thread.name == "test-closing"]
    assert len(mine) == 2
    threads.close()
    for thread in mine:
        thread.join(5)
        assert not thread.is_alive()
    assert await threads.run(lambda: "again") == "again"
    threads.close()

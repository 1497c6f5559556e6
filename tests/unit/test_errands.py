"""Calls that block, made by threads that stay."""

import asyncio
import threading

import pytest

from foliot.errands import Errands


async def test_a_call_returns_or_raises_to_who_asked() -> None:
    errands = Errands("test")

    def fail() -> None:
        raise ValueError("no")

    assert await errands.do(lambda: 42) == 42
    with pytest.raises(ValueError, match="no"):
        await errands.do(fail)
    errands.close()


async def test_one_thread_makes_all_calls_in_their_order() -> None:
    errands = Errands("test")
    made: list[tuple[int, int]] = []
    calls = [errands.do(lambda n=n: made.append((n, threading.get_ident()))) for n in range(20)]  # type: ignore[misc]
    await asyncio.gather(*calls)
    assert [number for number, _ in made] == list(range(20))
    assert len({thread for _, thread in made}) == 1
    errands.close()


async def test_a_call_that_was_cancelled_before_it_began_is_not_made() -> None:
    errands = Errands("test")
    gate, made = threading.Event(), list[str]()
    first = errands.do(gate.wait)
    second = errands.do(lambda: made.append("second"))
    second.cancel()
    gate.set()
    await first
    await errands.do(lambda: made.append("third"))
    assert made == ["third"]
    errands.close()


async def test_threads_end_when_it_is_closed_and_a_new_call_starts_one() -> None:
    errands = Errands("test-closing", threads=2)
    await asyncio.gather(*(errands.do(lambda: None) for _ in range(4)))
    mine = [thread for thread in threading.enumerate() if thread.name == "test-closing"]
    assert len(mine) == 2
    errands.close()
    for thread in mine:
        thread.join(5)
        assert not thread.is_alive()
    assert await errands.do(lambda: "again") == "again"
    errands.close()

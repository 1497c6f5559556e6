"""A child as the worker sees it, without one."""

import os
import signal
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from foliot.kinds.function_target import RemoteFailedError
from foliot.kinds.target_protocol import Fire, LogLine
from foliot.model.ids import new_id
from foliot.timing.clock import VirtualClock
from foliot.worker.isolation.frames import encode, with_length
from foliot.worker.isolation.running_child import RunningChild, why_ended

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Stage:
    """A child whose part the test plays."""

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.progress: list[tuple[float, str]] = []
        fire = Fire(new_id(), new_id(), "one", NOW, 1, lambda *told: self.progress.append(told))
        self.child = RunningChild(fire, self.hear, VirtualClock(NOW))
        connection, self.output, self.errors = (os.dup(each) for each in self.child.descriptors)
        self.connection = socket.socket(fileno=connection)
        self.child.start_reading()

    def hear(self, line: LogLine) -> None:
        self.lines.append(line)

    def leave(self) -> None:
        self.connection.close()
        os.close(self.output)
        os.close(self.errors)
        self.child.close()


@pytest.fixture
async def there() -> AsyncIterator[Stage]:
    made = Stage()
    yield made
    made.leave()


async def test_what_is_still_in_the_pipes_when_the_process_is_gone_counts(there: Stage) -> None:
    os.write(there.output, b"line\n" * 10_000)
    os.write(there.errors, b"no end")
    there.connection.sendall(encode({"progress": 0.5, "text": "half"}))
    there.connection.sendall(encode({"log": [NOW.isoformat(), "warning", "shop", "low"]}))
    there.connection.sendall(encode({"result": ["x" * 50_000]}))
    there.child.end("not to be told")
    assert there.child.result() == ["x" * 50_000]
    assert there.progress == [(0.5, "half")]
    assert there.lines[0] == LogLine(NOW, "warning", "shop", "low")
    assert [line.message for line in there.lines if line.logger == "stdout"] == ["line"] * 10_000
    assert [line.message for line in there.lines if line.logger == "stderr"] == ["no end"]


async def test_a_result_that_is_larger_than_a_pipe_is_read_to_its_end(there: Stage) -> None:
    there.connection.settimeout(1)
    there.connection.sendall(encode({"result": "x" * 150_000}))
    there.child.end("not to be told")
    assert there.child.result() == "x" * 150_000


async def test_a_program_that_goes_on_writing_does_not_hold_up_the_end() -> None:
    class Endless(Stage):
        """Whatever is read of its output, there is more: a thousand lines, so that a failure ends."""

        def hear(self, line: LogLine) -> None:
            self.lines.append(line)
            if len(self.lines) < 1000:
                os.write(self.output, b"more\n")

    there = Endless()
    os.write(there.output, b"first\nsecond\n")
    there.child.end("its process was killed")
    assert [line.message for line in there.lines] == ["first", "second"]
    there.leave()


async def test_a_process_that_said_nothing_has_failed_as_it_ended(there: Stage) -> None:
    there.child.end("its process was killed")
    with pytest.raises(RemoteFailedError, match=r"^its process was killed$"):
        there.child.result()


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        with_length(b"[]"),
        encode({"progress": 7, "text": "too much"}),
        encode({"log": ["yesterday", "info", "shop", "low"]}),
        encode({"log": 1}),
    ],
)
async def test_a_process_that_talks_nonsense_has_failed_and_can_go_on_talking(
    data: bytes, there: Stage
) -> None:
    there.connection.sendall(data + encode({"progress": 0.5, "text": "half"}))
    there.child.end("not to be told")
    with pytest.raises(RemoteFailedError, match="sent what can't be understood"):
        there.child.result()
    assert there.progress == []


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (3 << 8, "its process ended with exit status 3 before the function returned"),
        (signal.SIGTERM, "its process was killed (SIGTERM)"),
        (signal.SIGKILL, "its process was killed (SIGKILL), maybe out of memory"),
        (40, "its process was killed (signal 40)"),
    ],
)
def test_the_end_of_a_process_is_told_in_words(status: int, told: str) -> None:
    assert why_ended(int(status)) == told

"""Log lines, made of what a child prints."""

from datetime import UTC, datetime

import pytest

from foliot.kinds.target_protocol import LogLine
from foliot.timing.clock import VirtualClock
from foliot.worker.isolation.lines import LINE_BYTES, Lines

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Told:
    def __init__(self) -> None:
        self.all: list[LogLine] = []
        self.lines = Lines("stdout", self.all.append, VirtualClock(NOW))

    @property
    def messages(self) -> list[str]:
        return [line.message for line in self.all]


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_line_is_told_when_it_is_whole(told: Told) -> None:
    told.lines.feed(b"on")
    assert told.messages == []
    told.lines.feed(b"e\ntwo\r\n\nthr")
    assert told.all[0] == LogLine(NOW, "info", "stdout", "one")
    assert told.messages == ["one", "two", ""]


def test_the_last_line_needs_no_end(told: Told) -> None:
    told.lines.feed(b"one\ntwo")
    told.lines.finish()
    told.lines.finish()
    assert told.messages == ["one", "two"]


def test_a_character_may_come_in_two_pieces_and_what_is_none_is_replaced(told: Told) -> None:
    for piece in ("é".encode()[:1], "é".encode()[1:], b"\xff\n"):
        told.lines.feed(piece)
    assert told.messages == ["é\ufffd"]


def test_a_line_without_end_is_cut_in_pieces(told: Told) -> None:
    for _ in range(5):
        told.lines.feed(b"x" * (LINE_BYTES // 2))
    told.lines.finish()
    assert [len(message) for message in told.messages] == [LINE_BYTES, LINE_BYTES, LINE_BYTES // 2]

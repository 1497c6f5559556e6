"""A library that complains without end is heard now and then."""

import logging

import pytest

from foliot.brokers.quiet_logs import EVERY_S, RepeatedWarningFilter


def record(line: int, created: float, level: int = logging.ERROR) -> logging.LogRecord:
    found = logging.LogRecord("library", level, "library.py", line, "can't connect", (), None)
    found.created = created
    return found


@pytest.fixture
def seldom() -> RepeatedWarningFilter:
    return RepeatedWarningFilter()


def test_the_same_complaint_is_heard_once_in_a_while(seldom: RepeatedWarningFilter) -> None:
    passed = [seldom.filter(record(1, at)) for at in (0.0, 1.0, EVERY_S - 1, EVERY_S, EVERY_S + 1)]
    assert passed == [True, False, False, True, False]


def test_another_complaint_is_heard_at_once(seldom: RepeatedWarningFilter) -> None:
    assert seldom.filter(record(1, 0.0))
    assert seldom.filter(record(2, 0.0))


def test_what_is_no_complaint_is_left_alone(seldom: RepeatedWarningFilter) -> None:
    assert all(seldom.filter(record(1, 0.0, logging.INFO)) for _ in range(3))

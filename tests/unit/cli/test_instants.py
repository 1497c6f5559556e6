"""Instants and durations, as people write and read them."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.cli.support.instants import (
    both,
    duration,
    first_relative,
    instant_of,
    local,
    read_instant,
    relative,
)
from foliot.model.errors import InvalidError
from foliot.timing.duration import seconds_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The machine stands in Berlin."""
    before = os.environ.get("TZ")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    assert os.environ.get("TZ") == before
    time.tzset()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("10m", 600),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("2d", 172800),
        ("1w", 604800),
        ("250ms", 0.25),
        ("7", 7),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text, "--x") == seconds


@pytest.mark.parametrize("text", ["", "x", "5 parsecs", "-3s", "1h x", "s"])
def test_what_is_no_duration_names_the_option(text: str) -> None:
    with pytest.raises(InvalidError, match="--x"):
        seconds_of(text, "--x")


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("now", "2026-03-01T12:00:00"),
        ("2026-03-29T02:30Z", "2026-03-29T02:30:00"),
        ("2026-03-01T08:00+05:00", "2026-03-01T03:00:00"),
        ("2026-03-01T08:00", "2026-03-01T07:00:00"),
        ("2026-07-01", "2026-06-30T22:00:00"),
        ("2h", "2026-03-01T10:00:00"),
        ("-2h", "2026-03-01T10:00:00"),
        ("+2h", "2026-03-01T14:00:00"),
    ],
)
def test_instants_without_an_offset_are_of_this_machine_and_durations_go_back(
    text: str, instant: str
) -> None:
    assert instant_of(text, "--from", NOW) == instant + "+00:00"


def test_where_the_future_is_meant_durations_go_ahead() -> None:
    assert instant_of("2h", "--until", NOW, is_ahead=True) == "2026-03-01T14:00:00+00:00"
    assert instant_of("-2h", "--until", NOW, is_ahead=True) == "2026-03-01T10:00:00+00:00"


@pytest.mark.parametrize("text", ["", "soon", "2026-02-30", "25:00", "9999999999d", "0001-01-01"])
def test_what_is_no_instant_names_the_option(text: str) -> None:
    with pytest.raises(InvalidError, match="--from"):
        instant_of(text, "--from", NOW)


def test_times_are_shown_local_with_seconds_only_where_there_are_some() -> None:
    assert local("2026-03-01T02:00:00Z") == "2026-03-01 03:00"
    assert local("2026-07-01T02:00:05.123Z") == "2026-07-01 04:00:05"
    assert local(None) == local("nonsense") == local(3) == ""


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.2, "now"),
        (42, "in 42 s"),
        (180, "in 3 min"),
        (-7200, "2 h ago"),
        (3600 * 47, "in 47 h"),
        (-86400 * 12, "12 days ago"),
    ],
)
def test_and_how_far_they_are(seconds: float, told: str) -> None:
    assert relative((NOW + timedelta(seconds=seconds)).isoformat(), NOW) == told


def test_both_together_in_either_order() -> None:
    at = "2026-03-01T12:03:00Z"
    assert both(at, NOW) == "2026-03-01 13:03 (in 3 min)"
    assert first_relative(at, NOW) == "in 3 min (2026-03-01 13:03)"
    assert both(None, NOW) == first_relative(None, NOW) == ""


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0007, "0.7 ms"),
        (0.25, "250 ms"),
        (1.5, "1.5 s"),
        (300, "5 min"),
        (5400, "1.5 h"),
        (604800, "7 days"),
    ],
)
def test_durations_are_shown_short(seconds: float, told: str) -> None:
    assert duration(seconds) == told


@given(st.floats(min_value=0, max_value=1e12))
def test_every_duration_can_be_shown(seconds: float) -> None:
    assert duration(seconds)


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_an_answer_says_is_read_back(instant: datetime) -> None:
    assert read_instant(instant.isoformat()) == instant
    assert instant_of(instant.isoformat(), "--from", NOW) == instant.isoformat()

"""What a worker can't run, and how long it passes it over."""

from datetime import UTC, datetime
from uuid import UUID

from foliot.timing.clock import ClusterClock, VirtualClock
from foliot.worker.unrunnable import LONGEST_S, MAX_REMEMBERED, Unrunnable


def version(number: int) -> tuple[UUID, int]:
    return UUID(int=number), 1


def made() -> tuple[Unrunnable, VirtualClock]:
    clock = VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))
    return Unrunnable(ClusterClock(clock)), clock


def pause_of(unrunnable: Unrunnable, clock: VirtualClock) -> float:
    """How long a version that is met now is passed over."""
    began = clock.monotonic()
    assert unrunnable.add(version(1))
    while unrunnable.passed_over():
        clock.advance(10)
    return clock.monotonic() - began


def test_a_version_is_passed_over_for_longer_each_time_up_to_a_limit() -> None:
    unrunnable, clock = made()
    pauses = [pause_of(unrunnable, clock) for _ in range(8)]
    assert pauses == sorted(pauses)
    assert pauses[0] < pauses[1] < pauses[2]
    assert pauses[-1] == LONGEST_S


def test_meeting_it_again_meanwhile_changes_nothing() -> None:
    unrunnable, clock = made()
    assert unrunnable.add(version(1))
    for _ in range(20):
        assert unrunnable.add(version(1))
    clock.advance(60)
    assert unrunnable.passed_over() == ()


def test_what_it_remembers_is_bounded_and_what_is_over_makes_room() -> None:
    unrunnable, clock = made()
    for number in range(MAX_REMEMBERED):
        assert unrunnable.add(version(number))
    assert not unrunnable.add(version(MAX_REMEMBERED))
    assert len(unrunnable.passed_over()) == MAX_REMEMBERED
    clock.advance(LONGEST_S)
    assert unrunnable.add(version(MAX_REMEMBERED))
    assert unrunnable.passed_over() == (version(MAX_REMEMBERED),)

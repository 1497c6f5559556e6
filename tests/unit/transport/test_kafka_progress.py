"""How far a partition may be committed: never past a message that was not seen to."""

from hypothesis import given
from hypothesis import strategies as st

from foliot.transport.kafka_progress import OffsetTracker


def test_a_gap_is_not_committed_past() -> None:
    progress = OffsetTracker()
    for offset in (5, 6, 7):
        progress.given(offset)
    progress.done(6)
    progress.done(7)
    assert not progress.has_moved
    progress.done(5)
    assert (progress.has_moved, progress.position) == (True, 8)
    progress.committed(8)
    assert not progress.has_moved


@given(st.permutations(range(20)), st.integers(0, 20))
def test_the_position_is_behind_the_first_that_is_not_done(order: list[int], count: int) -> None:
    progress = OffsetTracker()
    for offset in range(20):
        progress.given(offset)
    for offset in order[:count]:
        progress.done(offset)
    left = set(order[count:])
    assert progress.position == min(left, default=20)

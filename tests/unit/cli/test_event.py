"""Finding the end of the outbox."""

from hypothesis import given
from hypothesis import strategies as st

from foliot.cli.event import last_offset


@given(st.sets(st.integers(1, 2**40), max_size=20))
def test_the_last_offset_is_found_in_few_questions_whatever_is_missing_before_it(offsets: set[int]) -> None:
    asked = 0

    def has_events(after: int) -> bool:
        nonlocal asked
        asked += 1
        return any(offset > after for offset in offsets)

    assert last_offset(has_events) == max(offsets, default=0)
    assert asked <= 90

"""Checks that exactly one row decides each due time, with arithmetic instead of the product's code."""

from collections import Counter
from datetime import datetime, timedelta

from foliot.model.execution import Execution, TriggeredBy


def decided_times(rows: list[Execution], step: timedelta) -> Counter[datetime]:
    """Count how often the rows decide each fire time. Fire times must be `step` apart."""
    found: Counter[datetime] = Counter()
    for row in rows:
        if row.triggered_by is not TriggeredBy.SCHEDULER:
            continue
        found.update(row.fire_ts - step * back for back in range(row.missed_count + 1))
        if row.missed_count:
            assert row.missed_from_ts == row.fire_ts - step * row.missed_count
    return found


def assert_exact(rows: list[Execution], step: timedelta, first: datetime) -> None:
    """Assert that each fire time from `first` to the last decided one is decided exactly once."""
    found = decided_times(rows, step)
    assert found, "nothing was decided"
    assert max(found.values()) == 1, [at for at, count in found.items() if count > 1]
    last = max(found)
    expected = {first + step * number for number in range((last - first) // step + 1)}
    assert set(found) == expected, sorted(expected.symmetric_difference(found))

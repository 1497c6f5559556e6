"""Is every due time decided by exactly one row? Counted here by arithmetic, not by the product's code."""

from collections import Counter
from datetime import datetime, timedelta

from foliot.model.execution import Execution, TriggeredBy


def decided_times(rows: list[Execution], step: timedelta) -> Counter[datetime]:
    """Every fire time that the rows decide, with how often; for schedules whose times are `step` apart."""
    found: Counter[datetime] = Counter()
    for row in rows:
        if row.triggered_by is not TriggeredBy.SCHEDULER:
            continue
        found.update(row.fire_ts - step * back for back in range(row.missed_count + 1))
        if row.missed_count:
            assert row.missed_from_ts == row.fire_ts - step * row.missed_count
    return found


def assert_exact(rows: list[Execution], step: timedelta, first: datetime) -> None:
    """From the first time on, each is decided once, up to the last that is."""
    found = decided_times(rows, step)
    assert found, "nothing was decided"
    assert max(found.values()) == 1, [at for at, count in found.items() if count > 1]
    last = max(found)
    expected = {first + step * number for number in range((last - first) // step + 1)}
    assert set(found) == expected, sorted(expected.symmetric_difference(found))

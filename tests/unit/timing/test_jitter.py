from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from foliot.timing.jitter import jitter_s

SCHEDULE = UUID("0197f4a2-0000-7000-8000-000000000001")
FIRE = datetime(2026, 5, 5, 12, tzinfo=UTC)


def test_jitter_is_the_same_on_every_node_for_ever() -> None:
    assert jitter_s(SCHEDULE, FIRE, 60) == 20.070983172735453
    assert jitter_s(SCHEDULE, FIRE.astimezone(ZoneInfo("Asia/Tokyo")), 60) == jitter_s(SCHEDULE, FIRE, 60)


def test_jitter_differs_between_fire_times_and_schedules_and_fills_its_range() -> None:
    by_time = [jitter_s(SCHEDULE, FIRE + timedelta(seconds=number), 60) for number in range(1000)]
    by_schedule = [jitter_s(UUID(int=number), FIRE, 60) for number in range(1000)]
    for values in (by_time, by_schedule):
        assert len(set(values)) == 1000
        assert min(values) < 1
        assert max(values) > 59
        assert 28 < sum(values) / 1000 < 32


def test_no_jitter_is_none() -> None:
    assert jitter_s(SCHEDULE, FIRE, 0) == 0

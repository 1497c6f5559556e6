"""Virtual time: what a schedule would decide, and when, given outages."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foliot.model.execution import SkipReason
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.schedule import Schedule, ScheduleSpec
from foliot.planning.change import Author, create
from foliot.planning.simulate import Outage, Simulated, simulate

START = datetime(2026, 3, 28, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def schedule(trigger: dict[str, Any], **fields: Any) -> Schedule:
    document = {"name": "s", "trigger": trigger, "target": {"kind": "function", "name": "f"}, **fields}
    return create(ScheduleSpec.parse(document), host_id=DEFAULT_HOST_ID, now=START, author=Author()).schedule


HOURLY = {"kind": "cron", "expression": "0 * * * *", "timezone": "Europe/Berlin"}
OUTAGE = Outage(START + 1.5 * HOUR, START + 4.25 * HOUR)


def test_without_an_outage_every_time_is_decided_when_it_is_due() -> None:
    found = list(simulate(schedule(HOURLY), START + 3 * HOUR))
    assert [each.fire_ts for each in found] == [START + n * HOUR for n in (1, 2, 3)]
    assert all(each.decided_ts == each.fire_ts and each.reason is None for each in found)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("fire_once", [(1, 1, None, 0), (4.25, 4, None, 2), (5, 5, None, 0)]),
        ("skip", [(1, 1, None, 0), (4.25, 4, SkipReason.MISFIRE, 2), (5, 5, None, 0)]),
        (
            "fire_all",
            [(1, 1, None, 0), *[(4.25, hour, None, 0) for hour in (2, 3, 4)], (5, 5, None, 0)],
        ),
    ],
)
def test_what_an_outage_leaves_is_decided_at_its_end_as_the_policy_says(
    policy: str, expected: list[tuple[float, float, SkipReason | None, int]]
) -> None:
    made = schedule(HOURLY, misfire={"policy": policy, "grace_seconds": 86400})
    found = simulate(made, START + 5 * HOUR, [OUTAGE])

    def told(each: Simulated) -> tuple[float, float, SkipReason | None, int]:
        decided, fire = ((instant - START) / HOUR for instant in (each.decided_ts, each.fire_ts))
        return decided, fire, each.reason, each.missed_count

    assert [told(each) for each in found] == expected


def test_outages_that_follow_each_other_are_one() -> None:
    found = simulate(schedule(HOURLY), START + 3.5 * HOUR, [OUTAGE, Outage(START, START + 2 * HOUR)])
    assert [(each.decided_ts, each.fire_ts) for each in found] == []


def test_a_delay_counts_from_the_end_of_a_run_and_max_runs_end_it() -> None:
    made = schedule({"kind": "delay", "seconds": 600}, max_runs=3)
    found = list(simulate(made, START + HOUR, [Outage(START, START + timedelta(minutes=15))]))
    assert [each.decided_ts - START for each in found] == [timedelta(minutes=n) for n in (15, 25, 35)]

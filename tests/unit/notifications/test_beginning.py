"""From when on a schedule is to run, by its versions."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foliot.model.incident import VersionStart
from foliot.notifications.expected_since import last_beginning

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def version(minutes: float, **fields: Any) -> VersionStart:
    made = VersionStart(at(minutes), False, None, True, ("every hour", None, None))
    return made._replace(**fields)


def paused(minutes: float, until: float | None = None) -> VersionStart:
    return version(minutes, is_paused=True, paused_until_ts=None if until is None else at(until))


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ([], None),
        ([version(-90), version(-80)], None),
        ([paused(-90), version(-80)], -80),
        # A pause that ends by itself, with and without a later version.
        ([version(-90), paused(-80, until=-20)], -20),
        ([paused(-80, until=-20), version(-10)], -20),
        # Resumed before its end, or edited in the middle of it.
        ([paused(-80, until=-20), version(-30)], -30),
        ([paused(-80, until=-20), paused(-30, until=-20)], -20),
        ([paused(-80, until=20)], None),
        ([paused(-80)], None),
        # Made active; given other times.
        ([version(-90, is_active=False), version(-40)], -40),
        ([version(-90), version(-70, is_active=False), version(-40), version(-30)], -40),
        ([version(-90, timing=("once", at(-80), 1)), version(-15)], -15),
    ],
)
def test_a_schedule_begins_anew_when_a_pause_ends_it_is_made_active_or_given_other_times(
    versions: list[VersionStart], expected: float | None
) -> None:
    assert last_beginning(versions, NOW) == (None if expected is None else at(expected))

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from foliot.kinds.delay_trigger import DelayTrigger
from foliot.kinds.once_trigger import OnceTrigger
from foliot.model.policy import Dst

NOW = datetime(2026, 5, 5, tzinfo=UTC)


def test_once_has_one_time_in_utc() -> None:
    at = datetime.fromisoformat("2026-05-05T12:00:00+02:00")
    times = OnceTrigger(at=at).compile(dst=Dst(), anchor=NOW, key="k")
    assert times.after(NOW) == at
    assert times.before(datetime.max.replace(tzinfo=UTC)) == at
    assert (times.after(at), times.before(at)) == (None, None)
    assert (times.count(at, at), times.count(NOW, NOW)) == (1, 0)
    found = times.after(NOW)
    assert found is not None
    assert found.tzinfo is UTC


def test_once_beyond_the_calendar_is_refused() -> None:
    at = datetime.fromisoformat("9999-12-31T23:59:59-12:00")
    with pytest.raises(ValidationError, match="a date in UTC"):
        OnceTrigger(at=at)


def test_a_delay_has_no_times_of_its_own() -> None:
    times = DelayTrigger(seconds=30).compile(dst=Dst(), anchor=NOW, key="k")
    assert (times.after(NOW), times.before(NOW), times.count(NOW, datetime.max.replace(tzinfo=UTC))) == (
        None,
        None,
        0,
    )

from datetime import UTC, datetime

from foliot.model.policy import Window
from foliot.timing.window import is_inside

OFFICE = Window(days_of_week=(1, 2, 3, 4, 5), hours_of_day=(9, 10, 11), timezone="Europe/Berlin")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_days_and_hours_are_those_of_the_windows_zone() -> None:
    assert is_inside(OFFICE, at("2026-07-01T07:00"))  # Wednesday 09:00 in Berlin
    assert not is_inside(OFFICE, at("2026-07-01T06:59:59"))
    assert is_inside(OFFICE, at("2026-07-01T09:59:59"))
    assert not is_inside(OFFICE, at("2026-07-01T10:00"))
    assert is_inside(OFFICE, at("2026-01-07T08:00"))
    assert not is_inside(OFFICE, at("2026-01-07T07:30"))


def test_seven_is_sunday() -> None:
    sunday = Window(days_of_week=(7,))
    assert is_inside(sunday, at("2026-07-05T00:00"))
    assert not is_inside(sunday, at("2026-07-06T00:00"))


def test_a_window_left_open_holds_everything() -> None:
    assert is_inside(Window(), at("2026-07-05T23:59:59"))

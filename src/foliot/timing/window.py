"""Checks whether a due time lies within a schedule's window."""

from datetime import datetime

from foliot.model.policy import Window
from foliot.timing.zone import zone


def is_inside(window: Window, instant: datetime) -> bool:
    """Whether the instant, in the window's zone, is on one of its days and in one of its hours."""
    local = instant.astimezone(zone(window.timezone))
    return local.isoweekday() in window.days_of_week and local.hour in window.hours_of_day

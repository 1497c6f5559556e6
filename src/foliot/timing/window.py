"""Whether a due time lies within a schedule's window."""

from datetime import datetime

from foliot.model.policy import Window
from foliot.timing.zone import zone


def is_inside(window: Window, instant: datetime) -> bool:
    """Whether the window's wall clock shows one of its days and one of its hours at the instant."""
    local = instant.astimezone(zone(window.timezone))
    return local.isoweekday() in window.days_of_week and local.hour in window.hours_of_day

"""Foliot: a distributed scheduler. Every due time is decided exactly once."""

from importlib import import_module
from typing import TYPE_CHECKING

from foliot.version import __version__

if TYPE_CHECKING:
    from foliot.kinds.cron_trigger import cron
    from foliot.kinds.delay_trigger import delay
    from foliot.kinds.event_target import event
    from foliot.kinds.http_target import http
    from foliot.kinds.interval_trigger import every
    from foliot.kinds.once_trigger import once
    from foliot.kinds.rrule_trigger import rrule
    from foliot.kinds.target_protocol import Fire
    from foliot.outbox.handlers import Event, EventTransaction
    from foliot.sdk.app import Foliot

__all__ = [
    "Event",
    "EventTransaction",
    "Fire",
    "Foliot",
    "__version__",
    "cron",
    "delay",
    "event",
    "every",
    "http",
    "once",
    "rrule",
]


_HOMES = {
    "Event": "outbox.handlers",
    "EventTransaction": "outbox.handlers",
    "Fire": "kinds.target_protocol",
    "Foliot": "sdk.app",
    "cron": "kinds.cron_trigger",
    "delay": "kinds.delay_trigger",
    "event": "kinds.event_target",
    "every": "kinds.interval_trigger",
    "http": "kinds.http_target",
    "once": "kinds.once_trigger",
    "rrule": "kinds.rrule_trigger",
}


def __getattr__(name: str) -> object:
    """Import the SDK on first use: `foliot --help` and `foliot version` don't need it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"foliot.{_HOMES[name]}"), name)

"""Foliot: a distributed scheduler. Every due time is decided exactly once."""

from typing import TYPE_CHECKING

from foliot.version import __version__

if TYPE_CHECKING:
    from foliot.kinds.target_protocol import Fire
    from foliot.outbox.handlers import Event, EventTransaction
    from foliot.sdk.app import Foliot, cron, delay, event, every, http, once, rrule

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


def __getattr__(name: str) -> object:
    """Import the SDK on first use: `foliot --help` and `foliot version` don't need it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from foliot.sdk import app

    return getattr(app, name)

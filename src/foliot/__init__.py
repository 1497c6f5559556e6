"""Foliot: a distributed scheduler. Every due time is decided exactly once."""

from typing import TYPE_CHECKING

from foliot.version import __version__

if TYPE_CHECKING:
    from foliot.sdk import Foliot, cron, delay, every, http, once, rrule
    from foliot.target.protocol import Fire

__all__ = ["Fire", "Foliot", "__version__", "cron", "delay", "every", "http", "once", "rrule"]


def __getattr__(name: str) -> object:
    """Import the SDK when it is first asked for: `foliot --help` and `foliot version` need none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from foliot import sdk
    from foliot.target.protocol import Fire

    return Fire if name == "Fire" else getattr(sdk, name)

"""Foliot: a distributed scheduler. Every due time is decided exactly once."""

from foliot.sdk import Foliot, cron, delay, every, once, rrule
from foliot.target.protocol import Fire
from foliot.version import __version__

__all__ = ["Fire", "Foliot", "__version__", "cron", "delay", "every", "once", "rrule"]

"""For tests: a virtual clock, an application on it, and the conformance suites of the plug-in families."""

from foliot.testing.app import TestApp
from foliot.timing.clock import VirtualClock

__all__ = ["TestApp", "VirtualClock"]

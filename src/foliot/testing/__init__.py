"""Test support: a virtual clock, an application that runs on it, and conformance suites for plug-ins."""

from foliot.testing.app import TestApp
from foliot.timing.clock import VirtualClock

__all__ = ["TestApp", "VirtualClock"]

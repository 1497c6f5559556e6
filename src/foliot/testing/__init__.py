"""Test support for applications: a virtual clock, and an application that runs on it."""

from foliot.testing.app import TestApp
from foliot.timing.clock import VirtualClock

__all__ = ["TestApp", "VirtualClock"]

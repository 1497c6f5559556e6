"""Intervals and timeouts of transports."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransportIntervals:
    """Intervals and timeouts of transports, in seconds."""

    patience_s: float = 5.0
    """A broker that does not answer for this long counts as away. Then workers poll the database."""
    untaken_s: float = 10.0
    """An execution unclaimed for this long is published again, and workers may claim it by polling."""
    longest_s: float = 600.0
    """Maximum interval of publishing again. It starts at `untaken_s` and doubles each time."""
    safety_s: float = 5.0
    """Interval at which workers poll the database for executions that nobody has claimed."""
    abandoned_s: float = 30.0
    """A message that a receiver has not acknowledged for this long goes to another."""

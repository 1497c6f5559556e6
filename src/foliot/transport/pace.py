"""How long is waited for what, on the way of a ticket."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransportPace:
    patience_s: float = 5.0
    """A broker that does not answer for so long is away: workers look into the database themselves."""
    untaken_s: float = 10.0
    """What has been ready for so long and was not taken is published again, and workers may claim it."""
    longest_s: float = 600.0
    """An execution is published again after `untaken_s`, then twice as long, and so on up to this."""
    safety_s: float = 5.0
    """How often a worker looks whether something has been left lying."""
    abandoned_s: float = 30.0
    """A ticket that a receiver has had for so long without a word goes to another."""

"""How often a worker looks by itself. Hints make it quick; this is what holds when none comes."""

from dataclasses import dataclass

WITHOUT_HINTS_S = 0.1
"""Ten times within what the most urgent priority promises."""
ALONE_S = 0.5
"""On SQLite: inside one process hints are calls and can't be lost, but other processes send none."""
CANCEL_SEEN_S = 0.8
"""A cancel that nobody tells of is to be seen within a second."""


@dataclass(frozen=True, slots=True)
class Pace:
    poll_s: float
    """Between looks for something to claim."""
    renew_s: float
    """Between renewals, which also tell what was cancelled."""

    @classmethod
    def of(cls, *, poll_s: float, lease_s: float, uses_hints: bool, hears_others: bool) -> "Pace":
        """`hears_others`: hints of other processes reach this one."""
        if not uses_hints:
            poll_s = min(poll_s, WITHOUT_HINTS_S)
        elif not hears_others:
            poll_s = min(poll_s, ALONE_S)
        return cls.at(poll_s, lease_s=lease_s, hears_others=hears_others)

    @classmethod
    def at(cls, poll_s: float, *, lease_s: float, hears_others: bool) -> "Pace":
        """The intervals that follow from a poll interval chosen in the settings."""
        renew_s = lease_s / 3
        return cls(poll_s, renew_s if hears_others else min(renew_s, max(CANCEL_SEEN_S, poll_s)))

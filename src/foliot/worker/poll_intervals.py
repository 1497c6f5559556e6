"""Poll intervals of a worker. Hints make it react sooner; these intervals hold when no hint arrives."""

from dataclasses import dataclass

WITHOUT_HINTS_S = 0.1
"""Poll interval when hints are off: a tenth of the delay that the most urgent priority promises."""
ALONE_S = 0.5
"""Poll interval on SQLite: hints within a process are calls and can't be lost, but other processes send
none."""
CANCEL_SEEN_S = 0.8
"""Renewal interval without hints of other processes, if polls are not rarer: a cancel is seen within a
second."""


@dataclass(frozen=True, slots=True)
class PollIntervals:
    """Intervals of a worker's polls and renewals, in seconds."""

    poll_s: float
    """Seconds between polls for executions to claim."""
    renew_s: float
    """Seconds between renewals. A renewal also returns which executions were cancelled."""

    @classmethod
    def of(cls, *, poll_s: float, lease_s: float, uses_hints: bool, hears_others: bool) -> "PollIntervals":
        """Return the intervals. `hears_others`: hints of other processes reach this one."""
        if not uses_hints:
            poll_s = min(poll_s, WITHOUT_HINTS_S)
        elif not hears_others:
            poll_s = min(poll_s, ALONE_S)
        return cls.at(poll_s, lease_s=lease_s, hears_others=hears_others)

    @classmethod
    def at(cls, poll_s: float, *, lease_s: float, hears_others: bool) -> "PollIntervals":
        """Return the intervals for a poll interval chosen in the settings."""
        renew_s = lease_s / 3
        return cls(poll_s, renew_s if hears_others else min(renew_s, max(CANCEL_SEEN_S, poll_s)))

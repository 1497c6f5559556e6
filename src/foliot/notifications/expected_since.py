"""Since when a schedule is expected to run. Silence before that instant does not count.

A schedule begins anew when a pause ends (by hand or by its end time), when it is activated, and when its
timing changes. The timing can also change after the schedule has run for the last time.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from foliot.model.incident import VersionStart


def last_beginning(versions: Sequence[VersionStart], now: datetime) -> datetime | None:
    """Return when a schedule last began anew, from its versions, oldest first. None: not in these."""
    found = [after.created_ts for before, after in pairwise(versions) if _begins(before, after)]
    for version, following in pairwise([*versions, None]):
        if version is not None and (ended := _pause_end(version, following)) is not None and ended <= now:
            found.append(ended)
    return max(found, default=None)


def _begins(before: VersionStart, after: VersionStart) -> bool:
    return not before.is_active or before.timing != after.timing


def _pause_end(version: VersionStart, following: VersionStart | None) -> datetime | None:
    """Return when the pause of a version ended. Firing ends an expired pause without writing a version."""
    if not version.is_paused:
        return None
    ends = [version.paused_until_ts, None if following is None else following.created_ts]
    return min((each for each in ends if each is not None), default=None)

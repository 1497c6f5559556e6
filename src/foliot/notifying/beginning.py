"""From when on a schedule is to run: no silence is counted from before.

A schedule begins anew when a pause of it ends, by hand or by itself; when it is made active; and when the
times at which it runs are changed, as those of one that has run for the last time may be.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise

from foliot.model.incident import VersionStart


def last_beginning(versions: Sequence[VersionStart], now: datetime) -> datetime | None:
    """When a schedule last began anew, by its versions, oldest first; None: not in these."""
    found = [after.created_ts for before, after in pairwise(versions) if _begins(before, after)]
    for version, following in pairwise([*versions, None]):
        if version is not None and (ended := _pause_end(version, following)) is not None and ended <= now:
            found.append(ended)
    return max(found, default=None)


def _begins(before: VersionStart, after: VersionStart) -> bool:
    return not before.is_active or before.timing != after.timing


def _pause_end(version: VersionStart, following: VersionStart | None) -> datetime | None:
    """Firing ends a pause whose time is up, and writes no version."""
    if not version.is_paused:
        return None
    ends = [version.paused_until_ts, None if following is None else following.created_ts]
    return min((each for each in ends if each is not None), default=None)

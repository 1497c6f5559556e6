"""The periods in which each version of a schedule applies, and the due times in them.

A version applies from just after its creation up to and including the creation of the next. So a time that is
due exactly when a change is made belongs to the version before the change. Nothing is due while a schedule is
paused, inactive or deleted.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from foliot.model.ids import hash_key
from foliot.model.kind import TRIGGERS, BaseTrigger
from foliot.verify.finding import VerifiedSpan
from foliot.verify.history import ERROR, Row, StoredHistory, VersionPeriod
from foliot.verify.walker import Walker, instant_in

_TICK = timedelta(microseconds=1)
_GRACE_S = 3600.0


class VersionSpan(NamedTuple):
    """A version and the period in which its trigger applies, both ends included."""

    version: VersionPeriod
    first: datetime
    last: datetime


def due_times(history: StoredHistory, walker: Walker, span: VerifiedSpan) -> Sequence[datetime]:
    """Return all due times within the span, in order. Raises UnsupportedExpressionError."""
    parts = []
    for version, first, last in stretches_of(history, span):
        start = version.document.get("start_ts")
        anchor = instant_in(start) if start else version.effective_ts
        key = hash_key(history.standing.schedule_id)
        found = walker.times(version.document, anchor, key, first, last)
        if found:
            parts.append(found)
    if len(parts) <= 1:
        return parts[0] if parts else ()
    # A single instant may be due under two versions.
    return sorted({instant for part in parts for instant in part})


def stretches_of(history: StoredHistory, span: VerifiedSpan) -> Iterator[VersionSpan]:
    ends = [each.created_ts for each in history.versions[1:]]
    for version, end in zip(history.versions, [*ends, span.last], strict=True):
        document = version.document
        if not document.get("active", True) or version.change == "deleted":
            continue
        if version.paused and version.paused_until_ts is None:
            continue
        if _has_run_enough(history, version):
            continue
        last = min(end, span.last)
        if document.get("end_ts"):
            last = min(last, instant_in(document["end_ts"]))
        first = max(_first_of(version), span.first)
        if first <= last:
            yield VersionSpan(version, first, last)


def _first_of(version: VersionPeriod) -> datetime:
    document, created_ts = version.document, version.created_ts
    start_ts = instant_in(document["start_ts"]) if document.get("start_ts") else None
    is_new = version.effective_ts == created_ts and version.change in ("created", "edited")
    kind = TRIGGERS.get(document["trigger"]["kind"])
    if kind is not None and kind.fires_once and is_new and not version.paused:
        # A trigger with a single time still fires if its instant had just passed when it was saved.
        grace_s = (document.get("misfire") or {}).get("grace_seconds", _GRACE_S)
        return created_ts - timedelta(seconds=grace_s)
    first = created_ts + _TICK
    if start_ts is not None:
        is_now = version.change == "created" and start_ts == created_ts
        first = start_ts if is_now else max(first, start_ts)
    if version.paused and version.paused_until_ts is not None:
        first = max(first, version.paused_until_ts)
    return first


def _has_run_enough(history: StoredHistory, version: VersionPeriod) -> bool:
    max_runs = version.document.get("max_runs")
    if max_runs is None:
        return False
    fired = sum(1 for row in history.rows if row.has_fired and row.version < version.number)
    return history.fired_before + fired >= int(max_runs)


def rests_after(history: StoredHistory, row: Row, fired: int) -> bool:
    """Whether the schedule stopped with this row, until its definition was changed.

    It stops if it could not be planned and was parked, or if its `fired` runs have reached `max_runs`.
    """
    if row.reason == ERROR:
        return True
    version = history.version.get(row.version)
    max_runs = None if version is None else version.document.get("max_runs")
    return max_runs is not None and row.has_fired and fired >= int(max_runs)


def revived_ts(history: StoredHistory, row: Row) -> datetime | None:
    """Return when a schedule that stopped with this row got another definition. None: never."""
    for before, after in pairwise(history.versions):
        # An edit without a new definition only changes who owns the schedule.
        is_another = after.change == "edited" and before.document != after.document
        if row.reason == ERROR:
            # A parked schedule is planned again when it is saved or resumed.
            is_another = after.change in ("edited", "resumed")
        if is_another and after.number > row.version:
            return after.created_ts
    return None


def kinds_of(versions: Iterable[VersionPeriod]) -> set[type[BaseTrigger] | None]:
    """Return the kinds of trigger that the versions have. None: one that is not installed here."""
    return {TRIGGERS.get(each.document["trigger"]["kind"]) for each in versions}

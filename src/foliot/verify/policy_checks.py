"""Check each row against the misfire policy, window and calendars of its version."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from foliot.verify.finding import CheckCounts, Finding, FindingKind
from foliot.verify.history import Row, StoredHistory, VersionPeriod
from foliot.verify.walker import Document

SKIP_AFTER_S = 10.0
"""How late a fire time may still fire under the misfire policy `skip`, in seconds."""
SLACK_S = 10.0
"""Tolerance in seconds between the decision that a time is not too late and writing its row."""
_MISFIRE, _WINDOW, _CALENDAR = "misfire", "window", "calendar"


@dataclass(frozen=True, slots=True)
class CalendarDays:
    """The days that a calendar excludes, and when it was last changed."""

    document: Document
    updated_ts: datetime

    @property
    def is_readable(self) -> bool:
        return not self.document.get("countries")

    def excludes(self, instant: datetime, zone: str) -> bool:
        day = instant.astimezone(ZoneInfo(self.document.get("timezone") or zone)).date()
        if day.isoweekday() in (self.document.get("weekdays") or ()):
            return True
        return any(_is_within(day, each) for each in self.document.get("days") or ())


def _is_within(day: date, days: Any) -> bool:
    if isinstance(days, str):
        return day == date.fromisoformat(days)
    return date.fromisoformat(days["from"]) <= day <= date.fromisoformat(days["to"])


Calendars = Mapping[tuple[UUID, str], CalendarDays]


def judge_rows(history: StoredHistory, calendars: Calendars, tally: CheckCounts) -> Iterator[Finding]:
    """Yield violations of the policies, row by row."""
    for row in history.rows:
        late_s = (row.created_ts - row.fire_ts).total_seconds()
        has_fired = row.has_fired
        if has_fired and late_s > tally.worst_late_s:
            tally.worst_late_s = late_s
        version = history.version.get(row.version)
        if version is None:
            wrong = f"a row of version {row.version}, which the schedule never had"
            yield _finding(history, row, FindingKind.PHANTOM, wrong, "one of its versions")
            continue
        document = version.document
        if late_s >= SKIP_AFTER_S or row.reason == _MISFIRE:
            yield from _judge_lateness(history, row, document, late_s)
        if document.get("window"):
            yield from _judge_window(history, row, document["window"])
        if document.get("calendars"):
            yield from _judge_calendars(history, row, version, calendars, tally)


def _judge_lateness(history: StoredHistory, row: Row, document: Document, late_s: float) -> Iterator[Finding]:
    misfire = document.get("misfire") or {}
    policy, max_s = misfire.get("policy", "fire_once"), float(misfire.get("grace_seconds", 3600))
    if policy == "skip":
        max_s = min(max_s, SKIP_AFTER_S)
    jitter_s = float(document.get("jitter_seconds") or 0)
    if row.has_fired and late_s > max_s + jitter_s + SLACK_S:
        wrong = f"fired {late_s:.1f} s after its time"
        yield _finding(history, row, FindingKind.LATE, wrong, f"skipped: it may be {max_s:g} s late")
    # Rows without an instance were written by a change of the schedule. `fire_all` skips times over a limit.
    is_by_lateness = row.reason == _MISFIRE and row.scheduler_instance_id is not None and policy != "fire_all"
    if is_by_lateness and late_s < max_s:
        wrong = f"skipped as late, {late_s:.1f} s after its time"
        yield _finding(history, row, FindingKind.LATE, wrong, f"it may be {max_s:g} s late")


def _judge_window(history: StoredHistory, row: Row, window: Document) -> Iterator[Finding]:
    local = row.fire_ts.astimezone(ZoneInfo(window.get("timezone") or "UTC"))
    days, hours = window.get("days_of_week"), window.get("hours_of_day")
    is_inside = (not days or local.isoweekday() in days) and (hours is None or local.hour in hours)
    if row.has_fired and not is_inside:
        yield _finding(history, row, FindingKind.FORBIDDEN, "fired outside its window", "skipped: window")
    if row.reason == _WINDOW and is_inside:
        yield _finding(history, row, FindingKind.FORBIDDEN, "skipped: window, but it lies inside", "to fire")


def _judge_calendars(
    history: StoredHistory, row: Row, version: VersionPeriod, calendars: Calendars, tally: CheckCounts
) -> Iterator[Finding]:
    names = version.document["calendars"]
    known = [calendars.get((history.standing.host_id, name)) for name in names]
    # Only a calendar's current days are stored. Rows older than its last change can't be checked.
    usable = [each for each in known if each and each.is_readable and each.updated_ts <= row.created_ts]
    zone = version.document["trigger"].get("timezone") or "UTC"
    is_excluded = any(each.excludes(row.fire_ts, zone) for each in usable)
    if row.has_fired and is_excluded:
        yield _finding(history, row, FindingKind.FORBIDDEN, "fired on an excluded day", "skipped: calendar")
    if len(usable) < len(names):
        tally.not_checked["a calendar that changed since, or has holidays of countries"] += 1
    elif row.reason == _CALENDAR and not is_excluded:
        yield _finding(
            history, row, FindingKind.FORBIDDEN, "skipped: calendar, on a day that is not in it", "to fire"
        )


def _finding(history: StoredHistory, row: Row, kind: FindingKind, wrong: str, right: str) -> Finding:
    return Finding(kind, wrong, right, row.fire_ts, history.standing.name, history.standing.schedule_id)

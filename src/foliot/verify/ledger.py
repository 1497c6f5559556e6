"""Compare execution rows with due times: each time must be decided once, and nothing else."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from foliot.model.kind import TRIGGERS
from foliot.verify.finding import CheckCounts, Finding, FindingKind, VerifiedSpan
from foliot.verify.history import Row, StoredHistory
from foliot.verify.version_periods import rests_after, revived_ts


def compare(
    history: StoredHistory, due: Sequence[datetime], span: VerifiedSpan, tally: CheckCounts
) -> list[Finding]:
    """Return the violations in the rows, given all due times of the span."""
    tally.due_times += len(due)
    before = history.before
    if not history.has_limit and (before is None or not rests_after(history, before, 0)):
        # Fast path for nearly all schedules: one row per due time, and no others.
        next_ts = history.standing.next_fire_ts
        end = len(due) if next_ts is None else bisect_left(due, next_ts)
        rows = history.rows
        is_plain = len(rows) == end and not any(row.missed_count for row in rows)
        if is_plain and [row.fire_ts for row in rows] == list(due[:end]):
            tally.waiting += len(due) - end
            return []
    return list(_Comparison(history, due, span, tally).findings())


class _Comparison:
    """One pass over rows and due times, both sorted."""

    def __init__(
        self, history: StoredHistory, due: Sequence[datetime], span: VerifiedSpan, tally: CheckCounts
    ) -> None:
        self._history = history
        self._due = due
        self._span = span
        self._tally = tally
        self._position = 0
        """Index of the first due time that is not accounted for."""
        self._fired = history.fired_before
        self._decided_to: datetime | None = None

    def findings(self) -> Iterator[Finding]:
        before = self._history.before
        if before is not None and rests_after(self._history, before, self._fired):
            self._rest(before)
        for row in self._history.rows:
            yield from self._take(row)
        yield from self._take_rest()

    def _take(self, row: Row) -> Iterator[Finding]:
        first, decided_to = row.first_ts, self._decided_to
        is_double = decided_to is not None and first <= decided_to
        if is_double:
            wrong = f"the row of {_iso(row.fire_ts)} decides what another has decided"
            yield self._finding(FindingKind.DOUBLE, first, wrong, "one row for each time")
        else:
            yield from self._gaps(bisect_left(self._due, first, self._position))
        low = self._position
        high = bisect_right(self._due, row.fire_ts, low)
        if not is_double:
            yield from self._judge(row, self._due[low:high])
        self._position = high
        self._decided_to = row.fire_ts
        self._fired += row.has_fired
        if rests_after(self._history, row, self._fired):
            self._rest(row)

    def _judge(self, row: Row, decided: Sequence[datetime]) -> Iterator[Finding]:
        if row.fire_ts > self._span.last:
            return  # it decides times within the span and behind it
        if not decided or decided[-1] != row.fire_ts:
            near = self._nearest(row.fire_ts)
            right = "no row: nothing was due" if near is None else f"the nearest due time is {_iso(near)}"
            yield self._finding(
                FindingKind.PHANTOM,
                row.fire_ts,
                f"a row of version {row.version} for a time that is none",
                right,
            )
            return
        if row.first_ts < self._span.first:
            return  # the number of its times before the span is not known
        if len(decided) != row.missed_count + 1 or decided[0] != row.first_ts:
            wrong = f"says to decide {row.missed_count + 1} times from {_iso(row.first_ts)} on"
            right = f"{len(decided)} from {_iso(decided[0])} on"
            yield self._finding(FindingKind.MISCOUNT, row.fire_ts, wrong, right)

    def _gaps(self, end: int) -> Iterator[Finding]:
        """Report all due times before index `end` that have no row."""
        missing = self._due[self._position : end]
        self._position = max(end, self._position)
        if missing:
            until = f" up to {_iso(missing[-1])}" if len(missing) > 1 else ""
            wrong = f"no row decides it{until}"
            yield self._finding(FindingKind.GAP, missing[0], wrong, "one row for each time", len(missing))

    def _take_rest(self) -> Iterator[Finding]:
        next_ts = self._history.standing.next_fire_ts
        end = len(self._due)
        if next_ts is not None:
            end = bisect_left(self._due, next_ts, self._position)
        yield from self._gaps(end)
        self._tally.waiting += len(self._due) - self._position

    def _rest(self, row: Row) -> None:
        """Skip the due times after a row with which the schedule stopped, until it was revived."""
        revived = revived_ts(self._history, row)
        resting = len(self._due) if revived is None else bisect_right(self._due, revived, self._position)
        self._tally.due_times -= max(0, resting - self._position)
        self._position = max(self._position, resting)

    def _nearest(self, instant: datetime) -> datetime | None:
        index = bisect_left(self._due, instant)
        near = self._due[max(0, index - 1) : index + 1]
        return min(near, key=lambda each: abs(each - instant), default=None)

    def _finding(self, kind: FindingKind, at: datetime, wrong: str, right: str, count: int = 1) -> Finding:
        standing = self._history.standing
        return Finding(kind, wrong, right, at, standing.name, standing.schedule_id, count)


def compare_delays(history: StoredHistory) -> Iterator[Finding]:
    """Check the distance between runs of a `delay` trigger. It has no fixed times to compare."""
    for earlier, later in pairwise(history.rows):
        version = history.version.get(later.version)
        if version is None or earlier.version != later.version:
            continue
        delay = timedelta(seconds=_delay_s(version.document["trigger"]))
        if later.fire_ts - earlier.fire_ts < delay:
            standing = history.standing
            yield Finding(
                FindingKind.EARLY,
                f"{(later.fire_ts - earlier.fire_ts).total_seconds():g} s after the run before it",
                f"at least {delay.total_seconds():g} s",
                later.fire_ts,
                standing.name,
                standing.schedule_id,
            )


def _delay_s(trigger: Mapping[str, Any]) -> float:
    return TRIGGERS[trigger["kind"]].model_validate(trigger, extra="ignore").delay_s or 0


def _iso(instant: datetime) -> str:
    return instant.isoformat()

"""Reads a backlog that is larger than a page, in bounded portions.

A range holds the due schedules of one host and one priority. A sweep visits every range in turn: first
`high` of all hosts, then `medium`, then `low`, then again those ranges that have more. So a small host does
not wait for a large one, and nothing starves. Each portion reads a bounded number of rows, shared equally
between the ranges of the portion. A range continues where its last portion ended. Schedules that are queued,
in flight or locked by another transaction are not read again.

A sweep reads what was overdue when it began, so it ends. What became overdue meanwhile, or was inserted
behind a range's position, is read by the next sweep.
"""

from collections import deque
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from foliot.db.rows.due_rows import LoadRange
from foliot.model.instant import EPOCH
from foliot.model.policy import Priority
from foliot.planning.fire import Due
from foliot.scheduler.firing_sql import FiringStatements
from foliot.scheduler.leader_term import LeaderState

MAX_ROWS = 1_000
"""Rows per portion: converting and queueing them takes 20 to 30 ms."""
MAX_RANGES = 500
"""Ranges per portion: each costs the database one lookup, also when there is nothing in it."""
MAX_EXCLUDED = 5_000
"""Ids per statement. More are undecided only while far more is queued than one portion."""


class BacklogReader:
    def __init__(self, store: FiringStatements) -> None:
        self._store = store
        self._until: datetime | None = None
        self._unvisited: deque[Priority] = deque()
        self._after_host: UUID | None = None
        """The host of the latest range of the first unvisited priority."""
        self._unfinished: deque[LoadRange] = deque()

    @property
    def is_reading(self) -> bool:
        """Whether a sweep has begun and not ended."""
        return self._until is not None

    def begin(self, until: datetime) -> None:
        """Begin a sweep over what is due by then."""
        self._until = until
        self._unvisited = deque(Priority)
        self._after_host = None
        self._unfinished.clear()

    def stop(self) -> None:
        self._until = None
        self._unvisited.clear()
        self._unfinished.clear()

    async def read(self, term: LeaderState) -> int:
        """Queue the next portion; return how many schedules were queued."""
        if self._until is None:
            return 0
        ranges: list[LoadRange] = []
        try:
            await self._take_ranges(ranges)
            if not ranges:
                self.stop()
                return 0
            per_range = MAX_ROWS // len(ranges)
            found = await self._store.load_ranges(
                term.lease.shard,
                ranges,
                until=self._until,
                per_range=per_range,
                excluding=term.undecided(MAX_EXCLUDED),
            )
        except BaseException:
            self._unfinished.extendleft(reversed(ranges))
            raise
        return self._queue(term, ranges, found, per_range)

    def _queue(
        self, term: LeaderState, ranges: Sequence[LoadRange], found: Sequence[Due], per_range: int
    ) -> int:
        by_range: dict[tuple[UUID, Priority], list[Due]] = {}
        for due in found:
            by_range.setdefault((due.host_id, due.definition.priority), []).append(due)
        total = 0
        for load_range in ranges:
            dues = by_range.get((load_range.host_id, load_range.priority), [])
            count = term.enqueue(dues)
            total += count
            if len(dues) < per_range:
                continue
            reached_ts = max(due.run_ts for due in dues)
            # A range that brings nothing new and does not move on is left to the next sweep.
            if count or reached_ts > load_range.from_ts:
                self._unfinished.append(load_range._replace(from_ts=reached_ts))
        return total

    async def _take_ranges(self, ranges: list[LoadRange]) -> None:
        """Take ranges that were not visited yet; if there are none, those that have more."""
        while self._unvisited and len(ranges) < MAX_RANGES:
            wanted = MAX_RANGES - len(ranges)
            hosts = await self._store.load_hosts(after=self._after_host, limit=wanted)
            ranges += [LoadRange(host_id, self._unvisited[0], EPOCH) for host_id in hosts]
            if len(hosts) < wanted:
                self._unvisited.popleft()
                self._after_host = None
            else:
                self._after_host = hosts[-1]
        if not ranges:
            ranges += [self._unfinished.popleft() for _ in range(min(MAX_RANGES, len(self._unfinished)))]

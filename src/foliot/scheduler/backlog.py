"""Reads a backlog that is larger than a page, in bounded portions.

A lane is one priority of one host. A sweep visits every lane in turn: first `high` of all hosts, then
`medium`, then `low`, then again those lanes that have more. So a small host does not wait for a large one,
and nothing starves. Each portion reads a bounded number of rows, shared equally between the lanes of the
portion. A lane continues where its last portion ended. Schedules that are queued, in flight or locked by
another transaction are not read again.

A sweep reads what was overdue when it began, so it ends. What became overdue meanwhile, or was inserted
behind a lane's position, is read by the next sweep.
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
MAX_LANES = 500
"""Lanes per portion: each costs the database one lookup, also when there is nothing in it."""
MAX_EXCLUDED = 5_000
"""Ids per statement. More are undecided only while far more is queued than one portion."""


class BacklogReader:
    def __init__(self, store: FiringStatements) -> None:
        self._store = store
        self._until: datetime | None = None
        self._unvisited: deque[Priority] = deque()
        self._after_host: UUID | None = None
        """The host of the latest lane of the first unvisited priority."""
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
        lanes: list[LoadRange] = []
        try:
            await self._take_lanes(lanes)
            if not lanes:
                self.stop()
                return 0
            per_lane = MAX_ROWS // len(lanes)
            found = await self._store.load_lanes(
                term.lease.shard,
                lanes,
                until=self._until,
                per_lane=per_lane,
                excluding=term.undecided(MAX_EXCLUDED),
            )
        except BaseException:
            self._unfinished.extendleft(reversed(lanes))
            raise
        return self._queue(term, lanes, found, per_lane)

    def _queue(
        self, term: LeaderState, lanes: Sequence[LoadRange], found: Sequence[Due], per_lane: int
    ) -> int:
        by_lane: dict[tuple[UUID, Priority], list[Due]] = {}
        for due in found:
            by_lane.setdefault((due.host_id, due.definition.priority), []).append(due)
        total = 0
        for lane in lanes:
            dues = by_lane.get((lane.host_id, lane.priority), [])
            count = term.enqueue(dues)
            total += count
            if len(dues) < per_lane:
                continue
            reached_ts = max(due.run_ts for due in dues)
            # A lane that brings nothing new and does not move on is left to the next sweep.
            if count or reached_ts > lane.from_ts:
                self._unfinished.append(lane._replace(from_ts=reached_ts))
        return total

    async def _take_lanes(self, lanes: list[LoadRange]) -> None:
        """Take lanes that were not visited yet; if there are none, those that have more."""
        while self._unvisited and len(lanes) < MAX_LANES:
            wanted = MAX_LANES - len(lanes)
            hosts = await self._store.load_hosts(after=self._after_host, limit=wanted)
            lanes += [LoadRange(host_id, self._unvisited[0], EPOCH) for host_id in hosts]
            if len(hosts) < wanted:
                self._unvisited.popleft()
                self._after_host = None
            else:
                self._after_host = hosts[-1]
        if not lanes:
            lanes += [self._unfinished.popleft() for _ in range(min(MAX_LANES, len(self._unfinished)))]

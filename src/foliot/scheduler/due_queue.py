"""Due schedules waiting to be planned: by priority, fair between hosts.

Most of the time everything due fits into one batch, and the order does not matter. With a backlog the
most urgent priority goes first, hosts take turns within it, and a share of each batch is reserved for the
lower priorities, so that nothing starves.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from uuid import UUID

from foliot.model.policy import Priority
from foliot.planning.fire import Due

LOWER_SHARE = 10
"""One in this many places of a batch is reserved for each priority below the most urgent waiting one."""


class DueQueue:
    def __init__(self) -> None:
        self._lanes: dict[Priority, OrderedDict[UUID, deque[Due]]] = {
            priority: OrderedDict() for priority in Priority
        }
        self._waiting: dict[UUID, Due] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, schedule_id: UUID) -> bool:
        return schedule_id in self._waiting

    def __iter__(self) -> Iterator[UUID]:
        """Iterate over the ids of the waiting schedules."""
        return iter(self._waiting)

    def put(self, due: Due) -> None:
        """Add a schedule. If it waits already, it keeps its place and its data is replaced."""
        before = len(self._waiting)
        self._waiting[due.schedule_id] = due
        if len(self._waiting) > before:
            lane = self._lanes[due.definition.priority]
            line = lane.get(due.host_id)
            if line is None:
                line = lane[due.host_id] = deque()
            line.append(due)

    def discard(self, schedule_id: UUID) -> None:
        """Remove a schedule. Its place in the queue is skipped later."""
        self._waiting.pop(schedule_id, None)

    def oldest(self) -> Due | None:
        """Return approximately the longest waiting schedule: the oldest among the first of each host."""
        first = [line[0] for lane in self._lanes.values() for line in lane.values() if line]
        return min(first, key=lambda due: due.run_ts, default=None)

    def take(self, most: int) -> list[Due]:
        taken: list[Due] = []
        lanes = [lane for lane in self._lanes.values() if lane]
        for index, lane in enumerate(lanes):
            below = len(lanes) - index - 1
            kept = below * (most // LOWER_SHARE)
            self._take_turns(lane, most - kept, taken)
        # Unused reserved places go to any waiting schedule, most urgent first.
        for lane in lanes:
            self._take_turns(lane, most, taken)
        return taken

    def _take_turns(self, lane: OrderedDict[UUID, deque[Due]], most: int, taken: list[Due]) -> None:
        while lane and len(taken) < most:
            host_id, line = lane.popitem(last=False)
            while line:
                due = self._waiting.pop(line.popleft().schedule_id, None)
                if due is not None:
                    taken.append(due)
                    break
            if line:
                lane[host_id] = line

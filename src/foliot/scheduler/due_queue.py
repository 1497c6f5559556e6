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
        self._by_priority: dict[Priority, OrderedDict[UUID, deque[Due]]] = {
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
            by_host = self._by_priority[due.definition.priority]
            line = by_host.get(due.host_id)
            if line is None:
                line = by_host[due.host_id] = deque()
            line.append(due)

    def discard(self, schedule_id: UUID) -> None:
        """Remove a schedule. Its place in the queue is skipped later."""
        self._waiting.pop(schedule_id, None)

    def oldest(self) -> Due | None:
        """Return approximately the longest waiting schedule: the oldest among the first of each host."""
        first = [line[0] for by_host in self._by_priority.values() for line in by_host.values() if line]
        return min(first, key=lambda due: due.run_ts, default=None)

    def take(self, limit: int) -> list[Due]:
        taken: list[Due] = []
        waiting = [by_host for by_host in self._by_priority.values() if by_host]
        for index, by_host in enumerate(waiting):
            below = len(waiting) - index - 1
            kept = below * (limit // LOWER_SHARE)
            self._take_turns(by_host, limit - kept, taken)
        # Unused reserved places go to any waiting schedule, most urgent first.
        for by_host in waiting:
            self._take_turns(by_host, limit, taken)
        return taken

    def _take_turns(self, by_host: OrderedDict[UUID, deque[Due]], limit: int, taken: list[Due]) -> None:
        while by_host and len(taken) < limit:
            host_id, line = by_host.popitem(last=False)
            while line:
                due = self._waiting.pop(line.popleft().schedule_id, None)
                if due is not None:
                    taken.append(due)
                    break
            if line:
                by_host[host_id] = line

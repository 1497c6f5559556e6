"""Cache of the schedule versions that executions were fired with."""

from collections import OrderedDict
from collections.abc import Sequence
from uuid import UUID

from foliot.model.attempt import Claim
from foliot.model.schedule import ScheduleSpec
from foliot.worker.work_sql import Work

MAX_VERSIONS = 10_000


class Versions:
    """An LRU cache of schedule versions. A version never changes, so its entry never becomes stale."""

    def __init__(self, store: Work) -> None:
        self._store = store
        self._known: OrderedDict[tuple[UUID, int], ScheduleSpec] = OrderedDict()

    async def of(self, claims: Sequence[Claim]) -> dict[tuple[UUID, int], ScheduleSpec]:
        wanted = {(claim.schedule_id, claim.aggregate_version) for claim in claims}
        missing = sorted(key for key in wanted if key not in self._known)
        if missing:
            self._known.update(await self._store.specs(missing))
        found = {key: self._known[key] for key in wanted if key in self._known}
        for key in found:
            self._known.move_to_end(key)
        while len(self._known) > MAX_VERSIONS:
            self._known.popitem(last=False)
        return found

"""List executions page by page. `execution_search.py` finds them."""

from dataclasses import replace
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.errors import InvalidError
from foliot.model.execution import Execution
from foliot.model.instant import EPOCH
from foliot.queries.execution_search import (
    MAX_GATHERED,
    MAX_WALKED,
    ExecutionFilter,
    ExecutionPage,
    ExecutionPosition,
    ExecutionSearch,
    position_of,
)

MAX_SCHEDULES = 50
FIRST_WALKED = 500
MORE_WALKED = 8
"""Factor by which the number of scanned rows grows when a scan has found too few matches."""


class ExecutionList:
    def __init__(
        self,
        database: Database,
        *,
        first_walked: int = FIRST_WALKED,
        max_walked: int = MAX_WALKED,
        max_gathered: int = MAX_GATHERED,
    ) -> None:
        self._database = database
        self._first_walked = first_walked
        self._max_walked = max_walked
        self._max_gathered = max_gathered

    async def page(
        self,
        wanted: ExecutionFilter,
        *,
        after: ExecutionPosition | None = None,
        limit: int = 50,
        with_bodies: bool = True,
        are_own: bool = False,
    ) -> ExecutionPage:
        """Return a page, latest first: by fire time if schedules are given, else by creation time.

        Raises InvalidError for too many schedules. Without `with_bodies`, args, result and traceback are
        None. `are_own`: the caller knows that the schedules belong to the host.
        """
        if len(set(wanted.schedule_ids)) > MAX_SCHEDULES:
            raise InvalidError.at("/schedule_id", "too_many", f"must be given at most {MAX_SCHEDULES} times")
        async with self._database.read(Pool.API) as connection:
            if wanted.schedule_ids and not are_own:
                wanted = replace(wanted, schedule_ids=await _own(connection, wanted))
                if not wanted.schedule_ids:
                    return ExecutionPage((), None)
            search = ExecutionSearch(wanted, self._database.dialect, limit, self._max_gathered, with_bodies)
            found: list[Execution] = []
            walking, left = self._first_walked, min(self._max_walked, search.max_walked)
            while True:
                page, search = await search.find(connection, after, walking)
                found += page.items
                left -= walking
                if len(found) > limit:
                    return ExecutionPage(found[:limit], position_of(found[limit - 1]))
                if page.next is None or len(found) == limit or left <= 0:
                    return ExecutionPage(found, page.next)
                after, walking = page.next, min(walking * MORE_WALKED, left)

    async def latest(
        self, wanted: ExecutionFilter, *, after: UUID | None = None, limit: int = 50
    ) -> list[Execution]:
        """Return a full list of the latest executions. `after`: the last execution of the list before."""
        position = None if after is None else await self._position_of(after)
        found: list[Execution] = []
        while len(found) < limit:
            page = await self.page(wanted, after=position, limit=limit - len(found))
            found += page.items
            if page.next is None:
                break
            position = page.next
        return found

    async def _position_of(self, execution_id: UUID) -> ExecutionPosition:
        statement = select(execution_t.c.fire_ts).where(execution_t.c.execution_id == execution_id)
        fire_ts = (await self._database.fetch(Pool.API, statement)).scalar_one_or_none()
        # A pruned execution was older than all that are left.
        return ExecutionPosition(fire_ts or EPOCH, execution_id)


async def _own(connection: AsyncConnection, wanted: ExecutionFilter) -> list[UUID]:
    """Return the wanted schedules without those of other hosts, whose rows are then not even scanned."""
    ids = sorted(set(wanted.schedule_ids))
    if wanted.host_id is None:
        return ids
    statement = select(schedule_t.c.schedule_id).where(
        schedule_t.c.schedule_id.in_(ids), schedule_t.c.host_id != wanted.host_id
    )
    foreign = frozenset((await connection.execute(statement)).scalars())
    return [each for each in ids if each not in foreign]

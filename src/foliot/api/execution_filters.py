"""Filters of execution lists, as query parameters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from fastapi import Query, Response

from foliot.api.documents import execution_document
from foliot.api.paging import PageRequest, Seal, bad_token, read_id, read_instant
from foliot.api.services import Services
from foliot.model.execution import Status, TriggeredBy
from foliot.model.moment import Moment
from foliot.model.schedule import QueueName
from foliot.queries.execution_list import ExecutionList
from foliot.queries.execution_search import ExecutionFilter, ExecutionPosition


@dataclass(frozen=True, slots=True)
class ExecutionQuery:
    """Filters as query parameters (a FastAPI dependency). A repeated parameter matches any of its values."""

    status: Annotated[list[Status] | None, Query(max_length=20)] = None
    queue: Annotated[list[QueueName] | None, Query(max_length=50)] = None
    triggered_by: Annotated[list[TriggeredBy] | None, Query(max_length=10)] = None
    fire_from: Annotated[Moment | None, Query(description="Fire times at or after this.")] = None
    fire_to: Annotated[Moment | None, Query(description="Fire times before this.")] = None

    def filter_for(self, host_id: UUID, schedule_ids: Sequence[UUID] = ()) -> ExecutionFilter:
        return ExecutionFilter(
            host_id=host_id,
            schedule_ids=schedule_ids,
            statuses=self.status or (),
            queues=self.queue or (),
            triggered_by=self.triggered_by or (),
            fire_from=self.fire_from,
            fire_to=self.fire_to,
        )


async def list_executions(
    services: Services, wanted: ExecutionFilter, page: PageRequest, *, are_own: bool = False
) -> Response:
    # The token is encrypted: a page that was cut short continues after a row that may be another host's.
    seal = Seal((await services.tokens()).derive(b"pages"))
    values = page.position(seal)
    if values is not None and len(values) != 2:
        raise bad_token()
    after = None if values is None else ExecutionPosition(read_instant(values[0]), read_id(values[1]))
    found = await ExecutionList(services.database).page(
        wanted, after=after, limit=page.page_size, are_own=are_own
    )
    position = None if found.next is None else [found.next.fire_ts, found.next.execution_id]
    return page.answer_part(found.items, execution_document, position, seal)

"""Routes for backfills: list, read and cancel."""

from datetime import datetime
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import Field

from foliot.api.access.gate import Caller, GatedRoute, Writer
from foliot.api.api_document import ApiDocument
from foliot.api.http.json_response import answer
from foliot.api.lists import ListOf
from foliot.api.paging import Paged
from foliot.api.services import API, Services
from foliot.commands.schedules_sql import Schedules
from foliot.model.backfill import Backfill, BackfillState
from foliot.scheduler.backfills_sql import Backfills


class BackfillDocument(ApiDocument):
    """A backfill: the runs of a schedule for the times that it would have had in a range."""

    backfill_id: UUID
    schedule_id: UUID
    from_ts: datetime
    to_ts: datetime
    position_ts: datetime = Field(description="Up to here its executions are made.")
    state: BackfillState
    total_count: int = Field(description="How many times the range has.")
    created_count: int = Field(description="How many executions were made.")
    existing_count: int = Field(description="How many times an earlier backfill had made already.")
    ended_count: int = Field(description="How many of its executions have ended.")
    requested_by: str | None
    created_ts: datetime
    updated_ts: datetime


_FIELDS = tuple(BackfillDocument.model_fields)


def backfill_document(backfill: Backfill) -> dict[str, Any]:
    return {name: getattr(backfill, name) for name in _FIELDS}


def backfill_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix=API, tags=["schedules"], route_class=GatedRoute)
    database, commands = services.database, services.commands.schedules

    @router.get(
        "/schedules/{schedule_id}/backfills",
        summary="List a schedule's backfills",
        response_model=ListOf[BackfillDocument],
    )
    async def list_backfills(schedule_id: UUID, caller: Caller, page: Paged) -> Response:
        """Latest first."""
        await Schedules(database).get(schedule_id, host_id=caller.host_id)
        rows = await Backfills(database).for_schedule(
            schedule_id, host_id=caller.host_id, after=page.after_id(), limit=page.limit
        )
        return page.answer(rows, backfill_document, lambda row: [row.backfill_id])

    @router.get("/backfills/{backfill_id}", summary="Read a backfill", response_model=BackfillDocument)
    async def read_backfill(backfill_id: UUID, caller: Caller) -> Response:
        return answer(backfill_document(await Backfills(database).get(backfill_id, host_id=caller.host_id)))

    @router.post(
        "/backfills/{backfill_id}/cancel", summary="Cancel a backfill", response_model=BackfillDocument
    )
    async def cancel_backfill(backfill_id: UUID, caller: Caller, author: Writer) -> Response:
        """No more executions are made, and those that wait are cancelled; what runs goes on."""
        cancelled = await commands.cancel_backfill(backfill_id, author, host_id=caller.host_id)
        return answer(backfill_document(cancelled))

    return router

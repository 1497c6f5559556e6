"""Routes for load over time: planned and past, and the last hour by minute."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from heapq import nsmallest
from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from foliot.api.access.gate import Caller, GatedRoute
from foliot.api.api_document import ApiDocument
from foliot.api.calendar_book import book_of
from foliot.api.http.json_response import answer
from foliot.api.services import API, Services
from foliot.model.execution import Status
from foliot.model.moment import Moment
from foliot.planning.fire import Due
from foliot.planning.forecast import Bins, PlannedLoad, count_per_bin
from foliot.queries.timeline import MAX_UPCOMING, PastLoad, RecentLoad, Timeline, max_schedules

_DAY = timedelta(days=1)


class BinDocument(ApiDocument):
    """A stretch of time."""

    start_ts: datetime
    planned: int = Field(description="Times to come.")
    by_status: dict[Status, int] = Field(description="What was decided, by how it stands now.")


class LoadDocument(BaseModel):
    """A schedule's share."""

    model_config = ConfigDict(title="ScheduleLoad")

    schedule_id: UUID
    name: str | None
    by_status: dict[Status, int]
    counts: list[int] = Field(description="Bin by bin.")
    counts_by_status: dict[Status, list[int]] = Field(description="The counts by status, bin by bin.")
    planned_counts: list[int] = Field(description="Times to come, bin by bin; empty: none.")


class TimelineDocument(ApiDocument):
    """Planned and past load."""

    from_ts: datetime
    to_ts: datetime
    bin_seconds: float
    bins: list[BinDocument]
    schedules: list[LoadDocument] = Field(
        description="The busiest of the past, and those with most times to come."
    )
    planned_by_schedule: dict[UUID, int] = Field(description="How many times each has to come.")
    complete_from_ts: datetime = Field(
        description="Earlier bins may lack some of the past: there was too much."
    )
    is_partial: bool = Field(description="Whether some schedules are missing in what is planned.")


class MinuteDocument(ApiDocument):
    """A minute of the last hour."""

    start_ts: datetime
    by_status: dict[Status, int]
    late_p50_seconds: float | None = Field(description="From fire time to start; null: nothing has started.")
    late_p99_seconds: float | None


class RecentDocument(BaseModel):
    """The last hour, minute by minute."""

    model_config = ConfigDict(title="RecentLoad")

    minutes: list[MinuteDocument]
    complete_from_ts: datetime


def _timeline_document(past: PastLoad, planned: PlannedLoad, *, is_partial: bool) -> dict[str, Any]:
    bins = past.bins
    return {
        "from_ts": bins.from_ts,
        "to_ts": bins.to_ts,
        "bin_seconds": bins.width.total_seconds(),
        "bins": [
            {
                "start_ts": bins.start_of(number),
                "planned": planned.counts[number],
                "by_status": {
                    status: counts[number] for status, counts in past.by_status.items() if counts[number]
                },
            }
            for number in range(bins.count)
        ],
        "schedules": [
            {
                "schedule_id": load.schedule_id,
                "name": load.name,
                "by_status": load.by_status,
                "counts": load.counts,
                "counts_by_status": load.counts_by_status,
                "planned_counts": _planned_counts(planned, load.schedule_id, bins.count),
            }
            for load in past.schedules
        ],
        "planned_by_schedule": {str(each): count for each, count in planned.fires.items() if count},
        "complete_from_ts": past.complete_from_ts,
        "is_partial": is_partial or planned.left_out > 0,
    }


def _planned_counts(planned: PlannedLoad, schedule_id: UUID, bin_count: int) -> list[int]:
    found = planned.by_schedule.get(schedule_id)
    return [found.get(number, 0) for number in range(bin_count)] if found else []


def _with_most_planned(planned: PlannedLoad, limit: int) -> list[UUID]:
    """Return the schedules with the most planned fire times. Ties are ordered by id."""
    some = nsmallest(limit, planned.fires.items(), key=lambda each: (-each[1], each[0].int))
    return [schedule_id for schedule_id, count in some if count]


def _recent_document(recent: RecentLoad) -> dict[str, Any]:
    return {
        "minutes": [
            {
                "start_ts": minute.start_ts,
                "by_status": minute.by_status,
                "late_p50_seconds": minute.late_p50_s,
                "late_p99_seconds": minute.late_p99_s,
            }
            for minute in recent.minutes
        ],
        "complete_from_ts": recent.complete_from_ts,
    }


def _calendars_of(dues: Sequence[Due]) -> set[str]:
    policies = {due.definition.policies for due in dues}
    return {name for text in policies for name in orjson.loads(text).get("calendars", ())}


def timeline_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix=API, tags=["cluster"], route_class=GatedRoute)
    timeline = Timeline(services.database)

    @router.get("/timeline", summary="Load over time, planned and past", response_model=TimelineDocument)
    async def read_timeline(
        caller: Caller,
        from_ts: Annotated[Moment | None, Query(alias="from")] = None,
        to_ts: Annotated[Moment | None, Query(alias="to")] = None,
        bins: Annotated[int, Query(ge=1, le=2000, description="At most so many.")] = 200,
    ) -> Response:
        """In bins of a round length. At most 31 days; left out, it is 12 hours back and 12 to come."""
        now = services.now()
        start = from_ts or (to_ts or now + _DAY / 2) - _DAY
        cut = Bins.over(start, to_ts or start + _DAY, limit=bins)
        dues = await timeline.upcoming(caller.host_id, cut.to_ts) if cut.to_ts > now else []
        book = await book_of(services, caller.host_id, _calendars_of(dues))
        # In a thread, because counting thousands of schedules would block other requests.
        planned = await asyncio.to_thread(count_per_bin, dues, cut, calendars=book)
        past = await timeline.past(
            caller.host_id, cut, including=_with_most_planned(planned, max_schedules(cut))
        )
        return answer(_timeline_document(past, planned, is_partial=len(dues) >= MAX_UPCOMING))

    @router.get("/load", summary="The last hour, minute by minute", response_model=RecentDocument)
    async def read_load(caller: Caller) -> Response:
        """How many executions by status, and how late they started."""
        return answer(_recent_document(await timeline.last_hour(caller.host_id)))

    return router

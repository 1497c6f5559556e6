"""Routes for the history of a schedule: fire times, executions, statistics and versions."""

import asyncio
from dataclasses import asdict
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from foliot.api.access.gate import Caller, GatedRoute, Writer
from foliot.api.api_document import ApiDocument
from foliot.api.calendar_book import book_of
from foliot.api.dependencies import made_of_query
from foliot.api.documents import ExecutionDocument, RecentExecutionDocument, ScheduleDocument
from foliot.api.execution_filters import ExecutionQuery, list_executions
from foliot.api.http.conditions import IfMatch
from foliot.api.http.json_response import answer
from foliot.api.http.request_body import JsonBody, parse_optional, takes
from foliot.api.lists import ListOf
from foliot.api.paging import Paged, bad_token
from foliot.api.routes.apply import ChangeDocument, change_documents
from foliot.api.routes.executions import Because
from foliot.api.routes.schedules import answer_schedule
from foliot.api.services import API, Services
from foliot.commands.schedules_sql import Schedules
from foliot.model.errors import InvalidError
from foliot.model.execution import Status
from foliot.model.moment import Moment
from foliot.model.schedule import ChangeKind, Schedule, ScheduleSpec
from foliot.planning.change import as_of
from foliot.planning.document_diff import diff
from foliot.planning.forecast import Planned, forecast
from foliot.queries.execution_history import ExecutionHistory, PastFire, VersionRecord
from foliot.queries.statistics import DurationSummary, ScheduleStatistics, Statistics

_END = datetime(9000, 1, 1, tzinfo=UTC)


class FireState(StrEnum):
    PLANNED = "planned"
    FIRED = "fired"
    SKIPPED = "skipped"


class FireDocument(BaseModel):
    """A fire time: what became of it, or what is planned."""

    model_config = ConfigDict(title="FireTime")

    fire_ts: datetime
    state: FireState
    reason: str | None = Field(description="Why it was, or will be, skipped.")
    execution_id: UUID | None
    status: Status | None
    missed_count: int = Field(description="How many earlier times the same row decides.")
    missed_from_ts: datetime | None


class VersionDocument(ApiDocument):
    """A version of a schedule: who made it, why, and how it differs from the one before."""

    aggregate_version: int
    change: ChangeKind
    author: str | None
    reason: str | None
    created_ts: datetime
    paused: bool
    paused_until_ts: datetime | None
    document: dict[str, Any] = Field(description="The whole definition.")


class VersionWithChanges(VersionDocument):
    """A version, and its differences from another."""

    model_config = ConfigDict(title="VersionWithChanges")

    against: int | None = Field(description="The version that it is compared with; null: with none.")
    changes: list[ChangeDocument]


class SpreadDocument(ApiDocument):
    """How long something took, in seconds."""

    p50: float
    p95: float
    max: float


class DayDocument(ApiDocument):
    """What fell on a day."""

    day: date = Field(description="In UTC.")
    by_status: dict[Status, int]


class StatsDocument(ApiDocument):
    """A schedule in figures."""

    since_ts: datetime = Field(description="All of this is about fire times from here on.")
    by_status: dict[Status, int]
    duration_seconds: SpreadDocument | None = Field(description="Null: nothing has run.")
    start_delay_seconds: SpreadDocument | None = Field(description="From being ready to being started.")
    days: list[DayDocument] = Field(description="Those with executions, oldest first.")
    last: list[RecentExecutionDocument] = Field(description="The last 20, latest first.")


def _spread_document(spread: DurationSummary | None) -> dict[str, float] | None:
    return None if spread is None else {"p50": spread.p50_s, "p95": spread.p95_s, "max": spread.max_s}


def _stats_document(found: ScheduleStatistics) -> dict[str, Any]:
    return {
        "since_ts": found.since_ts,
        "by_status": found.by_status,
        "duration_seconds": _spread_document(found.duration),
        "start_delay_seconds": _spread_document(found.start_delay),
        "days": [asdict(day) for day in found.days],
        "last": [asdict(each) for each in found.last],
    }


Version = Annotated[int, Path(ge=1, le=2**62)]


def _past(fire: PastFire) -> dict[str, Any]:
    return {
        "fire_ts": fire.fire_ts,
        "state": FireState.SKIPPED if fire.is_skipped else FireState.FIRED,
        "reason": fire.reason if fire.is_skipped else None,
        "execution_id": fire.execution_id,
        "status": fire.status,
        "missed_count": fire.missed_count,
        "missed_from_ts": fire.missed_from_ts,
    }


def _planned(fire: Planned) -> dict[str, Any]:
    return {
        "fire_ts": fire.fire_ts,
        "state": FireState.PLANNED,
        "reason": fire.reason,
        "execution_id": None,
        "status": None,
        "missed_count": 0,
        "missed_from_ts": None,
    }


def _version_document(version: VersionRecord) -> dict[str, Any]:
    return {name: getattr(version, name) for name in VersionDocument.model_fields}


def schedule_history_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix=f"{API}/schedules/{{schedule_id}}", tags=["schedules"], route_class=GatedRoute)
    _add_fires(router, services)
    _add_versions(router, services)
    database = services.database

    @router.get(
        "/executions", summary="List a schedule's executions", response_model=ListOf[ExecutionDocument]
    )
    async def list_of_schedule(
        schedule_id: UUID,
        caller: Caller,
        page: Paged,
        query: Annotated[ExecutionQuery, Depends(made_of_query(ExecutionQuery))],
    ) -> Response:
        """Latest fire time first."""
        await Schedules(database).get(schedule_id, host_id=caller.host_id)
        wanted = query.filter_for(caller.host_id, (schedule_id,))
        return await list_executions(services, wanted, page, are_own=True)

    @router.get("/stats", summary="A schedule in figures", response_model=StatsDocument)
    async def read_stats(schedule_id: UUID, caller: Caller) -> Response:
        """Of its latest 2,000 executions, at most 12 weeks back."""
        await Schedules(database).get(schedule_id, host_id=caller.host_id)
        found = await Statistics(database).of_schedule(schedule_id, host_id=caller.host_id)
        return answer(_stats_document(found))

    return router


def _add_fires(router: APIRouter, services: Services) -> None:
    database = services.database

    @router.get(
        "/fires",
        summary="List a schedule's fire times, past and planned",
        response_model=ListOf[FireDocument],
    )
    async def list_fires(
        schedule_id: UUID,
        caller: Caller,
        from_ts: Annotated[Moment | None, Query(alias="from", description="At or after this.")] = None,
        to_ts: Annotated[Moment | None, Query(alias="to", description="Before this.")] = None,
        n: Annotated[
            int, Query(ge=1, le=1000, description="At most so many past, and so many to come.")
        ] = 10,
    ) -> Response:
        """In order of time: the latest that were decided (`fired`, or `skipped` and why), and the next ones
        (`planned`; one that window or calendar will hold back says so)."""
        if from_ts is not None and to_ts is not None and from_ts > to_ts:
            raise InvalidError.at("/from", "out_of_range", "must not lie after to", "a time before `to`")
        schedule = as_of(await Schedules(database).get(schedule_id, host_id=caller.host_id), services.now())
        past = await ExecutionHistory(database).ledger(
            schedule_id, host_id=caller.host_id, from_ts=from_ts, to_ts=to_ts, n=n
        )
        planned = await _planned_for(schedule, from_ts, to_ts, n)
        items = [*map(_past, reversed(past)), *map(_planned, planned)]
        return answer({"items": items, "next_page_token": ""})

    async def _planned_for(
        schedule: Schedule, from_ts: datetime | None, to_ts: datetime | None, n: int
    ) -> tuple[Planned, ...]:
        book = await book_of(services, schedule.host_id, schedule.spec.calendars)
        start = from_ts or schedule.created_ts
        found = await asyncio.to_thread(forecast, schedule, start, to_ts or _END, limit=n, calendars=book)
        return found.times


def _add_versions(router: APIRouter, services: Services) -> None:
    history, commands = ExecutionHistory(services.database), services.commands.schedules

    @router.get("/versions", summary="List a schedule's versions", response_model=ListOf[VersionDocument])
    async def list_versions(schedule_id: UUID, caller: Caller, page: Paged) -> Response:
        """Latest first: every change, with author and reason."""
        position = page.position()
        if position is not None and (len(position) != 1 or type(position[0]) is not int):
            raise bad_token()
        rows = await history.versions(
            schedule_id,
            host_id=caller.host_id,
            before_version=None if position is None else position[0],
            limit=page.limit,
        )
        return page.answer(rows, _version_document, lambda row: [row.aggregate_version])

    @router.get(
        "/versions/{version}", summary="Read a version of a schedule", response_model=VersionWithChanges
    )
    async def read_version(
        schedule_id: UUID,
        version: Version,
        caller: Caller,
        against: Annotated[
            int | None, Query(ge=1, le=2**62, description="Compare with this one; left out, the one before.")
        ] = None,
    ) -> Response:
        found = await history.version(schedule_id, version, host_id=caller.host_id)
        other = await _other(schedule_id, version, against, caller.host_id)
        changes = change_documents(diff({} if other is None else other.document, found.document))
        compared = None if other is None else other.aggregate_version
        return answer({**_version_document(found), "against": compared, "changes": changes})

    async def _other(
        schedule_id: UUID, version: int, against: int | None, host_id: UUID
    ) -> VersionRecord | None:
        """Return the version to compare with. None: the previous version was pruned, or there was none."""
        if against is not None:
            return await history.version(schedule_id, against, host_id=host_id)
        before = await history.versions(schedule_id, host_id=host_id, before_version=version, limit=1)
        return before[0] if before else None

    @router.post(
        "/versions/{version}/restore",
        summary="Restore a version of a schedule",
        response_model=ScheduleDocument,
        openapi_extra=takes(Because, is_required=False),
    )
    async def restore_version(
        schedule_id: UUID,
        version: Version,
        caller: Caller,
        author: Writer,
        body: JsonBody,
        expected: IfMatch,
    ) -> Response:
        """Gives the schedule the definition that it had then, as a new version. A pause stays as it is."""
        asked = parse_optional(Because, body)
        found = await history.version(schedule_id, version, host_id=caller.host_id)
        because = author.because(asked.reason)
        schedule = await commands.edit(
            schedule_id,
            ScheduleSpec.parse(found.document),
            because if because.reason else author.because(f"restored version {version}"),
            host_id=caller.host_id,
            expected_version=expected,
        )
        return await answer_schedule(services, schedule)

"""Routes for schedules: list, read, create, change, delete, pause, resume, trigger and backfill."""

from dataclasses import asdict
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field, JsonValue

from foliot.api.access.gate import Caller, GatedRoute, ReservedId, Writer, managed_by_of, triggered_by_of
from foliot.api.dependencies import made_of_query
from foliot.api.documents import (
    ExecutionDocument,
    ListedScheduleDocument,
    ScheduleDocument,
    SchedulePatch,
    ScheduleReplacement,
    definition_of,
    execution_document,
    schedule_document,
)
from foliot.api.examples import NIGHTLY_REPORT
from foliot.api.http.conditions import IfMatch
from foliot.api.http.json_response import answer, etag_of, no_content
from foliot.api.http.patch import merge_definition
from foliot.api.http.request_body import Form, JsonBody, parse, parse_optional, require_object, takes
from foliot.api.lists import ListOf
from foliot.api.paging import Paged
from foliot.api.routes.backfills import BackfillDocument, backfill_document
from foliot.api.schedule_filters import ScheduleOrder, ScheduleQuery
from foliot.api.services import API, Services
from foliot.model.errors import StaleVersionError
from foliot.model.moment import Moment
from foliot.model.schedule import Schedule, ScheduleSpec
from foliot.queries.schedule_list import ListedSchedule, ScheduleList
from foliot.queries.statistics import Statistics


class Pause(Form):
    """Why it is paused, and until when."""

    reason: str | None = Field(default=None, max_length=1000, examples=["the agent is being moved"])
    until_ts: Moment | None = Field(default=None, description="When it goes on by itself.")


class Resume(Form):
    """Why it goes on."""

    reason: str | None = Field(default=None, max_length=1000)


class TriggerNow(Form):
    """Arguments for this run, over those of the schedule."""

    args: dict[str, JsonValue] | None = Field(default=None, examples=[{"region": "eu"}])
    reason: str | None = Field(default=None, max_length=1000)


class BackfillRange(Form):
    """The times to run it for: from `from_ts` up to, but not including, `to_ts`."""

    from_ts: Moment
    to_ts: Moment
    reason: str | None = Field(default=None, max_length=1000)


def show_schedule(services: Services, listed: ListedSchedule) -> dict[str, Any]:
    return schedule_document(
        listed.schedule,
        services.now(),
        last_run_ts=listed.last_run_ts,
        last_status=listed.last_status,
        last_execution_id=listed.last_execution_id,
    )


async def answer_schedule(
    services: Services, schedule: Schedule, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return the response with a schedule after a change."""
    listed = await ScheduleList(services.database).get_with_status(schedule.schedule_id, schedule.host_id)
    with_etag = {"ETag": etag_of(listed.schedule.aggregate_version), **(headers or {})}
    return answer(show_schedule(services, listed), status, with_etag)


def schedule_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix=f"{API}/schedules", tags=["schedules"], route_class=GatedRoute)
    _add_reading(router, services)
    _add_defining(router, services)
    _add_commands(router, services)
    return router


def _add_reading(router: APIRouter, services: Services) -> None:
    lists = ScheduleList(services.database)

    @router.get("", summary="List schedules", response_model=ListOf[ListedScheduleDocument])
    async def list_schedules(
        caller: Caller,
        page: Paged,
        query: Annotated[ScheduleQuery, Depends(made_of_query(ScheduleQuery))],
        order: Annotated[ScheduleOrder, Depends(made_of_query(ScheduleOrder))],
        recent: Annotated[int, Query(ge=0, le=20, description="With so many of the latest executions.")] = 0,
    ) -> Response:
        """In order of name, or as `sort` says. A parameter given several times means any of its values."""
        found = await lists.page(
            query.filter_for(caller.host_id),
            sort=order.by,
            is_descending=order.is_descending,
            after=order.position(page),
            limit=page.page_size,
        )
        position = None if found.next is None else order.place_of(found.next)
        if not recent:
            return page.answer_part(found.items, lambda listed: show_schedule(services, listed), position)
        ids = [listed.schedule.schedule_id for listed in found.items]
        latest = await Statistics(services.database).recent(ids, n=recent)

        def with_recent(listed: ListedSchedule) -> dict[str, Any]:
            some = latest.get(listed.schedule.schedule_id, [])
            return {**show_schedule(services, listed), "recent": [asdict(each) for each in some]}

        return page.answer_part(found.items, with_recent, position)

    @router.get("/{schedule_id}", summary="Read a schedule", response_model=ScheduleDocument)
    async def read_schedule(schedule_id: UUID, caller: Caller) -> Response:
        listed = await lists.get_with_status(schedule_id, caller.host_id)
        etag = etag_of(listed.schedule.aggregate_version)
        return answer(show_schedule(services, listed), headers={"ETag": etag})


def _add_defining(router: APIRouter, services: Services) -> None:
    lists, commands = ScheduleList(services.database), services.commands.schedules

    @router.post(
        "",
        status_code=201,
        summary="Create a schedule",
        response_model=ScheduleDocument,
        openapi_extra=takes(ScheduleSpec, example=NIGHTLY_REPORT),
    )
    async def create_schedule(
        caller: Caller, author: Writer, body: JsonBody, reserved: ReservedId
    ) -> Response:
        """Only `name`, `trigger` and `target` are required. A name that is taken is a 409."""
        schedule = await commands.create(
            caller.host_id,
            parse(ScheduleSpec, body),
            author,
            managed_by=managed_by_of(caller),
            reserved_id=reserved,
        )
        headers = {
            "Location": f"{API}/schedules/{schedule.schedule_id}",
            "ETag": etag_of(schedule.aggregate_version),
        }
        # A new schedule has no runs, so its status need not be read.
        return answer(show_schedule(services, ListedSchedule(schedule, None, None, None)), 201, headers)

    @router.put(
        "/{schedule_id}",
        summary="Replace a schedule's definition",
        response_model=ScheduleDocument,
        openapi_extra=takes(ScheduleReplacement, example=NIGHTLY_REPORT),
    )
    async def replace_schedule(
        schedule_id: UUID, caller: Caller, author: Writer, body: JsonBody, expected: IfMatch
    ) -> Response:
        """What is left out gets its default. Read-only fields may come back as they were read."""
        listed = await lists.get_with_status(schedule_id, caller.host_id)
        shown = show_schedule(services, listed)
        _require_version(listed.schedule, expected)
        spec = parse(ScheduleSpec, definition_of(require_object(body), shown, services.now()))
        schedule = await commands.edit(
            schedule_id, spec, author, host_id=caller.host_id, expected_version=expected
        )
        return await answer_schedule(services, schedule)

    @router.patch(
        "/{schedule_id}",
        summary="Change parts of a schedule",
        response_model=ScheduleDocument,
        openapi_extra=takes(SchedulePatch, media="application/merge-patch+json", example={"active": False}),
    )
    async def patch_schedule(
        schedule_id: UUID, caller: Caller, author: Writer, body: JsonBody, expected: IfMatch
    ) -> Response:
        """A JSON merge patch (RFC 7396): what is not named stays, null gives a field its default."""
        listed = await lists.get_with_status(schedule_id, caller.host_id)
        _require_version(listed.schedule, expected)
        changes = definition_of(require_object(body), show_schedule(services, listed), services.now())

        def patched(known: Schedule) -> ScheduleSpec:
            return parse(ScheduleSpec, merge_definition(known.spec.model_dump(mode="json"), changes))

        schedule = await commands.edit(
            schedule_id, patched, author, host_id=caller.host_id, expected_version=expected
        )
        return await answer_schedule(services, schedule)

    @router.delete("/{schedule_id}", status_code=204, summary="Delete a schedule")
    async def delete_schedule(
        schedule_id: UUID, caller: Caller, author: Writer, expected: IfMatch
    ) -> Response:
        """Frees its name, cancels what waits, lets finish what runs. Its history stays."""
        await commands.delete(schedule_id, author, host_id=caller.host_id, expected_version=expected)
        return no_content()


def _require_version(schedule: Schedule, expected: int | None) -> None:
    if expected is not None and schedule.aggregate_version != expected:
        raise StaleVersionError(schedule.schedule_id, expected, schedule.aggregate_version)


def _add_commands(router: APIRouter, services: Services) -> None:
    commands = services.commands.schedules

    @router.post(
        "/{schedule_id}/pause",
        summary="Pause a schedule",
        response_model=ScheduleDocument,
        openapi_extra=takes(Pause, is_required=False),
    )
    async def pause_schedule(
        schedule_id: UUID, caller: Caller, author: Writer, body: JsonBody, expected: IfMatch
    ) -> Response:
        """Nothing becomes due until it is resumed, or `until_ts`. Pausing again changes reason and end."""
        asked = parse_optional(Pause, body)
        schedule = await commands.pause(
            schedule_id,
            author.because(asked.reason),
            until_ts=asked.until_ts,
            host_id=caller.host_id,
            expected_version=expected,
        )
        return await answer_schedule(services, schedule)

    @router.post(
        "/{schedule_id}/resume",
        summary="Resume a schedule",
        response_model=ScheduleDocument,
        openapi_extra=takes(Resume, is_required=False),
    )
    async def resume_schedule(
        schedule_id: UUID, caller: Caller, author: Writer, body: JsonBody, expected: IfMatch
    ) -> Response:
        """It goes on with its first time after now, on the same grid."""
        asked = parse_optional(Resume, body)
        schedule = await commands.resume(
            schedule_id, author.because(asked.reason), host_id=caller.host_id, expected_version=expected
        )
        return await answer_schedule(services, schedule)

    @router.post(
        "/{schedule_id}/trigger",
        status_code=202,
        summary="Run a schedule now",
        response_model=ExecutionDocument,
        openapi_extra=takes(TriggerNow, is_required=False),
    )
    async def trigger_schedule(
        schedule_id: UUID, caller: Caller, author: Writer, body: JsonBody, reserved: ReservedId
    ) -> Response:
        """Besides its own times, and also while it is paused. `Location` is the execution."""
        asked = parse_optional(TriggerNow, body)
        execution = await commands.trigger(
            schedule_id,
            author.because(asked.reason),
            by=triggered_by_of(caller),
            args=asked.args,
            execution_id=reserved,
            host_id=caller.host_id,
        )
        headers = {"Location": f"{API}/executions/{execution.execution_id}"}
        return answer(execution_document(execution), 202, headers)

    @router.post(
        "/{schedule_id}/backfill",
        status_code=202,
        summary="Run a schedule for past times",
        response_model=BackfillDocument,
        openapi_extra=takes(BackfillRange),
    )
    async def backfill_schedule(
        schedule_id: UUID, caller: Caller, author: Writer, body: JsonBody, reserved: ReservedId
    ) -> Response:
        """For the times that it would have had in a range, paced. `Location` tells how far it has come."""
        asked = parse(BackfillRange, body)
        backfill = await commands.backfill(
            schedule_id,
            asked.from_ts,
            asked.to_ts,
            author.because(asked.reason),
            backfill_id=reserved,
            host_id=caller.host_id,
        )
        location = f"{API}/backfills/{backfill.backfill_id}"
        return answer(backfill_document(backfill), 202, {"Location": location})

"""Routes for bulk operations: by ids or by a filter, with a dry run and an expected count."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from foliot.access.principal import Principal, Role
from foliot.api.access.gate import Caller, GatedRoute, ReservedId, Writer, triggered_by_of
from foliot.api.http.json_response import answer
from foliot.api.http.request_body import Form, JsonBody, parse, takes
from foliot.api.schedule_filters import ScheduleFilterForm
from foliot.api.services import API, Services
from foliot.commands.bulk import BulkResult, on_each
from foliot.model.error_codes import verdict_on
from foliot.model.errors import ConflictError, ForbiddenError, InvalidError
from foliot.model.execution import Status, TriggeredBy
from foliot.model.ids import derived_id
from foliot.model.moment import Moment
from foliot.model.schedule import QueueName
from foliot.planning.change import Author
from foliot.queries.execution_list import ExecutionList
from foliot.queries.execution_search import ExecutionFilter
from foliot.queries.schedule_list import ScheduleList

MAX_ITEMS = 1000
"""Maximum number of items per request, so that a request does not take too long."""


class ScheduleAct(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    TRIGGER = "trigger"
    DELETE = "delete"


class ExecutionAct(StrEnum):
    RETRY = "retry"
    CANCEL = "cancel"


class ExecutionFilterForm(Form):
    """Which executions, as in the list of them."""

    schedule_id: Annotated[tuple[UUID, ...], Field(max_length=50)] = ()
    status: Annotated[tuple[Status, ...], Field(max_length=20)] = ()
    queue: Annotated[tuple[QueueName, ...], Field(max_length=50)] = ()
    triggered_by: Annotated[tuple[TriggeredBy, ...], Field(max_length=10)] = ()
    fire_from: Moment | None = None
    fire_to: Moment | None = None


class _Bulk(Form):
    dry_run: bool = Field(default=False, description="Only tell which would be acted on.")
    expected_count: int | None = Field(
        default=None,
        ge=0,
        description="How many there should be; another number is a 409, and nothing is done.",
    )
    reason: str | None = Field(default=None, max_length=1000)


class ScheduleBulk(_Bulk):
    """An act on schedules: those with these ids, or all that match a filter."""

    action: ScheduleAct
    schedule_ids: Annotated[tuple[UUID, ...], Field(max_length=MAX_ITEMS)] | None = None
    filter: ScheduleFilterForm | None = None
    until_ts: Moment | None = Field(default=None, description="With `pause`: until when.")

    @model_validator(mode="after")
    def _one_of_both(self) -> "ScheduleBulk":
        _require_one(self.schedule_ids, self.filter, "schedule_ids")
        if self.until_ts is not None and self.action is not ScheduleAct.PAUSE:
            raise ValueError("until_ts is for pause alone")
        return self


class ExecutionBulk(_Bulk):
    """An act on executions: those with these ids, or all that match a filter."""

    action: ExecutionAct
    execution_ids: Annotated[tuple[UUID, ...], Field(max_length=MAX_ITEMS)] | None = None
    filter: ExecutionFilterForm | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "ExecutionBulk":
        _require_one(self.execution_ids, self.filter, "execution_ids")
        return self


def _require_one(ids: object, wanted: object, name: str) -> None:
    if (ids is None) == (wanted is None):
        raise ValueError(f"give either {name} or filter; an empty filter means all")


class BulkItem(BaseModel):
    """What became of one."""

    id: UUID
    name: str | None
    error: str | None = Field(description="Why it was not done; null: it was, or would be.")
    code: str | None


class BulkDone(BaseModel):
    """What became of all."""

    model_config = ConfigDict(title="BulkOutcome")

    dry_run: bool
    matched: int
    done: int
    failed: int
    items: list[BulkItem]


class _One(BaseModel):
    id: UUID
    name: str | None = None


def bulk_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix=API, route_class=GatedRoute)

    @router.post(
        "/schedules/bulk",
        tags=["schedules"],
        summary="Act on many schedules",
        response_model=BulkDone,
        openapi_extra=takes(ScheduleBulk),
    )
    async def act_on_schedules(
        caller: Caller, author: Writer, body: JsonBody, reserved: ReservedId
    ) -> Response:
        """At most 1,000 at a time. Each is acted on by itself; `items` tells what became of it."""
        asked = parse(ScheduleBulk, body)
        if asked.action is ScheduleAct.DELETE and not caller.may(Role.EDITOR):
            raise ForbiddenError(f"delete takes the role editor; this credential has {caller.role.value}")
        found = await _schedules(services, caller, asked)
        act = _schedule_act(services, caller, asked, author.because(asked.reason), reserved)
        return await _carry_out(asked, found, act)

    @router.post(
        "/executions/bulk",
        tags=["executions"],
        summary="Act on many executions",
        response_model=BulkDone,
        openapi_extra=takes(ExecutionBulk),
    )
    async def act_on_executions(caller: Caller, author: Writer, body: JsonBody) -> Response:
        """At most 1,000 at a time. Each is acted on by itself; `items` tells what became of it."""
        asked = parse(ExecutionBulk, body)
        found = await _executions(services, caller, asked)
        because, commands = author.because(asked.reason), services.commands.executions
        change = commands.retry if asked.action is ExecutionAct.RETRY else commands.cancel

        async def act(one: _One) -> None:
            await change(one.id, because, host_id=caller.host_id)

        return await _carry_out(asked, found, act)

    return router


def _schedule_act(
    services: Services, caller: Principal, asked: ScheduleBulk, author: Author, reserved: UUID | None
) -> Any:
    commands, host_id = services.commands.schedules, caller.host_id

    async def act(one: _One) -> None:
        match asked.action:
            case ScheduleAct.PAUSE:
                await commands.pause(one.id, author, until_ts=asked.until_ts, host_id=host_id)
            case ScheduleAct.RESUME:
                await commands.resume(one.id, author, host_id=host_id)
            case ScheduleAct.TRIGGER:
                # Derived ids: if the request is repeated with its Idempotency-Key, each still runs only once.
                execution_id = None if reserved is None else derived_id(reserved, one.id)
                await commands.trigger(
                    one.id,
                    author,
                    by=triggered_by_of(caller),
                    execution_id=execution_id,
                    host_id=host_id,
                )
            case ScheduleAct.DELETE:
                await commands.delete(one.id, author, host_id=host_id)

    return act


async def _schedules(services: Services, caller: Principal, asked: ScheduleBulk) -> list[_One]:
    if asked.filter is None:
        return [_One(id=each) for each in dict.fromkeys(asked.schedule_ids or ())]
    rows = await ScheduleList(services.database).ids(
        asked.filter.filter_for(caller.host_id), limit=MAX_ITEMS + 1
    )
    _require_few(rows)
    return [_One(id=row.schedule_id, name=row.name) for row in rows]


async def _executions(services: Services, caller: Principal, asked: ExecutionBulk) -> list[_One]:
    if asked.filter is None:
        return [_One(id=each) for each in dict.fromkeys(asked.execution_ids or ())]
    form = asked.filter
    wanted = ExecutionFilter(
        host_id=caller.host_id,
        schedule_ids=form.schedule_id,
        statuses=form.status,
        queues=form.queue,
        triggered_by=form.triggered_by,
        fire_from=form.fire_from,
        fire_to=form.fire_to,
    )
    found: list[_One] = []
    position = None
    while True:
        page = await ExecutionList(services.database).page(
            wanted, after=position, limit=MAX_ITEMS + 1 - len(found), with_bodies=False
        )
        found += [_One(id=row.execution_id, name=row.schedule_name) for row in page.items]
        _require_few(found)
        if page.next is None:
            return found
        position = page.next


def _require_few(found: Sequence[object]) -> None:
    if len(found) > MAX_ITEMS:
        detail = f"matches more than {MAX_ITEMS}"
        raise InvalidError.at("/filter", "too_many", detail, "narrow it, and go on in several steps")


async def _carry_out(asked: _Bulk, found: list[_One], act: Any) -> Response:
    if asked.expected_count is not None and asked.expected_count != len(found):
        raise ConflictError.at(
            "/expected_count",
            "count_differs",
            f"there are {len(found)}, and {asked.expected_count} were expected",
        )
    outcomes = [BulkResult(one) for one in found] if asked.dry_run else await on_each(found, act)
    failed = sum(outcome.error is not None for outcome in outcomes)
    document = {
        "dry_run": asked.dry_run,
        "matched": len(found),
        "done": 0 if asked.dry_run else len(found) - failed,
        "failed": failed,
        "items": [
            {
                "id": outcome.item.id,
                "name": outcome.item.name,
                "error": None if outcome.error is None else str(outcome.error),
                "code": None if outcome.error is None else verdict_on(outcome.error).code,
            }
            for outcome in outcomes
        ],
    }
    return answer(document)

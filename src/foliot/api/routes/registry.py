"""Routes for instances, task functions and queues."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from foliot.api.access.gate import Caller, GatedRoute, Writer
from foliot.api.api_document import ApiDocument
from foliot.api.http.json_response import answer
from foliot.api.http.request_body import Form, JsonBody, parse, parse_optional, takes
from foliot.api.lists import ListOf
from foliot.api.paging import Paged
from foliot.api.routes.executions import Because
from foliot.api.schedule_filters import Search
from foliot.api.services import API, Services
from foliot.kinds.function_target import TaskName
from foliot.model.policy import Priority, RetryPolicy
from foliot.model.schedule import QueueName
from foliot.queries.queues import QueueRecord, Queues
from foliot.queries.registry_list import ListedInstance, ListedTask, RegistryList, TaskFilter


class TransportDocument(ApiDocument):
    """How an instance's executions of one priority travel."""

    kind: str = Field(examples=["rabbitmq"])
    address: str | None = Field(description="Without user and password; null: the database.")
    state: Literal["up", "away"] = Field(
        description="`away`: it does not answer, and workers look into the database themselves."
    )
    since_ts: datetime | None = Field(description="Since when; null: since the instance started.")


class LeaseProviderDocument(ApiDocument):
    """What decides about leaders beside the database, as an instance sees it."""

    kind: Literal["etcd", "redis"]
    address: str = Field(description="Without user and password.")
    state: Literal["up", "away"] = Field(
        description="`away`: it does not answer, and the database alone decides."
    )
    since_ts: datetime | None = Field(description="Since when; null: it has not answered yet.")


class InstanceDocument(ApiDocument):
    """A process of the cluster, as it last reported its state."""

    instance_id: str
    hostname: str
    pid: int
    roles: list[str]
    version: str
    started_ts: datetime
    last_heartbeat: datetime
    heartbeat_age_seconds: float = Field(description="By the database's clock.")
    is_live: bool
    is_draining: bool = Field(description="Takes on nothing more: it was asked to, or it stops.")
    leader_since: datetime | None
    leads: list[int] = Field(description="Numbers of the shards that it leads.")
    capacity: int = Field(description="How many executions it can run at once.")
    load: int = Field(description="How many it runs.")
    queues: list[str] | None = Field(description="What it serves; null: all.")
    known_tasks: list[str] | None = Field(description="Task functions it can run; null: it is no worker.")
    clock_offset_seconds: float | None = Field(description="How far its clock is from the database's.")
    transports: dict[str, TransportDocument] | None = Field(
        description="How executions travel, by priority; null: all through the database."
    )
    lease_provider: LeaseProviderDocument | None = Field(
        description="What decides about leaders beside the database; null: nothing."
    )


class TaskDocument(BaseModel):
    """A task function that worker code registered."""

    model_config = ConfigDict(title="TaskFunction")

    name: str
    display_name: str
    description: str
    handler_path: str
    handler_type: str
    queue: str | None = Field(description="Of schedules that name none; null: `default`.")
    default_timeout_seconds: float = Field(description="Of schedules that name none.")
    default_retry: RetryPolicy | None = Field(
        description="Of schedules that name none; null: the default of schedules."
    )
    args_schema: dict[str, Any] = Field(description="A JSON schema of its arguments.")
    is_active: bool
    is_system: bool
    worker_count: int = Field(description="How many live workers can run it; not those that drain.")
    created_ts: datetime
    updated_ts: datetime


class TaskChange(Form):
    """Whether workers may run it."""

    is_active: bool
    reason: str | None = Field(default=None, max_length=1000)


class QueueDocument(ApiDocument):
    """A queue as it stands now."""

    name: str
    paused: bool
    depth: dict[Priority, int] = Field(description="What is ready and waits for a worker, by priority.")
    is_capped: bool = Field(description="Whether there may be more than `depth` says.")
    oldest_ready_ts: datetime | None = Field(description="Since when the longest waits.")
    sla_missed_count: int = Field(description="How many of them should have started by now.")
    running_count: int
    is_running_capped: bool


def instance_document(instance: ListedInstance) -> dict[str, Any]:
    document = asdict(instance)
    document["heartbeat_age_seconds"] = document.pop("heartbeat_age_s")
    document["clock_offset_seconds"] = document.pop("clock_offset_s")
    return document


def _task_document(task: ListedTask) -> dict[str, Any]:
    return {name: getattr(task, name) for name in TaskDocument.model_fields}


def queue_document(queue: QueueRecord) -> Mapping[str, Any]:
    document = {name: getattr(queue, name) for name in QueueDocument.model_fields if name != "paused"}
    return {**document, "paused": queue.is_paused}


Queue = Annotated[QueueName, Path(alias="name")]


def registry_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix=API, route_class=GatedRoute)
    _add_tasks(router, services)
    _add_queues(router, services)

    @router.get(
        "/instances", tags=["cluster"], summary="List instances", response_model=ListOf[InstanceDocument]
    )
    async def list_instances(page: Paged) -> Response:
        """Every process that said within the last minutes that it is there."""
        rows = await RegistryList(services.database).instances(
            lease_ttl_s=services.lease_ttl_s, after=page.after_text(), limit=page.limit
        )
        return page.answer(rows, instance_document, lambda row: [row.instance_id])

    return router


def _add_tasks(router: APIRouter, services: Services) -> None:
    registry = RegistryList(services.database)
    tags: list[Any] = ["task functions"]

    @router.get(
        "/task-functions", tags=tags, summary="List task functions", response_model=ListOf[TaskDocument]
    )
    async def list_tasks(
        page: Paged,
        name: Annotated[list[TaskName] | None, Query(max_length=50)] = None,
        q: Annotated[Search, Query(description="A part of the name or of the description.")] = "",
        is_active: bool | None = None,
        is_system: bool | None = None,
    ) -> Response:
        """In order of name: what workers of this cluster have registered."""
        wanted = TaskFilter(names=name or (), q=q, is_active=is_active, is_system=is_system)
        rows = await registry.tasks(wanted, after=page.after_text(), limit=page.limit)
        return page.answer(rows, _task_document, lambda row: [row.name])

    @router.get(
        "/task-functions/{name}", tags=tags, summary="Read a task function", response_model=TaskDocument
    )
    async def read_task(name: TaskName) -> Response:
        return answer(_task_document(await registry.task(name)))

    @router.patch(
        "/task-functions/{name}",
        tags=tags,
        summary="Switch a task function on or off",
        response_model=TaskDocument,
        openapi_extra=takes(TaskChange),
    )
    async def change_task(name: TaskName, author: Writer, body: JsonBody) -> Response:
        """One that is switched off is refused when a schedule names it, and when it would run.

        Foliot's own system functions, `foliot.*`, can't be switched: 409.
        """
        asked = parse(TaskChange, body)
        task = await registry.set_task_active(name, asked.is_active, author.because(asked.reason))
        return answer(_task_document(task))


def _add_queues(router: APIRouter, services: Services) -> None:
    queues, commands = Queues(services.database), services.commands.shared
    tags: list[Any] = ["queues"]

    @router.get("/queues", tags=tags, summary="List queues", response_model=ListOf[QueueDocument])
    async def list_queues(caller: Caller, page: Paged) -> Response:
        """In order of name: what waits in each, how long already, and what runs."""
        rows = await queues.page(caller.host_id, after=page.after_text(), limit=page.limit)
        return page.answer(rows, queue_document, lambda row: [row.name])

    @router.post(
        "/queues/{name}/pause",
        tags=tags,
        summary="Pause a queue",
        response_model=QueueDocument,
        openapi_extra=takes(Because, is_required=False),
    )
    async def pause_queue(queue: Queue, caller: Caller, author: Writer, body: JsonBody) -> Response:
        """Workers take nothing from it until it is resumed; what runs goes on. It need not exist yet."""
        because = author.because(parse_optional(Because, body).reason)
        await commands.pause_queue(caller.host_id, queue, because, is_paused=True)
        return answer(queue_document(await queues.get(caller.host_id, queue)))

    @router.post(
        "/queues/{name}/resume",
        tags=tags,
        summary="Resume a queue",
        response_model=QueueDocument,
        openapi_extra=takes(Because, is_required=False),
    )
    async def resume_queue(queue: Queue, caller: Caller, author: Writer, body: JsonBody) -> Response:
        because = author.because(parse_optional(Because, body).reason)
        await commands.pause_queue(caller.host_id, queue, because, is_paused=False)
        return answer(queue_document(await queues.get(caller.host_id, queue)))

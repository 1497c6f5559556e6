"""Routes for the preview of a trigger and the status of a host."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from foliot.api.access.gate import Caller, GatedRoute
from foliot.api.api_document import ApiDocument
from foliot.api.calendar_book import book_of
from foliot.api.http.json_response import answer
from foliot.api.http.request_body import Form, JsonBody, parse, takes
from foliot.api.routes.events import EventGroupDocument, EventRelayDocument, not_well
from foliot.api.routes.registry import QueueDocument, queue_document
from foliot.api.services import API, Services
from foliot.commands.schedules_sql import Schedules
from foliot.db.read_routing import Source, source
from foliot.db.replica import ReplicaWatch
from foliot.model.errors import InvalidError, Problem
from foliot.model.execution import Status
from foliot.model.ids import DEFAULT_HOST_ID, hash_key, hash_key_of_name
from foliot.model.kind import PreviewWarning, Trigger
from foliot.model.moment import Moment
from foliot.model.policy import Dst, Priority, Window
from foliot.model.schedule import ScheduleState
from foliot.outbox.readers_sql import EventAdmin
from foliot.planning.preview import MAX_FIRES, Preview, preview
from foliot.queries.overview import LeaderRecord, Overview, Overviews
from foliot.queries.queues import QueueRecord, Queues
from foliot.queries.registry_list import RegistryList, TransportRecord

MAX_QUEUES = 100


class PreviewAsked(Form):
    """A trigger, and whatever else decides its times."""

    trigger: Trigger
    n: int = Field(default=10, ge=1, le=MAX_FIRES, description="How many times.")
    from_ts: Moment | None = Field(default=None, description="From when on; left out, from now on.")
    dst: Dst = Dst()
    window: Window | None = None
    calendars: Annotated[tuple[Annotated[str, Field(max_length=126)], ...], Field(max_length=50)] = ()
    start_ts: Moment | None = None
    end_ts: Moment | None = None
    jitter_seconds: float = Field(default=0, ge=0, le=86400)
    schedule_id: UUID | None = Field(
        default=None, description="The schedule that is edited: `H` in an expression depends on it."
    )
    name: str | None = Field(
        default=None,
        max_length=126,
        description="The name of the schedule, if it has no id yet: `H` in an expression depends on it.",
    )


class WarningDocument(ApiDocument):
    """Something that is allowed, and perhaps not meant."""

    code: str
    text: str
    at: datetime | None


class FireMark(BaseModel):
    """A fire that changing clocks have to do with."""

    fire: str
    clock_change: str = Field(description="`gap` or `repeat`.")


class PreviewDocument(ApiDocument):
    """When a trigger fires."""

    description: str = Field(examples=["At 02:00 (Europe/Berlin)"])
    fires: list[str] = Field(
        description="In the trigger's zone, with offset.", examples=[["2026-03-29T03:00:00+02:00"]]
    )
    warnings: list[str] = Field(description="Things that are allowed, and perhaps not meant.")
    details: list[WarningDocument] = Field(description="The warnings, for programs.")
    marks: list[FireMark] = Field(description="Which of the fires fall into a change of clocks.")


def preview_document(found: Preview) -> dict[str, Any]:
    return {
        "description": found.description,
        "fires": [fire.local_ts.isoformat() for fire in found.fires],
        "warnings": [warning.text for warning in found.warnings],
        "details": [
            {"code": warning.code, "text": warning.text, "at": warning.at} for warning in found.warnings
        ],
        "marks": [
            {"fire": fire.local_ts.isoformat(), "clock_change": fire.clock_change}
            for fire in found.fires
            if fire.clock_change is not None
        ],
    }


def _require_known(names: Sequence[str], known: set[str]) -> None:
    missing = [
        Problem(f"/calendars/{index}", "not_found", f'there is no calendar named "{name}"')
        for index, name in enumerate(names)
        if name not in known
    ]
    if missing:
        raise InvalidError(missing)


def _of_none(asked: PreviewAsked, error: InvalidError) -> Preview:
    """Return an empty preview with a warning for a trigger that never fires. Raises any other error."""
    if any(problem.code != "never_fires" for problem in error.problems):
        raise error
    return Preview(asked.trigger.describe(), (), (PreviewWarning("never_fires", error.problems[0].detail),))


class LeaderDocument(ApiDocument):
    """Who leads a shard."""

    shard: int
    instance_id: str | None = Field(description="Null: nobody.")
    epoch: int
    heartbeat_age_seconds: float
    is_fresh: bool


class ScheduleCounts(BaseModel):
    by_state: dict[ScheduleState, int]
    is_capped: bool


class ExecutionCounts(BaseModel):
    by_status: dict[Status, int] = Field(description="Of open executions: pending, running, retrying.")
    held: int = Field(description="How many of the pending ones wait for another run of their schedule.")
    ended_badly_24h: int = Field(description="Failed, timed out or unknown, of the last 24 hours.")
    is_capped: bool


class NextFireDocument(ApiDocument):
    """A schedule that is due soon."""

    schedule_id: UUID
    name: str
    next_fire_ts: datetime
    next_run_ts: datetime


class FailureDocument(ApiDocument):
    """An execution that ended badly."""

    execution_id: UUID
    schedule_id: UUID
    schedule_name: str | None
    status: Status
    error: str | None
    ended_ts: datetime | None


class OverdueDocument(ApiDocument):
    """Schedules that should have been acted on ten seconds ago, or three lease TTLs if that is longer."""

    count: int
    is_capped: bool
    oldest: NextFireDocument | None


class UnknownTaskDocument(ApiDocument):
    """A task function that active schedules name, and no live worker knows."""

    task: str
    schedule_count: int
    schedule_name: str = Field(description="One of the schedules.")


class UnservedQueueDocument(ApiDocument):
    """A queue in which work waits, and that no live worker serves."""

    queue: str
    waiting: int = Field(description="How many executions are ready, counted up to 1,000.")
    oldest_ready_ts: datetime = Field(description="Since when the first of them waits.")


class TransportStatus(BaseModel):
    """How executions of a priority travel, as the live instances see it."""

    priority: Priority
    kind: str = Field(examples=["rabbitmq"])
    address: str | None = Field(description="Without user and password; null: the database.")
    instance_count: int
    away_count: int = Field(description="How many instances get no answer from it.")


class LeaseProviderStatus(BaseModel):
    """What decides about leaders beside the database, as the live schedulers see it."""

    kind: Literal["etcd", "redis"]
    address: str = Field(description="Without user and password.")
    instance_count: int
    away_count: int = Field(description="How many schedulers get no answer from it.")


class WorkersStatus(BaseModel):
    """How many live workers the cluster has."""

    taking_work: int
    draining: int = Field(description="They finish what they run, and claim nothing more.")


class ReplicaDocument(ApiDocument):
    """The replica that lists and history are read from."""

    is_away: bool
    lag_seconds: float | None = Field(description="How far it is behind the primary; null: not known.")


class StatusDocument(ApiDocument):
    """How a host stands, at a glance."""

    now: datetime = Field(description="The database's time, which is the cluster's.")
    leaders: list[LeaderDocument]
    schedules: ScheduleCounts
    executions: ExecutionCounts
    queues: list[QueueDocument]
    next_fires: list[NextFireDocument]
    recent_failures: list[FailureDocument]
    overdue: OverdueDocument
    transports: list[TransportStatus] = Field(description="Empty: all through the database.")
    lease_providers: list[LeaseProviderStatus] = Field(description="Empty: the database alone.")
    unknown_tasks: list[UnknownTaskDocument] = Field(description="The first 20, in order of name.")
    unserved_queues: list[UnservedQueueDocument] = Field(description="The first 20, in order of name.")
    workers: WorkersStatus
    event_groups: list[EventGroupDocument] = Field(
        description="Groups of consumers that are behind or abandoned: the first 20, in the operator's host."
    )
    event_relays: list[EventRelayDocument] = Field(
        description="Relays that are behind or abandoned, or whose broker refuses topics; as above."
    )
    stale: bool = Field(description="The primary database is away: this is what a replica last heard of it.")
    replica: ReplicaDocument | None = Field(description="Null: there is none.")


def _replica_document(watch: ReplicaWatch | None) -> dict[str, Any] | None:
    if watch is None:
        return None
    return {"is_away": watch.standing.is_replica_away, "lag_seconds": watch.standing.lag_s}


def leader_document(leader: LeaderRecord) -> dict[str, Any]:
    return {
        "shard": leader.shard,
        "instance_id": leader.instance_id,
        "epoch": leader.epoch,
        "heartbeat_age_seconds": leader.heartbeat_age_s,
        "is_fresh": leader.is_fresh,
    }


def _status_document(
    found: Overview, queues: Sequence[QueueRecord], transports: Sequence[TransportRecord]
) -> dict[str, Any]:
    return {
        "now": found.now,
        "leaders": [leader_document(leader) for leader in found.leaders],
        "schedules": asdict(found.schedules),
        "executions": {
            "by_status": found.executions.by_status,
            "held": found.executions.held,
            "ended_badly_24h": found.ended_badly.count,
            "is_capped": found.executions.is_capped or found.ended_badly.is_capped,
        },
        "queues": [queue_document(queue) for queue in queues],
        "next_fires": [asdict(each) for each in found.next_fires],
        "recent_failures": [asdict(each) for each in found.recent_failures],
        "overdue": asdict(found.overdue),
        "transports": [asdict(each) for each in transports],
        "unknown_tasks": [asdict(each) for each in found.unknown_tasks],
        "unserved_queues": [asdict(each) for each in found.unserved_queues],
    }


def outlook_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix=API, route_class=GatedRoute)

    async def _hash_key(host_id: UUID, asked: PreviewAsked) -> str | None:
        """Return the key from which `H` is computed once the schedule is saved. None: not known."""
        if asked.schedule_id is not None:
            return hash_key(asked.schedule_id)
        if asked.name is None:
            return None
        # The key of a schedule that was renamed, or created by an older version, does not follow its name.
        known = await Schedules(services.database).find(host_id, asked.name)
        return hash_key_of_name(host_id, asked.name) if known is None else hash_key(known.schedule_id)

    @router.post(
        "/schedules/preview",
        tags=["schedules"],
        summary="Say when a trigger would fire",
        response_model=PreviewDocument,
        openapi_extra=takes(PreviewAsked),
    )
    async def preview_trigger(caller: Caller, body: JsonBody) -> Response:
        """In words, its next times, and what its author may not have thought of. Stores nothing."""
        asked = parse(PreviewAsked, body)
        book = await book_of(services, caller.host_id, asked.calendars)
        _require_known(asked.calendars, {name for _host_id, name in book})
        try:
            # In a thread, because computing the holidays of many countries takes seconds.
            found = await asyncio.to_thread(
                preview,
                asked.trigger,
                from_ts=asked.from_ts or services.now(),
                n=asked.n,
                dst=asked.dst,
                window=asked.window,
                start_ts=asked.start_ts,
                end_ts=asked.end_ts,
                calendars=tuple(book.values()),
                jitter_seconds=asked.jitter_seconds,
                key=await _hash_key(caller.host_id, asked),
            )
        except InvalidError as error:
            found = _of_none(asked, error)
        return answer(preview_document(found))

    @router.get("/status", tags=["cluster"], summary="How things stand", response_model=StatusDocument)
    async def read_status(caller: Caller) -> Response:
        """Leaders, counts, queues, what is next, what failed, what is overdue. Counts end at a cap, and say
        so."""
        if services.kept is None:
            return await status_of(caller.host_id)

        async def make() -> bytes:
            return bytes((await status_of(caller.host_id)).body)

        document = await services.kept.get(f"status:{caller.host_id}", make, may_keep=lambda: not is_stale())
        return Response(document, media_type="application/json")

    async def status_of(host_id: UUID) -> Response:
        found = await Overviews(services.database).of_host(host_id, ttl_s=services.lease_ttl_s)
        queues = await Queues(services.database).page(host_id, limit=MAX_QUEUES)
        transports = await RegistryList(services.database).transports()
        lease_providers = await RegistryList(services.database).lease_providers()
        return answer(
            {
                **_status_document(found, queues, transports),
                "lease_providers": [asdict(each) for each in lease_providers],
                "workers": asdict(await RegistryList(services.database).worker_counts()),
                **await readers_of(host_id),
                "stale": is_stale(),
                "replica": _replica_document(services.replica),
            }
        )

    async def readers_of(host_id: UUID) -> dict[str, Any]:
        """Return the groups and relays with problems, only for the operator's host: they read all events."""
        if host_id != DEFAULT_HOST_ID:
            return not_well((), ())
        admin = EventAdmin(services.database)
        return not_well(await admin.groups(), await admin.relays())

    def is_stale() -> bool:
        watch = services.replica
        return watch is not None and watch.standing.is_primary_away and source() is Source.REPLICA

    return router

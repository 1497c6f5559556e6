"""Routes for operators: read the cluster, drain and resume instances, change the number of shards."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, Field

from foliot.api.access.gate import Caller, GatedRoute, Writer
from foliot.api.api_document import ApiDocument
from foliot.api.http.json_response import answer
from foliot.api.http.request_body import Form, JsonBody, parse, parse_optional, takes
from foliot.api.routes.executions import Because
from foliot.api.routes.outlook import (
    LeaderDocument,
    LeaseProviderStatus,
    OverdueDocument,
    UnknownTaskDocument,
    UnservedQueueDocument,
    leader_document,
)
from foliot.api.routes.registry import InstanceDocument, instance_document
from foliot.api.services import API, Services
from foliot.queries.overview import Overviews
from foliot.queries.registry_list import RegistryList

MAX_SHARDS = 1024
MAX_INSTANCES = 500

InstanceId = Annotated[str, Path(max_length=255, pattern=r"^[A-Za-z0-9._-]+$")]


class ClusterDocument(ApiDocument):
    """Who leads what, who is there, and what is wrong."""

    lease_providers: list[LeaseProviderStatus] = Field(
        description="What decides about leaders beside the database; empty: nothing."
    )
    shards: list[LeaderDocument] = Field(description="In order of their numbers.")
    instances: list[InstanceDocument]
    overdue: OverdueDocument
    unknown_tasks: list[UnknownTaskDocument]
    unserved_queues: list[UnservedQueueDocument]


class ReshardAsked(Form):
    """How many shards there are to be."""

    shards: int = Field(ge=1, le=MAX_SHARDS, strict=True)
    reason: str | None = Field(default=None, max_length=1000)


class Resharded(BaseModel):
    shards: int
    shards_before: int


def cluster_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix=API, route_class=GatedRoute, tags=["cluster"])
    commands = services.commands.cluster

    @router.get("/cluster", summary="Read the cluster", response_model=ClusterDocument)
    async def read_cluster(caller: Caller) -> Response:
        """Shards and instances are of all hosts; what is overdue or has no worker is of the caller's host."""
        overview = await Overviews(services.database).of_host(caller.host_id, ttl_s=services.lease_ttl_s)
        instances = await RegistryList(services.database).instances(
            lease_ttl_s=services.lease_ttl_s, limit=MAX_INSTANCES
        )
        lease_providers = await RegistryList(services.database).lease_providers()
        return answer(
            {
                "lease_providers": [asdict(each) for each in lease_providers],
                "shards": [leader_document(leader) for leader in overview.leaders],
                "instances": [instance_document(instance) for instance in instances],
                "overdue": asdict(overview.overdue),
                "unknown_tasks": [asdict(each) for each in overview.unknown_tasks],
                "unserved_queues": [asdict(each) for each in overview.unserved_queues],
            }
        )

    @router.post(
        "/cluster/reshard",
        summary="Change the number of shards",
        response_model=Resharded,
        openapi_extra=takes(ReshardAsked, example={"shards": 8}),
    )
    async def reshard(author: Writer, body: JsonBody) -> Response:
        """While everything runs: all leases end in one transaction, and schedulers share out the new shards.
        Every due time is still decided exactly once, and no schedule is rewritten."""
        asked = parse(ReshardAsked, body)
        before = await commands.reshard(asked.shards, author.because(asked.reason))
        return answer({"shards": asked.shards, "shards_before": before})

    @router.post(
        "/instances/{instance_id}/drain",
        summary="Drain an instance",
        response_model=InstanceDocument,
        openapi_extra=takes(Because, is_required=False),
    )
    async def drain(instance_id: InstanceId, author: Writer, body: JsonBody) -> Response:
        """Its worker claims no more and finishes what runs; its scheduler hands its shards over, as soon as
        there is another that could lead them. It goes on draining until it is resumed, or ends."""
        because = author.because(parse_optional(Because, body).reason)
        await commands.drain(instance_id, because)
        return await _read(services, instance_id)

    @router.post(
        "/instances/{instance_id}/resume",
        summary="Let an instance go on",
        response_model=InstanceDocument,
        openapi_extra=takes(Because, is_required=False),
    )
    async def resume(instance_id: InstanceId, author: Writer, body: JsonBody) -> Response:
        because = author.because(parse_optional(Because, body).reason)
        await commands.drain(instance_id, because, is_draining=False)
        return await _read(services, instance_id)

    return router


async def _read(services: Services, instance_id: str) -> Response:
    found = await RegistryList(services.database).instance(instance_id, lease_ttl_s=services.lease_ttl_s)
    document: dict[str, Any] = instance_document(found)
    return answer(document)

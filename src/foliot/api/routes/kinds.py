"""The route that lists the kinds of triggers and targets, with JSON schemas to build forms from."""

from functools import cache
from typing import Any, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from foliot.api.access.gate import GatedRoute
from foliot.api.http.json_response import answer
from foliot.api.lists import ListOf
from foliot.api.services import API
from foliot.model.kind import TARGETS, TRIGGERS


class KindDocument(BaseModel):
    """A kind of trigger or target."""

    model_config = ConfigDict(title="Kind", populate_by_name=True)

    family: Literal["trigger", "target"]
    name: str = Field(examples=["cron"])
    display_name: str = Field(examples=["Cron"])
    description: str
    is_available: bool = Field(description="Whether this version can carry it out.")
    json_schema: dict[str, Any] = Field(alias="schema", description="Its JSON schema.")


@cache
def _kinds() -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "family": family,
            "name": name,
            "display_name": kind.display_name,
            "description": " ".join((kind.__doc__ or "").split()),
            "schema": kind.model_json_schema(),
        }
        for family, kinds in (("trigger", TRIGGERS), ("target", TARGETS))
        for name, kind in kinds.items()
    )


def kind_routes(available_targets: frozenset[str]) -> APIRouter:
    router = APIRouter(prefix=API, tags=["schedules"], route_class=GatedRoute)

    @router.get(
        "/kinds", summary="List the kinds of triggers and targets", response_model=ListOf[KindDocument]
    )
    async def list_kinds() -> Response:
        items = [
            {**kind, "is_available": kind["family"] == "trigger" or kind["name"] in available_targets}
            for kind in _kinds()
        ]
        return answer({"items": items, "next_page_token": ""})

    return router

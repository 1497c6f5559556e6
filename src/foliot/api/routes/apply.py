"""The route `apply`: synchronise schedules with a set of files."""

import asyncio
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from foliot.api.access.gate import Caller, GatedRoute, Writer
from foliot.api.api_document import ApiDocument
from foliot.api.http.json_response import answer
from foliot.api.http.request_body import Form, JsonBody, parse, takes
from foliot.api.services import API, Services
from foliot.commands.apply import AppliedStep, ApplyAction, ApplyStep, count_of
from foliot.model.error_codes import verdict_on
from foliot.model.errors import ConflictError, Problem
from foliot.model.schedule import ScheduleSpec
from foliot.planning.document_diff import Difference

MAX_SCHEDULES = 5000


class Apply(Form):
    """What the files say."""

    schedules: Annotated[tuple[ScheduleSpec, ...], Field(max_length=MAX_SCHEDULES)]
    source: str = Field(
        default="default",
        min_length=1,
        max_length=126,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        description="Names this set of files: it prunes only what is its own.",
    )
    prune: bool = Field(default=False, description="Delete what is this source's and no longer in the files.")
    adopt: bool = Field(default=False, description="Take over schedules that code or another source manages.")
    dry_run: bool = Field(default=False, description="Only show the plan.")
    reason: str | None = Field(default=None, max_length=1000)


class ChangeDocument(ApiDocument):
    """A place in which two definitions differ."""

    pointer: str = Field(examples=["/trigger/expression"])
    before: Any
    after: Any


class ApplyItem(BaseModel):
    """What becomes of one schedule."""

    name: str
    action: ApplyAction
    schedule_id: UUID | None
    changes: list[ChangeDocument]
    detail: str
    error: str | None = Field(description="Why it was not done after all; null: it was.")
    code: str | None


class Applied(BaseModel):
    """A plan, and what came of it."""

    dry_run: bool
    counts: dict[ApplyAction, int]
    items: list[ApplyItem]


def change_documents(changes: Any) -> list[dict[str, Any]]:
    return [_change_document(each) for each in changes]


def _change_document(change: Difference) -> dict[str, Any]:
    return {"pointer": change.pointer, "before": change.before, "after": change.after}


def _item(step: ApplyStep, done: AppliedStep | None = None) -> dict[str, Any]:
    error = None if done is None else done.error
    return {
        "name": step.name,
        "action": step.action,
        "schedule_id": step.schedule_id if done is None else done.schedule_id,
        "changes": change_documents(step.changes),
        "detail": step.detail,
        "error": None if error is None else str(error),
        "code": None if error is None else verdict_on(error).code,
    }


def apply_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix=f"{API}/schedules", tags=["schedules"], route_class=GatedRoute)
    commands = services.commands.apply

    @router.post(
        "/apply",
        summary="Bring schedules in step with files",
        response_model=Applied,
        openapi_extra=takes(Apply),
    )
    async def apply(caller: Caller, author: Writer, body: JsonBody) -> Response:
        """Everything is checked before anything is changed; a schedule in other hands is a 409, and changes
        nothing. Each schedule is changed by itself: what was interrupted is finished by applying again."""
        # In a thread, because parsing thousands of schedules would block other requests.
        asked = await asyncio.to_thread(parse, Apply, body)
        author = author.because(asked.reason)
        steps = await commands.plan(
            caller.host_id,
            asked.schedules,
            source=asked.source,
            author=author,
            prunes=asked.prune,
            adopts=asked.adopt,
        )
        if asked.dry_run:
            return answer(
                {"dry_run": True, "counts": count_of(steps), "items": [_item(each) for each in steps]}
            )
        _refuse_conflicts(steps)
        done = await commands.carry_out(caller.host_id, steps, source=asked.source, author=author)
        items = [_item(each.step, each) for each in done]
        return answer({"dry_run": False, "counts": count_of(steps), "items": items})

    return router


def _refuse_conflicts(steps: list[ApplyStep]) -> None:
    found = [
        Problem(f"/schedules/{index}/name", "managed_by_others", f'"{step.name}" {step.detail}')
        for index, step in enumerate(steps)
        if step.action is ApplyAction.CONFLICT
    ]
    if found:
        raise ConflictError(found)

"""Routes for executions: list, read, retry, cancel, attempts and logs."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from foliot.api.access.gate import Caller, GatedRoute, Writer
from foliot.api.api_document import ApiDocument
from foliot.api.dependencies import made_of_query
from foliot.api.documents import ExecutionDocument, execution_document
from foliot.api.execution_filters import ExecutionQuery, list_executions
from foliot.api.http.json_response import answer
from foliot.api.http.request_body import Form, JsonBody, parse_optional, takes
from foliot.api.lists import ListOf
from foliot.api.paging import Paged, bad_token, next_token
from foliot.api.services import API, Services
from foliot.commands.executions_sql import Executions
from foliot.model.execution import AttemptRecord, LoggedLine, Status


class Because(Form):
    """Why."""

    reason: str | None = Field(default=None, max_length=1000)


class AttemptDocument(ApiDocument):
    """One try at an execution."""

    attempt: int
    status: Status
    worker_id: str | None
    started_ts: datetime | None
    ended_ts: datetime | None
    duration_seconds: float | None
    error: str | None
    traceback: str | None


class LineDocument(BaseModel):
    """A line that the code logged while it ran."""

    model_config = ConfigDict(title="LoggedLine")

    attempt: int
    line: int
    logged_ts: datetime
    level: str
    logger: str
    message: str


class LinePage(ListOf[LineDocument]):
    """A page of what was logged."""

    follow_token: str = Field(description="`page_token` for what is logged from here on.")


def _attempt_document(attempt: AttemptRecord) -> dict[str, Any]:
    return {name: getattr(attempt, name) for name in AttemptDocument.model_fields}


def _line_document(line: LoggedLine) -> dict[str, Any]:
    return {name: getattr(line, name) for name in LineDocument.model_fields}


def execution_routes(services: Services) -> APIRouter:
    router = APIRouter(prefix=f"{API}/executions", tags=["executions"], route_class=GatedRoute)
    database, commands = services.database, services.commands.executions

    @router.get("", summary="List executions", response_model=ListOf[ExecutionDocument])
    async def list_all(
        caller: Caller,
        page: Paged,
        query: Annotated[ExecutionQuery, Depends(made_of_query(ExecutionQuery))],
        schedule_id: Annotated[list[UUID] | None, Query(max_length=50)] = None,
    ) -> Response:
        """Latest first: by when they were made, or, for given schedules, by their fire times."""
        wanted = query.filter_for(caller.host_id, schedule_id or ())
        return await list_executions(services, wanted, page)

    @router.get("/{execution_id}", summary="Read an execution", response_model=ExecutionDocument)
    async def read(execution_id: UUID, caller: Caller) -> Response:
        return answer(
            execution_document(await Executions(database).get(execution_id, host_id=caller.host_id))
        )

    @router.post(
        "/{execution_id}/retry",
        status_code=202,
        summary="Try an execution again",
        response_model=ExecutionDocument,
        openapi_extra=takes(Because, is_required=False),
    )
    async def retry(execution_id: UUID, caller: Caller, author: Writer, body: JsonBody) -> Response:
        """Run the execution again, with all of its attempts. 409 if it succeeded or was skipped."""
        asked = parse_optional(Because, body)
        retried = await commands.retry(execution_id, author.because(asked.reason), host_id=caller.host_id)
        return answer(execution_document(retried), 202)

    @router.post(
        "/{execution_id}/cancel",
        status_code=202,
        summary="Cancel an execution",
        response_model=ExecutionDocument,
        openapi_extra=takes(Because, is_required=False),
    )
    async def cancel(execution_id: UUID, caller: Caller, author: Writer, body: JsonBody) -> Response:
        """What waits ends at once; what runs is stopped within a second. What has ended is a 409."""
        asked = parse_optional(Because, body)
        cancelled = await commands.cancel(execution_id, author.because(asked.reason), host_id=caller.host_id)
        return answer(execution_document(cancelled), 202)

    @router.get(
        "/{execution_id}/attempts",
        summary="List the attempts of an execution",
        response_model=ListOf[AttemptDocument],
    )
    async def list_attempts(execution_id: UUID, caller: Caller) -> Response:
        """Every try at it, in order, also the one under way."""
        attempts = await Executions(database).attempts(execution_id, host_id=caller.host_id)
        return answer({"items": [_attempt_document(each) for each in attempts], "next_page_token": ""})

    @router.get(
        "/{execution_id}/logs",
        summary="Read what an execution logged",
        response_model=LinePage,
    )
    async def read_logs(execution_id: UUID, caller: Caller, page: Paged) -> Response:
        """In order. With `follow_token` as `page_token` come the lines that were logged since."""
        position = page.position()
        if position is not None and (len(position) != 2 or not all(type(part) is int for part in position)):
            raise bad_token()
        after = None if position is None else (position[0], position[1])
        lines = await Executions(database).logs(
            execution_id, after=after, limit=page.limit, host_id=caller.host_id
        )
        shown = lines[: page.page_size]
        last = next_token([shown[-1].attempt, shown[-1].line]) if shown else page.page_token
        document = {
            "items": [_line_document(line) for line in shown],
            "next_page_token": last if len(lines) > page.page_size else "",
            "follow_token": last,
        }
        return answer(document)

    return router

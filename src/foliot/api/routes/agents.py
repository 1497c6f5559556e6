"""Routes for agents that answered 202: they report progress and the result later.

A token proves that the agent received the attempt. Tokens of earlier attempts are refused.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

from fastapi import APIRouter, Depends, Header, HTTPException, Request, Response
from pydantic import BaseModel, Field, ValidationError

from foliot.access.callback_tokens import CallbackTokens
from foliot.api.access.gate import GatedRoute
from foliot.api.http.error_responses import PROBLEM_JSON
from foliot.api.http.request_body import Form
from foliot.commands.agents import AgentCommands
from foliot.commands.agents_sql import RunningAttempt
from foliot.model.errors import BadTokenError, InvalidError
from foliot.model.execution import Status
from foliot.model.schedule import problems_of

MAX_BYTES = 256 * 1024

M = TypeVar("M", bound=BaseModel)
Tokens = Callable[[], Awaitable[CallbackTokens]]


class Progress(Form):
    """How far the work has come."""

    fraction: float = Field(ge=0, le=1, examples=[0.5])
    text: str = Field(default="", max_length=20_000, examples=["half way"])


class Completion(Form):
    """How the work ended."""

    status: Literal["success", "failed"]
    result: Any = None
    error: str | None = Field(default=None, max_length=20_000)


def _token(
    execution_id: UUID,
    authorization: Annotated[str | None, Header()] = None,
    x_foliot_token: Annotated[str | None, Header()] = None,
) -> str:
    if x_foliot_token:
        return x_foliot_token
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise BadTokenError(execution_id)
    return token.strip()


async def _read_body(request: Request) -> bytes:
    """Read the body, up to MAX_BYTES. Call it only once the token has been checked."""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_BYTES:
            raise HTTPException(413, f"the body is larger than {MAX_BYTES} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


Token = Annotated[str, Depends(_token)]

_RESPONSES: dict[int | str, dict[str, Any]] = {
    code: {"description": text, "content": {PROBLEM_JSON: {}}}
    for code, text in {
        401: "The token is missing, or not for this execution and attempt",
        404: "There is no such execution",
        409: "That attempt does not run any more",
        413: "The body is too large",
        422: "The body is not as it should be",
        503: "The database can't be reached now",
    }.items()
}


def _body_of(model: type[BaseModel]) -> dict[str, Any]:
    """Describe a body for the OpenAPI document. The routes read it themselves, to limit its size."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


def agent_routes(agents: AgentCommands, tokens: Tokens) -> APIRouter:
    router = APIRouter(prefix="/api/v1/executions/{execution_id}", tags=["agents"], route_class=GatedRoute)

    # A dependency, so that the token is checked before any of the body is read or parsed.
    async def attempt_of(execution_id: UUID, token: Token) -> RunningAttempt:
        return await agents.authenticate(await tokens(), token, execution_id)

    @router.post(
        "/progress",
        status_code=204,
        responses=_RESPONSES,
        summary="Say how far the work is",
        openapi_extra=_body_of(Progress),
    )
    async def progress(attempt: Annotated[RunningAttempt, Depends(attempt_of)], request: Request) -> Response:
        report = _parsed(Progress, await _read_body(request))
        await agents.progress(attempt, report.fraction, report.text)
        return Response(status_code=204)

    @router.post(
        "/complete",
        responses=_RESPONSES,
        summary="Say how the work ended",
        openapi_extra=_body_of(Completion),
    )
    async def complete(
        attempt: Annotated[RunningAttempt, Depends(attempt_of)], request: Request
    ) -> dict[str, str]:
        report = _parsed(Completion, await _read_body(request))
        status = await agents.complete(
            attempt, status=Status(report.status), result=report.result, error=report.error
        )
        return {"execution_id": str(attempt.claim.execution_id), "status": status.value}

    return router


def _parsed(model: type[M], body: bytes) -> M:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise InvalidError(problems_of(error)) from None

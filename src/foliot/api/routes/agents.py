"""What an agent that answered 202 says later: how far it is, and how it ended.

It proves by a token that the attempt was given to it; a token of an earlier attempt is worth nothing.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

from fastapi import APIRouter, Depends, Header, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from foliot.api.errors import PROBLEM_JSON
from foliot.api.gate import GatedRoute
from foliot.model.errors import BadTokenError, InvalidError
from foliot.model.execution import Status
from foliot.model.schedule import problems_of
from foliot.security.callback import CallbackTokens
from foliot.steering.agents import AgentSteering

MOST_BYTES = 256 * 1024

M = TypeVar("M", bound=BaseModel)
Tokens = Callable[[], Awaitable[CallbackTokens]]


class Progress(BaseModel):
    """How far the work has come."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    fraction: float = Field(ge=0, le=1, examples=[0.5])
    text: str = Field(default="", max_length=20_000, examples=["half way"])


class Completion(BaseModel):
    """How the work ended."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

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


async def _body(request: Request) -> bytes:
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MOST_BYTES:
            raise HTTPException(413, f"the body is larger than {MOST_BYTES} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


Token = Annotated[str, Depends(_token)]
Body = Annotated[bytes, Depends(_body)]

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
    """For the OpenAPI: the body is read by ourselves, to be able to bound it."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


def agent_routes(agents: AgentSteering, tokens: Tokens) -> APIRouter:
    router = APIRouter(prefix="/api/v1/executions/{execution_id}", tags=["agents"], route_class=GatedRoute)

    @router.post(
        "/progress",
        status_code=204,
        responses=_RESPONSES,
        summary="Say how far the work is",
        openapi_extra=_body_of(Progress),
    )
    async def progress(execution_id: UUID, token: Token, body: Body) -> Response:
        told = _parsed(Progress, body)
        await agents.progress(await tokens(), token, execution_id, told.fraction, told.text)
        return Response(status_code=204)

    @router.post(
        "/complete",
        responses=_RESPONSES,
        summary="Say how the work ended",
        openapi_extra=_body_of(Completion),
    )
    async def complete(execution_id: UUID, token: Token, body: Body) -> dict[str, str]:
        told = _parsed(Completion, body)
        status = await agents.complete(
            await tokens(),
            token,
            execution_id,
            status=Status(told.status),
            result=told.result,
            error=told.error,
        )
        return {"execution_id": str(execution_id), "status": status.value}

    return router


def _parsed(model: type[M], body: bytes) -> M:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise InvalidError(problems_of(error)) from None

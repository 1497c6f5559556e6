"""Errors as clients see them: RFC 9457 problem documents, and one table from our errors to HTTP's codes."""

import secrets
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from foliot.model.calendar import CalendarInUseError
from foliot.model.errors import (
    BadTokenError,
    DatabaseUnreachableError,
    FencedError,
    FoliotError,
    IllegalTransitionError,
    InvalidError,
    NameTakenError,
    NotFoundError,
    Problem,
    SchemaError,
    StaleVersionError,
)

PROBLEM_JSON = "application/problem+json"
RETRY_AFTER_S = 2

HTTP_OF: dict[type[Exception], tuple[HTTPStatus, str]] = {
    BadTokenError: (HTTPStatus.UNAUTHORIZED, "bad_token"),
    InvalidError: (HTTPStatus.UNPROCESSABLE_ENTITY, "invalid"),
    NotFoundError: (HTTPStatus.NOT_FOUND, "not_found"),
    NameTakenError: (HTTPStatus.CONFLICT, "name_taken"),
    StaleVersionError: (HTTPStatus.PRECONDITION_FAILED, "stale_version"),
    CalendarInUseError: (HTTPStatus.CONFLICT, "calendar_in_use"),
    IllegalTransitionError: (HTTPStatus.CONFLICT, "illegal_transition"),
    FencedError: (HTTPStatus.CONFLICT, "fenced"),
    DatabaseUnreachableError: (HTTPStatus.SERVICE_UNAVAILABLE, "database_unreachable"),
    SchemaError: (HTTPStatus.SERVICE_UNAVAILABLE, "schema_not_current"),
    FoliotError: (HTTPStatus.BAD_REQUEST, "refused"),
}
"""The most specific class of an error decides."""

_CODES = {
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
}


def install(app: FastAPI) -> None:
    """Answer every error of ours, of FastAPI and of Starlette in one form."""
    app.add_exception_handler(FoliotError, _of_foliot)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)


def problem(
    request: Request,
    status: int,
    code: str,
    detail: str,
    errors: Sequence[Problem] = (),
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    document: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        "request_id": request_id_of(request),
    }
    if errors:
        document["errors"] = [
            {"pointer": each.pointer, "code": each.code, "detail": each.detail, "hint": each.hint}
            for each in errors
        ]
    return JSONResponse(document, status, headers, media_type=PROBLEM_JSON)


def request_id_of(request: Request) -> str:
    known = getattr(request.state, "request_id", None)
    if known is None:
        known = request.state.request_id = secrets.token_hex(8)
    return str(known)


async def _of_foliot(request: Request, error: Exception) -> JSONResponse:
    status, code = next(HTTP_OF[kind] for kind in type(error).__mro__ if kind in HTTP_OF)
    found = error.problems if isinstance(error, InvalidError) else ()
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status is HTTPStatus.SERVICE_UNAVAILABLE else None
    return problem(request, status, code, str(error), found, headers)


async def _of_validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    # Once each: what several parameters depend on is checked for each of them.
    found = list(dict.fromkeys(_problem_of(item) for item in error.errors()))
    return problem(request, 422, "invalid", "; ".join(str(each) for each in found), found)


def _problem_of(item: Any) -> Problem:
    where = [str(part) for part in item["loc"]]
    # A body is told by a pointer into it, what stands elsewhere by its name.
    path = where[1:] if where and where[0] == "body" else where
    return Problem("/" + "/".join(path) if path else "", item["type"], str(item["msg"]))


async def _of_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "refused")
    headers = dict(error.headers) if error.headers else None
    return problem(request, error.status_code, code, str(error.detail), headers=headers)

"""Error responses: RFC 9457 problem documents, for errors of Foliot, FastAPI and Starlette alike."""

import math
import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from foliot.api.access.access_table import methods_at
from foliot.api.http.paths import path_of
from foliot.model.error_codes import verdict_on
from foliot.model.errors import FoliotError, InvalidError, Problem, StaleVersionError
from foliot.model.schedule import pointer_to

PROBLEM_JSON = "application/problem+json"
RETRY_AFTER_S = 2

_CODES = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
}


def install(app: FastAPI) -> None:
    """Register handlers that return errors of Foliot, FastAPI and Starlette as problem documents."""
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
    more: Mapping[str, Any] | None = None,
) -> JSONResponse:
    document: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        "request_id": request_id_of(request),
        **(more or {}),
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
    assert isinstance(error, FoliotError)
    verdict = verdict_on(error)
    found = error.problems if isinstance(error, InvalidError) else ()
    codes = {each.code for each in found}
    code = codes.pop() if len(codes) == 1 and verdict.code == "invalid" else verdict.code
    headers: dict[str, str] = {}
    more: dict[str, Any] = {}
    if verdict.http == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    elif verdict.http == HTTPStatus.SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(RETRY_AFTER_S)
    retry_after_s = getattr(error, "retry_after_s", None)
    if retry_after_s is not None:
        headers["Retry-After"] = str(max(1, math.ceil(retry_after_s)))
    if isinstance(error, StaleVersionError):
        headers["ETag"] = f'"{error.actual}"'
        more["current_version"] = error.actual
    # Clients don't get the database's own messages: these belong in the log.
    detail = _DETAIL_OF.get(verdict.code, str(error))
    return problem(request, verdict.http, code, detail, found, headers, more)


_DETAIL_OF = {
    "database_unreachable": "the database can't be reached now; try again in a moment",
    "database_full": "the disk of the database is full, nothing was written; try again when there is room",
    # One text for every fault of a credential: anybody can read it, so it must not say which fault.
    "unauthenticated": "needs a valid credential: Authorization: Bearer <api key or token>",
}


async def _of_validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    places = {item["loc"][0] for item in error.errors() if item["loc"]}
    if "path" in places:
        # A malformed id in the path is a 404: nothing can have it.
        return problem(request, 404, "not_found", "there is nothing at this address")
    # Remove duplicates: a dependency that several parameters share reports its error for each of them.
    found = list(dict.fromkeys(_problem_of(item) for item in error.errors()))
    return problem(request, 422, "invalid", "; ".join(str(each) for each in found), found)


def _problem_of(item: Any) -> Problem:
    return Problem(pointer_to(item["loc"][1:]), item["type"], str(item["msg"]))


async def _of_http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "refused")
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(methods_at(path_of(request.scope)))
    return problem(request, error.status_code, code, str(error.detail), headers=headers)

"""The OpenAPI document: what FastAPI makes of the routes, and what it can't know of them.

Added are the models of bodies, who may call each route, and the errors that every route can answer with.
"""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from foliot.api.access import ACCESS, Access, Home, Open
from foliot.api.body import BODIES
from foliot.api.errors import PROBLEM_JSON
from foliot.security.principal import Role
from foliot.version import __version__

_DESCRIPTION = """\
Schedules say when and what; executions are what became of every due time.

**Credentials**: `Authorization: Bearer` with an API key or a JWT; a browser that has signed in has a cookie,
and sends `X-CSRF-Token` (from `GET /api/v1/me`) with what changes something. A credential belongs to one
host, and what belongs to another is not found.

**Lists** give `items` and `next_page_token`; filters given several times mean any of the values, unknown ones
are refused.

**Changes**: schedules have an `ETag`; with `If-Match` a change that was made for another version is a 412.
`Idempotency-Key` on a POST makes it safe to repeat for 24 hours: the same answer, without its body if that
was larger than 16 KiB. Nothing is kept for `preview`. Beyond 100,000 keys of a credential a new one is a 429
with code `too_many_idempotency_keys`. `X-Foliot-Reason` says why, for the audit.

**Errors** are `application/problem+json` (RFC 9457) with `code`, `detail`, `request_id`, and `errors` that
name each field by a JSON pointer.
"""

_PROBLEM = {
    "type": "object",
    "title": "Problem",
    "description": "What went wrong (RFC 9457).",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "For programs."},
        "detail": {"type": "string", "description": "For people: what is wrong, and what would be right."},
        "request_id": {"type": "string"},
        "current_version": {"type": "integer", "description": "With a 412: the version that there is."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "pointer": {"type": "string", "description": "A JSON pointer into the body."},
                    "code": {"type": "string"},
                    "detail": {"type": "string"},
                    "hint": {"type": "string"},
                },
                "required": ["pointer", "code", "detail", "hint"],
            },
        },
    },
    "required": ["type", "title", "status", "code", "detail", "request_id"],
    "examples": [
        {
            "type": "about:blank",
            "title": "Unprocessable Content",
            "status": 422,
            "code": "timezone",
            "detail": 'trigger.timezone: there is no time zone "Europe/Berln" (did you mean Europe/Berlin?)',
            "request_id": "9f0c3d1e5a7b2468",
            "errors": [
                {
                    "pointer": "/trigger/timezone",
                    "code": "timezone",
                    "detail": 'there is no time zone "Europe/Berln"',
                    "hint": "did you mean Europe/Berlin?",
                }
            ],
        }
    ],
}

_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key or a JWT."},
    "session": {"type": "apiKey", "in": "cookie", "name": "foliot_session"},
}

_ALWAYS = {
    400: "A parameter is not known here, or the request can't be understood",
    422: "Something in the request is not as it should be; `errors` says what",
    503: "Not now: overloaded, starting, or the database can't be reached; `Retry-After` says when",
}
_WITH_CREDENTIALS = {
    401: "The credential is missing or not valid",
    403: "The credential does not allow this",
    429: "Too many requests; `Retry-After` says when",
}
_WITH_BODY = {
    409: "It is in conflict with what there is",
    413: "The body is too large",
    415: "The body is of a type that is not understood",
}


def install(app: FastAPI) -> None:
    """Serve the document at /openapi.json; it is made once, when it is first asked for."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _complete(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _complete(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(
        title="Foliot",
        version=__version__,
        description=_DESCRIPTION,
        routes=app.routes,
        openapi_version="3.1.0",
    )
    components = made.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    _, bodies = models_json_schema(
        [(model, "validation") for model in BODIES.values()], ref_template="#/components/schemas/{model}"
    )
    for name, schema in bodies.get("$defs", {}).items():
        schemas.setdefault(name, schema)
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = _PROBLEM
    components["securitySchemes"] = _SCHEMES
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            _describe(operation, method.upper(), path)
    return made


def _describe(operation: dict[str, Any], method: str, path: str) -> None:
    needed = ACCESS[method, path]
    asks = needed not in (Open.ANYBODY, Open.PROBE, Open.AGENT)
    if asks:
        operation["security"] = [{name: []} for name in _SCHEMES]
        told = f"Takes {_in_words(needed)}."
        operation["description"] = "\n\n".join(filter(None, (operation.get("description"), told)))
    if needed is Open.PROBE:
        operation["responses"].pop("422", None)
        return
    errors = dict(_ALWAYS)
    if asks:
        errors |= _WITH_CREDENTIALS
    elif needed is Open.ANYBODY:
        errors |= {401: _WITH_CREDENTIALS[401], 403: _WITH_CREDENTIALS[403], 429: _WITH_CREDENTIALS[429]}
    if "{" in path or (method == "DELETE" and asks):
        errors[404] = "There is no such thing, or it is another host's"
    if method != "GET":
        errors |= _WITH_BODY
    if any(parameter["name"].lower() == "if-match" for parameter in operation.get("parameters", [])):
        errors[412] = "Its version is another by now; `current_version` says which"
    answers = operation["responses"]
    answers.pop("422", None)
    for status, text in errors.items():
        answers.setdefault(str(status), _answer(text))


def _answer(text: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": text, "content": {PROBLEM_JSON: {"schema": schema}}}


def _in_words(needed: Access) -> str:
    if isinstance(needed, Home):
        return f"the role {needed.role.value} in the operator's host"
    if isinstance(needed, Role):
        return f"the role {needed.value}"
    return "the operator's own key" if needed is Open.KEY_HOLDER else "any credential"

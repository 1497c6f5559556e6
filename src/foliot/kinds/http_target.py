"""The `http` target, and the SDK's `http`. `http_runner.py` sends the requests."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, JsonValue, field_validator

from foliot.kinds.checking import checked
from foliot.kinds.target_protocol import RunnerContext, TargetRunner
from foliot.model.errors import Problem
from foliot.model.http_url import require_http_url
from foliot.model.kind import BaseTarget, CliOption

_HEADER_NAME = re.compile(r"^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}\Z")
_OWN_HEADERS = frozenset({"idempotency-key", "traceparent", "tracestate", "accept-encoding"})
_OWN_PREFIX = "x-foliot-"
_CONNECTION_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
MAX_HEADERS = 50
MAX_HEADER_LENGTH = 8 * 1024
MAX_HEADERS_LENGTH = 32 * 1024


class HttpTarget(BaseTarget):
    """A request to an HTTP agent. `${secret:name}` may stand in its URL, behind the host, in the values of
    its headers, and in any text of its body."""

    display_name: ClassVar = "HTTP agent"
    position: ClassVar = 2
    cli_options: ClassVar = (
        CliOption("--http", ("method", "url"), "METHOD URL", "Call an HTTP agent."),
        CliOption(
            "--header",
            ("headers",),
            "NAME:VALUE",
            "A header of the request. Repeatable.",
            "pairs",
            is_choice=False,
        ),
        CliOption("--body", ("body",), "JSON|@FILE", "The body of the request.", "json", is_choice=False),
    )

    kind: Literal["http"] = "http"
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] = "POST"
    url: str = Field(min_length=1, max_length=4000)
    headers: dict[str, str] = Field(default_factory=dict, max_length=MAX_HEADERS)
    body: JsonValue = None
    expected_status: (
        Annotated[tuple[Annotated[int, Field(ge=200, le=599)], ...], Field(min_length=1, max_length=100)]
        | None
    ) = None
    """What counts as success; left out, any 2xx."""

    _is_http = field_validator("url")(require_http_url)

    @field_validator("headers")
    @classmethod
    def _clean_headers(cls, value: dict[str, str]) -> dict[str, str]:
        seen: set[str] = set()
        for name, text in value.items():
            if not _HEADER_NAME.match(name):
                raise ValueError(f"{name[:200]!r} is not a header name")
            lowered = name.lower()
            if lowered in seen:
                raise ValueError(f"{name} must be given once, in whatever case")
            seen.add(lowered)
            if lowered in _OWN_HEADERS or lowered.startswith(_OWN_PREFIX):
                raise ValueError(f"{name} is set by Foliot")
            if lowered in _CONNECTION_HEADERS:
                raise ValueError(f"{name} belongs to the connection and can't be set")
            _require_header_value(name, text)
        if sum(len(name) + len(text) for name, text in value.items()) > MAX_HEADERS_LENGTH:
            raise ValueError(f"must have at most {MAX_HEADERS_LENGTH} characters in all")
        return value

    def describe(self) -> str:
        return f"{self.method} {self.url}"

    @classmethod
    def open_runner(cls, context: RunnerContext) -> TargetRunner:
        # Imported here: a process that only reads definitions needs no HTTP client.
        from foliot.kinds.http_runner import HttpRunner

        return HttpRunner(
            context.guard, context.secrets, context.clock, pool=context.http_pool, observer=context.observer
        )

    def check_arguments(self, args: Mapping[str, Any]) -> list[Problem]:  # noqa: ARG002
        if self.body is None or isinstance(self.body, dict):
            return []
        return [
            Problem(
                "/args", "no_arguments", "can't be joined with a body that is no object", "leave them out"
            )
        ]

    @property
    def agent_url(self) -> str:
        return self.url.partition("?")[0].partition("#")[0]


def http(
    url: str,
    *,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
    body: Any = None,
    expected_status: Sequence[int] | None = None,
) -> HttpTarget:
    """Return a target that sends a request to an HTTP agent, instead of running a task function."""
    return checked(
        HttpTarget,
        method=method,
        url=url,
        headers=dict(headers or {}),
        body=body,
        expected_status=None if expected_status is None else tuple(expected_status),
    )


def _require_header_value(name: str, text: str) -> None:
    if len(text) > MAX_HEADER_LENGTH:
        raise ValueError(f"the value of {name} must have at most {MAX_HEADER_LENGTH} characters")
    if has_control_characters(text):
        raise ValueError(f"the value of {name} must not contain line breaks or other control characters")


def has_control_characters(text: str) -> bool:
    """Whether a text is unsafe in a header: a line break in it would begin another header."""
    return any((ord(character) < 32 and character != "\t") or ord(character) == 127 for character in text)

"""What a schedule runs: the four kinds of target, as users write them."""

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, JsonValue, field_validator

from foliot.model.cloud_event import read_template
from foliot.model.document import Document

TaskName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z_][A-Za-z0-9_.:-]*$")]

SYSTEM_PREFIX = "foliot."
"""Prefix of Foliot's own maintenance tasks. The leader runs them; no worker can."""


class FunctionTarget(Document):
    """A registered task function, by name. Never a path: only what worker code registered can run."""

    kind: Literal["function"] = "function"
    name: TaskName
    args: dict[str, JsonValue] = Field(default_factory=dict)


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


class HttpTarget(Document):
    """A request to an HTTP agent. `${secret:name}` may stand in its URL, behind the host, in the values of
    its headers, and in any text of its body."""

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

    @field_validator("url")
    @classmethod
    def _plain_http(cls, value: str) -> str:
        if any(ord(character) <= 32 or ord(character) == 127 for character in value):
            raise ValueError("must not contain spaces or control characters")
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https"):
            raise ValueError("must start with http:// or https://")
        if "${" in parts.netloc:
            raise ValueError("must name its host and port literally; a secret may only stand behind them")
        if not parts.hostname:
            raise ValueError("must name a host")
        if "@" in parts.netloc:
            raise ValueError("must not carry a user or password; use a header with ${secret:name}")
        if "\\" in parts.netloc:
            raise ValueError("must not contain a backslash before the path")
        if parts.port == 0:
            raise ValueError("must not name port 0")
        return value

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


def _require_header_value(name: str, text: str) -> None:
    if len(text) > MAX_HEADER_LENGTH:
        raise ValueError(f"the value of {name} must have at most {MAX_HEADER_LENGTH} characters")
    if has_control_characters(text):
        raise ValueError(f"the value of {name} must not contain line breaks or other control characters")


def has_control_characters(text: str) -> bool:
    """Whether a text is unsafe in a header: a line break in it would begin another header."""
    return any((ord(character) < 32 and character != "\t") or ord(character) == 127 for character in text)


class EventTarget(Document):
    """An event, written to the outbox in the transaction that fires. `event_data` is its data, or the text
    of a CloudEvent, whose data, type, subject and extensions are kept."""

    kind: Literal["event"] = "event"
    event_topic: str = Field(min_length=1, max_length=126)
    event_type: str = Field(min_length=1, max_length=126)
    event_data: dict[str, JsonValue] | str = Field(default_factory=dict)

    @field_validator("event_topic", "event_type")
    @classmethod
    def _is_one_word(cls, value: str) -> str:
        if any(ord(character) <= 32 or ord(character) == 127 for character in value):
            raise ValueError("must not contain spaces or control characters")
        return value

    @field_validator("event_data")
    @classmethod
    def _is_event(cls, value: dict[str, JsonValue] | str) -> dict[str, JsonValue] | str:
        read_template(value)
        return value


class CeleryTarget(Document):
    """A task of an existing Celery application."""

    kind: Literal["celery"] = "celery"
    task: TaskName
    args: tuple[JsonValue, ...] = ()
    kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    queue: str | None = Field(default=None, min_length=1, max_length=126)


Target = Annotated[
    FunctionTarget | HttpTarget | EventTarget | CeleryTarget,
    Field(discriminator="kind"),
]

Arguments = dict[str, Any]

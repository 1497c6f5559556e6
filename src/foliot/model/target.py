"""What a schedule does when it fires: the four kinds of target, as users write them."""

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, JsonValue, field_validator

from foliot.model.trigger import Document

TaskName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z_][A-Za-z0-9_.:-]*$")]


class FunctionTarget(Document):
    """A registered task function, by name. Never a path: only what worker code registered can run."""

    kind: Literal["function"] = "function"
    name: TaskName
    args: dict[str, JsonValue] = Field(default_factory=dict)


_HEADER_NAME = re.compile(r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")


class HttpTarget(Document):
    """A request to an HTTP agent."""

    kind: Literal["http"] = "http"
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] = "POST"
    url: str = Field(min_length=1, max_length=4000)
    headers: dict[str, str] = Field(default_factory=dict)
    body: JsonValue = None
    expected_status: tuple[Annotated[int, Field(ge=100, le=599)], ...] | None = None

    @field_validator("url")
    @classmethod
    def _plain_http(cls, value: str) -> str:
        if any(ord(character) <= 32 or ord(character) == 127 for character in value):
            raise ValueError("must not contain spaces or control characters")
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https"):
            raise ValueError("must start with http:// or https://")
        if not parts.hostname:
            raise ValueError("must name a host")
        if parts.username is not None or parts.password is not None:
            raise ValueError("must not carry a user or password; use a header with ${secret:name}")
        return value

    @field_validator("headers")
    @classmethod
    def _clean_headers(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not _HEADER_NAME.match(name):
                raise ValueError(f"{name!r} is not a header name")
            if any(character in text for character in "\r\n\0"):
                raise ValueError(f"the value of {name} must not contain line breaks or NUL")
        return value


class EventTarget(Document):
    """An event, written to the outbox in the transaction that fires."""

    kind: Literal["event"] = "event"
    event_topic: str = Field(min_length=1, max_length=126)
    event_type: str = Field(min_length=1, max_length=126)
    event_data: dict[str, JsonValue] | str = Field(default_factory=dict)


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

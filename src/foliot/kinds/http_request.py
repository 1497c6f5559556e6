"""Builds the request of an attempt: the definition with its secrets inserted, and Foliot's own headers."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpcore2
import httpx2
from pydantic_core import to_json

from foliot.access.callback_tokens import CallbackTokens
from foliot.access.sealed_secrets import seal
from foliot.access.secrets import encode_in_url, resolve
from foliot.kinds.http_connections import CONNECT_TIMEOUT_S
from foliot.kinds.http_target import HttpTarget, has_control_characters
from foliot.kinds.target_protocol import Assignment, AttemptFailedError, Fire
from foliot.version import __version__

_NAME_SAFE = " !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"
"""All printable ASCII except the percent sign, so that encoded characters can be recognised."""


@dataclass(frozen=True, slots=True)
class Callback:
    """Where and how an agent reports the end of work that it has accepted."""

    public_url: str
    tokens: CallbackTokens
    keep_sent: Callable[[UUID, int, str], Awaitable[None]]
    """Stores the secrets that an attempt sends, encrypted."""

    async def headers(self, fire: Fire, secrets: Mapping[str, str]) -> dict[str, str]:
        """Return the callback headers. Call this before sending: an agent may report before it answers."""
        key = ""
        if secrets:
            sealed = seal(secrets.values())
            key = sealed.key
            # If storing fails, the agent's reports still count, but their text is not stored.
            with suppress(Exception):
                await self.keep_sent(fire.execution_id, fire.attempt, sealed.text)
        base = self.public_url.rstrip("/")
        return {
            "X-Foliot-Callback": f"{base}/api/v1/executions/{fire.execution_id}",
            "X-Foliot-Token": self.tokens.token(fire.execution_id, fire.attempt, key=key),
        }


def build_request(
    assignment: Assignment,
    target: HttpTarget,
    secrets: Mapping[str, str],
    callback_headers: dict[str, str],
) -> httpcore2.Request:
    """Build the request. Raises AttemptFailedError if a secret's value makes it impossible to send."""
    url = _url_of(target.url, secrets)
    content, content_type = _content_of(target, assignment.args, secrets)
    headers = {"User-Agent": f"Foliot/{__version__}", "Accept": "*/*"}
    if content_type:
        headers["Content-Type"] = content_type
    own = {name.lower() for name in target.headers}
    headers = {name: value for name, value in headers.items() if name.lower() not in own}
    for name, value in target.headers.items():
        headers[name] = _header_value(name, resolve(value, secrets))
    headers |= _headers_of(assignment.fire) | callback_headers
    if content or target.method in ("POST", "PUT", "PATCH"):
        headers["Content-Length"] = str(len(content))
    return httpcore2.Request(
        target.method,
        httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=[
            (b"Host", url.netloc),
            *((name.encode("ascii"), value.encode()) for name, value in headers.items()),
        ],
        content=content,
        # Reads and writes are limited by the attempt's own timeout.
        extensions={"timeout": {"connect": CONNECT_TIMEOUT_S}},
    )


def _headers_of(fire: Fire) -> dict[str, str]:
    """Return the headers that every request has."""
    return {
        "Idempotency-Key": str(fire.execution_id),
        "X-Foliot-Schedule": quote(fire.schedule_name, safe=_NAME_SAFE),
        "X-Foliot-Fire-Time": fire.fire_ts.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "X-Foliot-Attempt": str(fire.attempt),
        "traceparent": fire.traceparent,
        "Accept-Encoding": "identity",
    }


def _url_of(template: str, secrets: Mapping[str, str]) -> httpx2.URL:
    try:
        literal = httpx2.URL(template)
        url = httpx2.URL(resolve(template, secrets, encode_in_url))
    except httpx2.InvalidURL:
        raise AttemptFailedError(
            "the URL can't be used once its secrets are in place", is_permanent=True
        ) from None
    if (url.scheme, url.netloc, url.userinfo) != (literal.scheme, literal.netloc, b""):
        raise AttemptFailedError("a secret must not change where a URL leads", is_permanent=True)
    return url


def _header_value(name: str, value: str) -> str:
    if has_control_characters(value):
        raise AttemptFailedError(
            f"the value of header {name} has line breaks or control characters once its secrets are in place",
            is_permanent=True,
        )
    return value.strip()


def _content_of(
    target: HttpTarget, args: dict[str, Any], secrets: Mapping[str, str]
) -> tuple[bytes, str | None]:
    body = resolve(target.body, secrets)
    if args:
        # Merged after secrets are resolved: who may trigger a schedule must not be able to send secrets by
        # reference.
        if body is not None and not isinstance(body, dict):
            raise AttemptFailedError(
                "arguments were given, but the target's body is not an object that could take them",
                is_permanent=True,
            )
        body = {**(body or {}), **args}
    if body is None:
        return b"", None
    if isinstance(body, str):
        return body.encode(), "text/plain; charset=utf-8"
    return to_json(body), "application/json"

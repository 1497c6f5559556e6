"""Reads an agent's response and decides whether it is a success.

A response is never read beyond the limit, neither on the wire nor after decompression.
"""

import zlib
from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import httpcore2
import orjson

from foliot.access.secrets import Redactor
from foliot.kinds.target_protocol import AcceptedByAgent, AttemptFailedError

BODY_BYTES = 64 * 1024
RESULT_BYTES = 64 * 1024
"""Maximum size of an execution's result. A larger response is cut here, where its body can be cut well."""
KEPT_HEADERS = ("content-type", "content-encoding", "location", "retry-after", "x-request-id")
HEADER_LENGTH = 1000
EXTERNAL_ID_LENGTH = 255
RETRY_AFTER_S = 3600.0
"""Maximum delay of the next attempt that an agent can ask for, in seconds."""
RETRIED = frozenset({408, 425, 429})

_INFLATED = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""zlib's `wbits` for the content encodings that it can decode."""


@dataclass(frozen=True, slots=True)
class AgentResponse:
    """The stored part of a response, with secrets redacted."""

    status_code: int
    headers: Mapping[str, str]
    body: Any
    is_truncated: bool
    date: str | None
    """The Date header: when the agent responded, by its own clock."""

    @property
    def result(self) -> dict[str, Any]:
        result = {"status_code": self.status_code, "headers": dict(self.headers), "body": self.body}
        return result | {"truncated": True} if self.is_truncated else result

    @property
    def reason(self) -> str:
        try:
            return f"{self.status_code} {HTTPStatus(self.status_code).phrase}"
        except ValueError:
            return str(self.status_code)


async def read_answer(response: httpcore2.Response, redactor: Redactor) -> AgentResponse:
    """Read a response up to the limit. The caller closes it; if it was cut, that closes the connection."""
    headers: dict[str, str] = {}
    for name, value in response.headers:
        headers.setdefault(name.decode("latin-1").lower(), value.decode("utf-8", "replace"))
    assert isinstance(response.stream, AsyncIterable)
    content, is_truncated = await _read(response.stream, headers.get("content-encoding", "identity"))
    content_type = headers.get("content-type", "")
    kept = {name: redactor.text(headers[name])[:HEADER_LENGTH] for name in KEPT_HEADERS if name in headers}
    body = None if content is None else _body_of(content, content_type, redactor, is_cut=is_truncated)
    answer = AgentResponse(response.status, kept, body, is_truncated, headers.get("date"))
    if content and len(orjson.dumps(answer.result)) > RESULT_BYTES:
        return _fitted(
            replace(answer, body=_text_of(content, redactor, is_cut=is_truncated), is_truncated=True)
        )
    return answer


def _fitted(answer: AgentResponse) -> AgentResponse:
    """Shorten the body until the result fits as JSON. How much text grows depends on its characters."""
    while len(orjson.dumps(answer.result)) > RESULT_BYTES:
        answer = replace(answer, body=answer.body[: len(answer.body) * 3 // 4])
    return answer


async def _read(stream: AsyncIterable[bytes], encoding: str) -> tuple[bytes | None, bool]:
    """Return the first bytes, decoded, and whether more followed. None: they can't be decoded."""
    raw = bytearray()
    async for chunk in stream:
        raw += chunk
        if len(raw) > BODY_BYTES:
            break
    is_cut = len(raw) > BODY_BYTES
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return bytes(raw[:BODY_BYTES]), is_cut
    if encoding not in _INFLATED:
        return None, is_cut
    try:
        inflated = zlib.decompressobj(_INFLATED[encoding]).decompress(bytes(raw), BODY_BYTES + 1)
    except zlib.error:
        return None, is_cut
    return inflated[:BODY_BYTES], is_cut or len(inflated) > BODY_BYTES


def _body_of(content: bytes, content_type: str, redactor: Redactor, *, is_cut: bool) -> Any:
    """Parse a body: JSON as a value, anything else as text. An empty body is None."""
    if not content:
        return None
    media_type = content_type.partition(";")[0].strip().lower()
    if not is_cut and (media_type == "application/json" or media_type.endswith("+json")):
        try:
            return redactor.document(orjson.loads(content))
        except (ValueError, RecursionError):
            pass
    return _text_of(content, redactor, is_cut=is_cut)


def _text_of(content: bytes, redactor: Redactor, *, is_cut: bool) -> str:
    return redactor.text(content.decode("utf-8", "replace"), is_cut=is_cut)


def judge(
    answer: AgentResponse,
    expected: tuple[int, ...] | None,
    now: datetime,
    *,
    can_call_back: bool,
    who: str = "agent",
) -> dict[str, Any] | AcceptedByAgent:
    """Return the result of an attempt. Raises AttemptFailedError if the response is not a success."""
    status = answer.status_code
    is_expected = status in expected if expected is not None else 200 <= status < 300
    if status == HTTPStatus.ACCEPTED and can_call_back and (expected is None or not is_expected):
        return AcceptedByAgent(_external_id(answer.body))
    if is_expected:
        return answer.result
    if 300 <= status < 400:
        where = answer.headers.get("location", "nowhere")
        message = f"redirects are not followed: the {who} answered {answer.reason}, to {where}"
        raise AttemptFailedError(message, is_permanent=True, result=answer.result)
    is_retried = status >= 500 or status in RETRIED
    raise AttemptFailedError(
        f"the {who} answered {answer.reason}",
        is_permanent=not is_retried,
        retry_after_s=_retry_after_s(answer, now) if is_retried else None,
        result=answer.result,
    )


def _external_id(body: Any) -> str | None:
    if not isinstance(body, dict):
        return None
    found = body.get("external_id", body.get("id"))
    if not isinstance(found, str | int) or isinstance(found, bool):
        return None
    # Databases can't store NUL or lone surrogates in text.
    held = str(found).replace("\0", "").encode("utf-8", "replace").decode()
    return held[:EXTERNAL_ID_LENGTH] or None


def _retry_after_s(answer: AgentResponse, now: datetime) -> float | None:
    asked = answer.headers.get("retry-after", "").strip()
    if asked.isascii() and asked.isdigit():
        # Check the length first: a number of a thousand digits is not a number of seconds.
        return min(float(asked), RETRY_AFTER_S) if len(asked) < 10 else RETRY_AFTER_S
    at = _instant_of(asked)
    if at is None:
        return None
    # Relative to the agent's Date header if there is one, so that two clocks are not compared.
    waiting_s = (at - (_instant_of(answer.date or "") or now)).total_seconds()
    return min(max(waiting_s, 0.0), RETRY_AFTER_S)


def _instant_of(text: str) -> datetime | None:
    try:
        instant = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return instant if instant.tzinfo is not None else None

"""Idempotency-Key: a repeated POST takes effect once, and gets the same response.

The first request that claims the key (the holder) runs the handler. Others with the same key wait for its
response. What happens on failure (`access/idempotency_sql.py` documents the rows):

- The holder crashes: after `stale_s` another request can take over the row, with the id reserved for the new
  resource. A handler must create its resource with this id, and return the resource if it already exists.
- The client disconnects: the request still runs to its end, and its response is stored for the next try.
- The handler takes longer than `work_s`: it is stopped before another request can take over.
- The request is refused (4xx): nothing was done. The key is free for the corrected request.
- The request fails (5xx, an exception): it is unknown whether something was done. The row stays without a
  response, and the next try takes it over at once, with the same reserved id.
- The database becomes unreachable before the response is stored: the client gets its response. The next try
  takes over as after a crash.

Only successful responses (2xx) are stored: status, some headers, and body. The body of a response that may be
shown only once is not stored; a repeated request raises AlreadyShownError. A body larger than LARGEST_BODY is
not stored either: the repeated response has status and headers but no body, and Location says where to look.
A credential has at most MAX_KEYS rows. Beyond that a new key gets a 429, while known keys still work.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from uuid import UUID

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from foliot.access.idempotency_sql import (
    IdempotencyKeys,
    KeyClaim,
    KeyedRequest,
    Pending,
    Reused,
    StoredResponse,
)
from foliot.model.error_codes import verdict_on
from foliot.model.errors import (
    AlreadyShownError,
    FoliotError,
    InProgressError,
    InvalidError,
    TooManyIdempotencyKeysError,
)
from foliot.model.ids import new_id
from foliot.timing.clock import Clock

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
KEPT_HEADERS = ("location", "etag", "content-type")
LONGEST_KEY = 255
LARGEST_BODY = 16 * 1024
MAX_KEYS = 100_000
"""Maximum number of keys of one credential within 24 hours. Beyond it a new key gets a 429."""
COUNT_EVERY = 1_000
"""Count the keys of a credential once per so many new keys, because counting costs more than an insert."""
RECOUNT_S = 10.0
MAX_COUNTED = 10_000
"""Maximum number of credentials whose key count is cached."""
RETRY_AFTER_S = 5
"""After a wait of `wait_s` without a response, the row is stale this much later and can be taken over."""
_POINTER = "/idempotency-key"

Handle = Callable[[UUID], Awaitable[Response]]
"""Runs a request. The resource that it creates must get the given id."""


class KeyInUseError(InProgressError):
    """Another request with this key has been running for too long to wait for it."""

    retry_after_s = RETRY_AFTER_S

    def __init__(self) -> None:
        super().__init__("a request under the same Idempotency-Key is under way; try again in a few seconds")


@dataclass(frozen=True, slots=True)
class WaitLimits:
    """Timeouts and poll interval of idempotent requests."""

    poll_s: float = 0.05
    """Time between two polls of a row that another instance holds."""
    wait_s: float = 25.0
    """Maximum wait for the response of another request with the same key."""
    work_s: float = 25.0
    """Maximum duration of the handler."""
    stale_s: float = 30.0
    """Age at which a row without a response can be taken over. It must exceed `work_s`, or two handlers could
    run at once."""


class KeyBudget:
    """Limits the rows of each credential. Each instance may exceed the limit by COUNT_EVERY."""

    def __init__(self, keys: IdempotencyKeys, clock: Clock, limit: int) -> None:
        self._keys = keys
        self._clock = clock
        self._limit = limit
        self._left: dict[str, tuple[int, float]] = {}
        """By credential: new keys allowed until the next count (-1: none), and when the last count was."""

    async def take(self, credential: str) -> None:
        """Allow one new key. Raises TooManyIdempotencyKeysError."""
        left, counted_at = self._left.get(credential, (0, float("-inf")))
        now = self._clock.monotonic()
        if left <= 0:
            if left == 0 or now - counted_at >= RECOUNT_S:
                left = min(COUNT_EVERY, self._limit - await self._keys.count(credential, limit=self._limit))
                counted_at = now
            if left <= 0:
                self._remember(credential, -1, counted_at)
                raise TooManyIdempotencyKeysError(self._limit)
        self._remember(credential, left - 1, counted_at)

    def _remember(self, credential: str, left: int, counted_at: float) -> None:
        self._left.pop(credential, None)
        if len(self._left) >= MAX_COUNTED:
            del self._left[next(iter(self._left))]
        self._left[credential] = (left, counted_at)


class Idempotency:
    def __init__(
        self,
        keys: IdempotencyKeys,
        clock: Clock,
        patience: WaitLimits | None = None,
        max_keys: int = MAX_KEYS,
    ) -> None:
        self._keys = keys
        self._clock = clock
        self._patience = patience or WaitLimits()
        self._budget = KeyBudget(keys, clock, max_keys)
        self._under_way: dict[KeyedRequest, asyncio.Task[Response]] = {}

    async def run(
        self,
        credential: str,
        route: str,
        key: str,
        body: bytes,
        handle: Handle,
        *,
        keeps_body: bool = True,
    ) -> Response:
        """Return the response of the handler, or the stored response of an earlier request.

        `route` identifies what is called. The caller must be authorised before: stored responses are returned
        without a check. Raises InvalidError, KeyInUseError, AlreadyShownError, and what the handler raises.
        """
        request = _request_of(credential, route, key, body)
        until = self._clock.monotonic() + self._patience.wait_s
        while True:
            found = await self._keys.claim(
                request,
                new_id(self._clock.now()),
                stale_s=self._patience.stale_s,
                before_insert=lambda: self._budget.take(request.credential),
            )
            match found:
                case KeyClaim():
                    return await self._carry_out(found, handle, keeps_body)
                case StoredResponse():
                    return _replayed(found, keeps_body)
                case Reused():
                    raise _reused()
                case Pending():
                    await self._wait(request, until - self._clock.monotonic())

    async def _wait(self, request: KeyedRequest, left_s: float) -> None:
        if left_s <= 0:
            raise KeyInUseError
        here = self._under_way.get(request)
        if here is not None:
            await asyncio.wait({here}, timeout=left_s)
        else:
            await asyncio.sleep(min(self._patience.poll_s, left_s))

    async def _carry_out(self, claim: KeyClaim, handle: Handle, keeps_body: bool) -> Response:
        # A separate task: a client that disconnects must not stop a request that others wait for.
        task = asyncio.create_task(self._answer(claim, handle, keeps_body), name="idempotent request")
        self._under_way[claim.request] = task
        task.add_done_callback(lambda done: self._ended(claim.request, done))
        return await asyncio.shield(task)

    def _ended(self, request: KeyedRequest, task: asyncio.Task[Response]) -> None:
        if self._under_way.get(request) is task:
            del self._under_way[request]
        if not task.cancelled():
            task.exception()  # retrieved here, because nobody else does if the client has disconnected

    async def _answer(self, claim: KeyClaim, handle: Handle, keeps_body: bool) -> Response:
        try:
            response = await self._handled(claim, handle)
        except Exception as error:
            await self._release(claim, _status_of(error))
            raise
        if HTTPStatus.OK <= response.status_code < HTTPStatus.MULTIPLE_CHOICES:
            # The work is done: the client gets its response even if storing it fails.
            with suppress(FoliotError):
                await self._keys.finish(claim, _kept(response, keeps_body))
        else:
            await self._release(claim, response.status_code)
        return response

    async def _handled(self, claim: KeyClaim, handle: Handle) -> Response:
        try:
            async with asyncio.timeout(self._patience.work_s) as limit:
                return await handle(claim.resource_id)
        except TimeoutError:
            if not limit.expired():
                raise
            detail = "the request took too long and was stopped; repeat it under the same Idempotency-Key"
            headers = {"Retry-After": str(RETRY_AFTER_S)}
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers) from None

    async def _release(self, claim: KeyClaim, status: int) -> None:
        # If the database is unreachable, the row stays as after a crash of the holder.
        with suppress(FoliotError):
            if status < HTTPStatus.INTERNAL_SERVER_ERROR:
                await self._keys.give_back(claim)
            else:
                await self._keys.let_go(claim)


def _request_of(credential: str, route: str, key: str, body: bytes) -> KeyedRequest:
    if not (0 < len(key) <= LONGEST_KEY and key.isascii() and key.isprintable()):
        hint = f"1 to {LONGEST_KEY} printable ASCII characters, such as a UUID"
        raise InvalidError.at(_POINTER, "idempotency_key", "is not a key", hint)
    return KeyedRequest(_fitting(credential, 64), _fitting(route, 200), key, hashlib.sha256(body).hexdigest())


def _reused() -> InvalidError:
    hint = "take a new key for a new request"
    detail = "was used with another body before"
    return InvalidError.at(_POINTER, "idempotency_key_reused", detail, hint)


def _fitting(text: str, limit: int) -> str:
    """Return the text, or its hash if it is too long or has characters that the column can't store."""
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()


def _status_of(error: Exception) -> int:
    """Return the HTTP status of the response to this error."""
    if isinstance(error, FoliotError):
        return verdict_on(error).http
    if isinstance(error, HTTPException):
        return error.status_code
    if isinstance(error, RequestValidationError):
        return HTTPStatus.UNPROCESSABLE_ENTITY
    return HTTPStatus.INTERNAL_SERVER_ERROR


def _kept(response: Response, keeps_body: bool) -> StoredResponse:
    headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
    return StoredResponse(response.status_code, headers, _text_of(response) if keeps_body else None)


def _text_of(response: Response) -> str | None:
    body = getattr(response, "body", None)  # a stream has none
    if not isinstance(body, bytes) or len(body) > LARGEST_BODY or b"\0" in body:
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _replayed(answer: StoredResponse, keeps_body: bool) -> Response:
    headers = {**answer.headers, REPLAYED: "true"}
    if not keeps_body:
        made = answer.headers.get("location", "what it made")
        raise AlreadyShownError(
            f"this was done before under the same Idempotency-Key; the answer was shown once, see {made}"
        )
    if answer.body is None:
        headers.pop("content-type", None)
    return Response(answer.body, answer.status, headers)

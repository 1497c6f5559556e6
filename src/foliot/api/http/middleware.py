"""The middleware around the application: every request and every response passes through it.

Each layer is plain ASGI and has one task. `add_front` adds them in the required order, outermost first:

    PublicPath        serves the application under its public path
    Answers           reports each response and the time until it began
    RequestId         gives the request an id, for logs and error responses
    SecurityHeaders   adds headers to every response, also those of the inner layers
    UnhandledErrors   turns an unhandled exception into a 500 without details
    Compression       gzips large responses of the API
    Overload          returns 503 at once if too many requests are in progress: a queue would delay them all
    BodyLimit         returns 413 if a body is too large, and 408 if it arrives too slowly

They are inside Starlette's outermost layer, which returns unhandled exceptions as plain text. So
`UnhandledErrors` must catch them first.
"""

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Collection, Mapping

from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from foliot.api.http.compression import Compression
from foliot.api.http.error_responses import problem
from foliot.api.http.paths import PublicPath, path_of
from foliot.model.instance_events import RequestAnswered

BODY_LIMIT = 1024 * 1024
BODY_SECONDS = 30.0
MAX_UNDER_WAY = 200
MAX_WAITING = 2_000
"""Maximum number of requests whose bodies are not complete yet."""
RETRY_AFTER_S = 1
PROBES = frozenset({"/healthz", "/readyz"})
API_PREFIX = "/api/"
API_POLICY = "default-src 'none'; frame-ancestors 'none'"

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

LARGER_BODIES = {"/api/v1/schedules/apply": 16 * 1024**2, "/api/v1/calendars/import": 4 * 1024**2}
"""Higher limits for paths that receive whole sets of files in one request, in bytes."""

OnError = Callable[[Exception, str], None]
"""Called with an unhandled exception and the id of its request."""
OnAnswer = Callable[[RequestAnswered], None]


def add_front(
    app: FastAPI,
    on_error: OnError,
    on_answer: OnAnswer,
    *,
    body_limit: int = BODY_LIMIT,
    max_under_way: int = MAX_UNDER_WAY,
    uncounted: Collection[str] = PROBES,
    public_path: str = "",
) -> None:
    """Add all layers to an application. `uncounted` are paths that are served under any load.

    `public_path` is the path of the public URL. Empty: none.
    """
    # The last layer added is the outermost one.
    app.add_middleware(BodyLimit, limit=body_limit, larger=LARGER_BODIES)
    app.add_middleware(Overload, limit=max_under_way, uncounted=uncounted)
    app.add_middleware(Compression)
    app.add_middleware(UnhandledErrors, on_error=on_error)
    app.add_middleware(SecurityHeaders)
    app.add_middleware(RequestId)
    app.add_middleware(Answers, on_answer=on_answer)
    app.add_middleware(PublicPath, prefix=public_path)


class Answers:
    """Calls `on_answer` for every response when it begins."""

    def __init__(self, app: ASGIApp, on_answer: OnAnswer) -> None:
        self._app = app
        self._on_answer = on_answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began_at = time.perf_counter()

        async def telling_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._on_answer(
                    RequestAnswered(
                        scope["method"],
                        path_of(scope),
                        message["status"],
                        time.perf_counter() - began_at,
                        scope.get("state", {}).get("request_id", ""),
                    )
                )
            await send(message)

        await self._app(scope, receive, telling_send)


class RequestId:
    """Gives each request the id that its client sent, or a new one, and returns it in a header."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        await self._app(scope, receive, send_with_id)


class SecurityHeaders:
    """Adds security headers to every response, which restrict what browsers do with it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_of_api = path_of(scope).startswith(API_PREFIX)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                # A page's own requests are recognised by their origin, which `no-referrer` would hide.
                is_page = headers.get("content-type", "").startswith("text/html")
                headers["X-Content-Type-Options"] = "nosniff"
                headers["X-Frame-Options"] = "DENY"
                headers["Cross-Origin-Resource-Policy"] = "same-origin"
                headers["Referrer-Policy"] = "same-origin" if is_page else "no-referrer"
                # Pages set their own policy. One without a policy may load nothing.
                headers.setdefault("Content-Security-Policy", API_POLICY)
                if is_of_api:
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, send_with_headers)


class UnhandledErrors:
    """Hides an unhandled exception from the client and passes it to `on_error`, once."""

    def __init__(self, app: ASGIApp, on_error: OnError) -> None:
        self._app = app
        self._on_error = on_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def watched_send(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched_send)
        except ClientDisconnect:
            pass  # no client to respond to, and not an error
        except Exception as error:
            self._on_error(error, scope.get("state", {}).get("request_id", ""))
            # If the response has begun, the server closes the connection, so that the client sees that the
            # response is incomplete.
            if not has_begun:
                detail = "something went wrong here; the log says what, under this request_id"
                await problem(Request(scope), 500, "internal", detail)(scope, receive, send)


class Overload:
    """Refuses requests while too many are in progress.

    A request does not count while it waits for its body, because anybody can send a body slowly. It does not
    count either once it has become an event stream, because a stream is idle most of the time.
    """

    def __init__(
        self,
        app: ASGIApp,
        limit: int = MAX_UNDER_WAY,
        uncounted: Collection[str] = PROBES,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self._app = app
        self._limit = limit
        self._max_waiting = max_waiting
        self._uncounted = frozenset(uncounted)
        self.under_way = 0
        self.waiting = 0
        """Requests that wait for the rest of their bodies."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or path_of(scope) in self._uncounted:
            await self._app(scope, receive, send)
            return
        if self.under_way >= self._limit or self.waiting >= self._max_waiting:
            detail = f"{self._limit} requests are under way here, which is as many as are taken; try again"
            headers = {"Retry-After": str(RETRY_AFTER_S)}
            refusal = problem(Request(scope), 503, "overloaded", detail, headers=headers)
            await refusal(scope, receive, send)
            return
        counted = _Counted(self, receive, send)
        self.under_way += 1
        try:
            await self._app(scope, counted.receive, counted.send)
        finally:
            counted.end()


class _Counted:
    """One request, counted in `under_way` or `waiting` of `Overload`."""

    def __init__(self, overload: Overload, receive: Receive, send: Send) -> None:
        self._overload = overload
        self._receive = receive
        self._send = send
        self._is_whole = False
        self._is_counted = True

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()
        self._overload.under_way -= 1
        self._overload.waiting += 1
        try:
            message = await self._receive()
        finally:
            self._overload.waiting -= 1
            self._overload.under_way += 1
        self._is_whole = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_stream(message):
            self.end()
        await self._send(message)

    def end(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._overload.under_way -= 1


def _is_stream(start: Message) -> bool:
    return Headers(scope=start).get("content-type", "").startswith("text/event-stream")


class BodyLimit:
    """Limits the size of bodies, whatever Content-Length says, and the time in which they must arrive."""

    def __init__(
        self,
        app: ASGIApp,
        limit: int = BODY_LIMIT,
        seconds: float = BODY_SECONDS,
        larger: Mapping[str, int] | None = None,
    ) -> None:
        """`limit` is in bytes. `larger` has higher limits by path."""
        self._app = app
        self._limit = limit
        self._seconds = seconds
        self._larger = larger or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._larger.get(path_of(scope), self._limit)
        body = _Body(limit, self._seconds, scope, receive, send)
        if _announced(scope) > limit:
            await body.refuse_size()
            return
        if _is_ambiguous(scope):
            await body.refuse_ambiguous()
            return
        try:
            await self._app(scope, body.receive, body.send)
        except ClientDisconnect:
            if not body.is_refused:
                raise


class _Body:
    """The body of one request, and its response."""

    def __init__(self, limit: int, seconds: float, scope: Scope, receive: Receive, send: Send) -> None:
        self._limit = limit
        self._scope = scope
        self._receive = receive
        self._send = send
        self._taken = 0
        self._deadline = asyncio.get_running_loop().time() + seconds
        self._is_whole = False
        self._has_begun = False
        self.is_refused = False

    async def receive(self) -> Message:
        if self._is_whole:
            return await self._receive()
        if not self.is_refused:
            try:
                async with asyncio.timeout_at(self._deadline):
                    message = await self._receive()
            except TimeoutError:
                await self._refuse(408, "too_slow", "the body did not come in time")
            else:
                self._taken += len(message.get("body", b""))
                if self._taken <= self._limit:
                    self._is_whole = not message.get("more_body", False)
                    return message
                await self.refuse_size()
        # Report a disconnect to the reader: it could mistake an exception for an error of its own.
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if not self.is_refused:
            self._has_begun = True
            await self._send(message)

    async def refuse_size(self) -> None:
        await self._refuse(413, "too_large", f"the body is larger than {self._limit} bytes")

    async def refuse_ambiguous(self) -> None:
        detail = "a body has either a Content-Length or a Transfer-Encoding"
        await self._refuse(400, "ambiguous_length", detail)

    async def _refuse(self, status: int, code: str, detail: str) -> None:
        self.is_refused = True
        if not self._has_begun:
            # Close: the rest of the body would be parsed as the next request.
            headers = {"Connection": "close"}
            answer = problem(Request(self._scope), status, code, detail, headers=headers)
            await answer(self._scope, self._receive, self._send)


def _is_ambiguous(scope: Scope) -> bool:
    """Whether the body has two lengths. A proxy may use the other one, which allows request smuggling."""
    headers = Headers(scope=scope)
    return "content-length" in headers and "transfer-encoding" in headers


def _announced(scope: Scope) -> int:
    length = Headers(scope=scope).get("content-length", "")[:20]
    return int(length) if length.isascii() and length.isdigit() else 0

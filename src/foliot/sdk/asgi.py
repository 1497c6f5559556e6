"""The API as an ASGI application, to serve it beside an application of your own.

Run on its own, it starts an instance when the server starts. Mounted in another application, it receives no
lifespan events; it then serves the instance that `Foliot.lifespan()` started there.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse

from foliot.api.http.error_responses import PROBLEM_JSON
from foliot.instance.runtime import Instance
from foliot.model.event import Observer
from foliot.telemetry.health.probes import Probes
from foliot.timing.clock import SystemClock

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
MakeInstance = Callable[[Sequence[Observer]], Instance]


class Serving:
    """An instance together with the HTTP application that serves it."""

    def __init__(self, make: MakeInstance, observers: Sequence[Observer] = ()) -> None:
        probes = Probes(SystemClock())
        self.instance = make([*observers, *probes.observers])
        assert self.instance.api is not None, "the instance has the role api"
        self.instance.show(probes)
        self.app: FastAPI = self.instance.api.app(probes.problems, probes.page)


class AsgiApplication:
    def __init__(self, make: MakeInstance) -> None:
        self._make = make
        self._serving: Serving | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the instance and serve it until the context ends."""
        serving = Serving(self._make)
        await serving.instance.start()
        self._serving = serving
        try:
            yield
        finally:
            self._serving = None
            await asyncio.shield(serving.instance.stop())

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._follow(receive, send)
        elif self._serving is not None:
            await self._serving.app(scope, receive, send)
        elif scope["type"] == "http":
            detail = "Foliot does not run here; give the application lifespan=app.lifespan()"
            problem = {"type": "about:blank", "title": "Service Unavailable", "status": 503}
            response = JSONResponse(
                {**problem, "code": "not_running", "detail": detail, "request_id": ""},
                503,
                {"Retry-After": "2"},
                PROBLEM_JSON,
            )
            await response(scope, receive, send)

    async def _follow(self, receive: Receive, send: Send) -> None:
        """Start and stop on the server's lifespan events."""
        await receive()
        try:
            async with self.running():
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.shutdown.complete"})

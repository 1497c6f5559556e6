"""A real instance behind a real HTTP server, in its own thread. Tests use it like any other client."""

import asyncio
import logging
import threading
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, contextmanager
from typing import Any, TypeVar

import httpx2
import uvloop
from fastapi import FastAPI
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.api.http.http_server import listen, serving, url_of
from foliot.db.dialect import Pool
from foliot.instance.runtime import Instance
from foliot.instance.spec import InstanceRole, InstanceSpec
from foliot.kinds.function_target import TaskRegistry
from foliot.model.event import Observer
from foliot.model.instance_events import RequestFailed
from foliot.sdk.asgi import Serving
from foliot.testing.app import Recorder
from tests.engine import quick_settings, registry, seen

T = TypeVar("T")

OPERATOR_KEY = "the-operators-own-key-0123456789abcdef"
SECRET_KEY = "0123456789abcdef0123456789abcdef"
V1 = "/api/v1"
SCHEDULES = f"{V1}/schedules"
WITHIN_S = 60.0
"""Timeout that only prevents a hanging test."""

ALL = frozenset(InstanceRole)
API_ALONE = frozenset({InstanceRole.API})


async def noop() -> str:
    """Do nothing, as a task."""
    return "done"


async def greet(name: str, times: int = 1) -> str:
    """Say hello."""
    return f"hello {name} " * times


async def fail() -> None:
    """Fail, as a task."""
    raise RuntimeError("as it was told to")


async def linger() -> None:
    """Run until somebody stops it."""
    await asyncio.Event().wait()


async def tell(lines: int) -> None:
    """Log so many lines."""
    for number in range(lines):
        logging.getLogger("story").warning("line %d <b>&</b>", number)


class Served:
    """An instance with its HTTP server. Both run in one event loop, in a separate thread."""

    def __init__(
        self, url: str, *, roles: frozenset[InstanceRole], tasks: TaskRegistry, **settings: Any
    ) -> None:
        self._database_url = url
        self._roles = roles
        self._tasks = tasks
        self._settings = settings
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="served", daemon=True)
        self._stack = AsyncExitStack()
        self._clients: dict[str | None, httpx2.Client] = {}
        self.recorder = Recorder()
        self.instance: Instance
        self.app: FastAPI
        self.url = ""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the server's loop, and return its result."""
        return self.begin(work).result(WITHIN_S)

    def begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Start a coroutine on the server's loop without waiting for its end."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def write(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Change the database directly, without the API."""

        async def write() -> T:
            return await self.instance.store.database.write(Pool.API, work)

        return self.run(write())

    def client(self, key: str | None = None, **options: Any) -> httpx2.Client:
        return httpx2.Client(**self._options(key, options))

    def by(self, key: str | None) -> httpx2.Client:
        """Return the cached client for this key, without cookies."""
        if key not in self._clients:
            self._clients[key] = self.client(key)
        self._clients[key].cookies.clear()
        return self._clients[key]

    def async_client(self, key: str | None = None, **options: Any) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(**self._options(key, options))

    def _options(self, key: str | None, options: dict[str, Any]) -> dict[str, Any]:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        return {
            "base_url": self.url,
            "trust_env": False,
            "verify": False,  # there is no TLS here, and reading the system's certificates takes 100 ms
            "timeout": WITHIN_S,
            # The server closes idle connections, perhaps just when one is used again.
            "limits": httpx2.Limits(keepalive_expiry=1.0),
            **options,
            "headers": headers | options.get("headers", {}),
        }

    @property
    def bugs(self) -> list[str]:
        """Tracebacks of unexpected exceptions, which were answered with status 500."""
        found = seen(self.recorder, RequestFailed)
        return ["".join(traceback.format_exception(each.error)) for each in found]

    # --- life -------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Start the HTTP server, but not the instance."""
        self._thread.start()
        self.run(self._serve())

    def start(self) -> None:
        self.run(self.instance.start())

    def stop(self) -> None:
        """Stop the instance. The HTTP server continues."""
        self.run(self.instance.stop())

    def close(self) -> None:
        try:
            for client in self._clients.values():
                client.close()
            if self.instance.is_running:
                self.stop()
            self.run(self._stack.aclose())
        finally:
            self.run(_end_tasks())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(WITHIN_S)
            self._loop.close()

    def _make(self, observers: Sequence[Observer]) -> Instance:
        return Instance(
            InstanceSpec(
                settings=quick_settings(self._database_url, **self._settings),
                roles=self._roles,
                tasks=self._tasks,
                upgrades_schema=True,
                isolates=False,
                observers=observers,
            )
        )

    async def _serve(self) -> None:
        made = Serving(self._make, [self.recorder])
        self.instance, self.app = made.instance, made.app
        listener = listen("127.0.0.1", 0)
        self.url = url_of(listener)
        trusted = self.instance.plan.settings.trusted_proxies
        await self._stack.enter_async_context(serving(self.app, listener, trusted_proxies=trusted))


async def _end_tasks() -> None:
    """Cancel all remaining tasks, as at the end of a program."""
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def served(
    url: str, *, roles: frozenset[InstanceRole] = ALL, is_started: bool = True, **settings: Any
) -> Iterator[Served]:
    """Serve an instance: by default all roles in one process, without rate limits, with a secret key.

    At the end, assert that no request failed with an unexpected exception.
    """
    options: dict[str, Any] = {
        "admin_key": OPERATOR_KEY,
        "secret_key": SECRET_KEY,
        "rate_limit": "off",
        "rate_limit_anonymous": "off",
    }
    made = Served(url, roles=roles, tasks=registry(noop, greet, fail, linger, tell), **(options | settings))
    made.serve()
    try:
        if is_started:
            made.start()
        yield made
        assert made.bugs == [], made.bugs
    finally:
        made.close()

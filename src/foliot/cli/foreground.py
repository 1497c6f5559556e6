"""Running an instance as a process of its own: logs, metrics, the event loop, and HTTP beside it.

HTTP starts before the instance and ends after it, so that whoever probes sees it start and drain: alive, and
not ready. Signals are the instance's.
"""

import asyncio
import json
import os
import socket
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog
import typer
from pydantic import SecretStr

from foliot.api.credentials import operator_principal
from foliot.api.server import listen, serving, url_of
from foliot.asgi import Serving
from foliot.cli.api_processes import serve_in_processes
from foliot.cli.operator_key import keep_key, key_file, running_file
from foliot.model.event import Observer
from foliot.runtime import Instance, Plan, Role, spare_collector
from foliot.sdk import Foliot
from foliot.settings import Settings
from foliot.telemetry import logs


def run_everything(app: Foliot, settings: Settings) -> None:
    """All roles, until SIGTERM or SIGINT."""
    listener = listen(settings.api_host, settings.api_port)
    if settings.admin_key is None:
        key = keep_key(key_file(settings.database_url))
        settings = settings.model_copy(update={"admin_key": SecretStr(key)})
    _serve(app, settings, frozenset(Role), listener, upgrades_schema=True, is_up=True)


def run_api(app: Foliot, settings: Settings) -> None:
    """HTTP alone, on a database whose schema somebody else keeps up to date."""

    def serve(listener: socket.socket) -> None:
        _serve(app, settings, frozenset({Role.API}), listener, upgrades_schema=False, is_up=False)

    if settings.api_processes == 1:
        serve(listen(settings.api_host, settings.api_port))
    else:
        serve_in_processes(settings.api_processes, settings.api_host, settings.api_port, serve)


def _serve(
    app: Foliot,
    settings: Settings,
    roles: frozenset[Role],
    listener: socket.socket,
    *,
    upgrades_schema: bool,
    is_up: bool,
) -> None:
    logs.configure(settings.effective_log_format, settings.log_level)
    plan = _plan(app, settings, roles, [logs.LogObserver()], upgrades_schema=upgrades_schema)
    _run(lambda: _run_with_http(plan, listener, is_up=is_up))


def run_role(role: Role, app: Foliot, settings: Settings, *, queues: Sequence[str] | None = None) -> None:
    """One role, on a database whose schema somebody else keeps up to date."""
    logs.configure(settings.effective_log_format, settings.log_level)
    plan = _plan(app, settings, frozenset({role}), [logs.LogObserver()], queues=queues, is_own_process=True)
    _run(lambda: _run_instance(Instance(plan)))


def _plan(
    app: Foliot,
    settings: Settings,
    roles: frozenset[Role],
    observers: Sequence[Observer],
    *,
    queues: Sequence[str] | None = None,
    upgrades_schema: bool = False,
    is_own_process: bool = False,
) -> Plan:
    return Plan(
        settings=settings,
        roles=roles,
        tasks=app.tasks,
        schedules=tuple(app.schedules.values()),
        queues=queues,
        consumers=tuple(app.consumers.values()),
        upgrades_schema=upgrades_schema,
        is_own_process=is_own_process,
        observers=observers,
    )


async def _run_with_http(plan: Plan, listener: socket.socket, *, is_up: bool) -> None:
    made = Serving(lambda observers: Instance(replace(plan, observers=observers)), plan.observers)
    instance, url = made.instance, url_of(listener)
    async with serving(made.app, listener, trusted_proxies=plan.settings.trusted_proxies):
        _log().info("listening", url=url, database=instance.store.database.url)
        if not is_up:
            await _run_instance(instance)
            return
        with _announced(running_file(plan.settings.database_url), url):
            await _run_instance(instance, on_started=lambda: _invite(instance, url))


async def _invite(instance: Instance, url: str) -> None:
    """Print a link that signs one browser in."""
    assert instance.api is not None
    holder = instance.api.authenticator.holder_of(operator_principal())
    token = await instance.store.sessions.make_link(holder)
    typer.echo(f"Foliot is up. Sign in (works once): {url}/sign-in?token={token}")


@contextmanager
def _announced(file: Path, url: str) -> Iterator[None]:
    """Say beside the database where this serves, for commands that are not told."""
    told = json.dumps({"url": url, "pid": os.getpid()})
    try:
        file.write_text(told, encoding="utf-8")
    except OSError as error:
        _log().warning("can't say where this serves", file=str(file), error=str(error))
    try:
        yield
    finally:
        with suppress(OSError):
            if file.read_text(encoding="utf-8") == told:  # and not of another that was started since
                file.unlink()


async def _run_instance(instance: Instance, on_started: Callable[[], Awaitable[None]] | None = None) -> None:
    def say_stopping() -> None:
        running = len(instance.worker.running) if instance.worker is not None else 0
        hint = "a second signal hands back at once what still runs" if running else None
        _log().info("stopping", running=running, **({"hint": hint} if hint else {}))

    if instance.worker is not None and not instance.plan.tasks and not instance.plan.consumers:
        _log().warning("no task functions are registered", hint="name the modules that have them by --tasks")
    await instance.run(on_started=on_started, on_stopping=say_stopping)


def _log() -> Any:
    return structlog.get_logger()


def _run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    spare_collector()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not made for every platform, and only quicker
        return None
    return uvloop.new_event_loop

"""Running an instance as a process of its own: logs, metrics, the event loop, and HTTP beside it.

HTTP starts before the instance and ends after it, so that whoever probes sees it start and drain: alive, and
not ready. Signals are the instance's.
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import structlog
from prometheus_client import CollectorRegistry

from foliot.api.app import make_app
from foliot.api.health import Pulse, Readiness
from foliot.api.routes.agents import agent_routes
from foliot.api.server import listen, serving, url_of
from foliot.model.event import Observer
from foliot.runtime import Instance, Plan, Role, spare_collector
from foliot.sdk import Foliot
from foliot.settings import Settings
from foliot.telemetry import logs
from foliot.telemetry.metrics import MetricsObserver
from foliot.timing.clock import SystemClock

LEAST_TICK_LIMIT_S = 10.0
"""A leader looks at its wheel at least once per poll; this much silence means that it hangs."""


def run_everything(app: Foliot, settings: Settings) -> None:
    """All roles and HTTP, until SIGTERM or SIGINT."""
    listener = listen(settings.api_host, settings.api_port)
    logs.configure(settings.effective_log_format, settings.log_level)
    registry = CollectorRegistry()
    pulse = Pulse(SystemClock())
    observers: list[Observer] = [logs.LogObserver(), MetricsObserver(registry), pulse]
    plan = _plan(app, settings, frozenset(Role), observers, upgrades_schema=True)
    _run(lambda: _run_with_http(plan, listener, registry, pulse))


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
        upgrades_schema=upgrades_schema,
        is_own_process=is_own_process,
        observers=observers,
    )


async def _run_with_http(
    plan: Plan, listener: socket.socket, registry: CollectorRegistry, pulse: Pulse
) -> None:
    instance = Instance(plan)
    readiness = Readiness(
        instance.store.database,
        pulse,
        is_running=lambda: instance.is_running,
        tick_limit_s=max(LEAST_TICK_LIMIT_S, 3 * plan.settings.poll_seconds),
    )
    agents = agent_routes(instance.steering.agents, instance.tokens)
    async with serving(make_app(readiness.problems, registry, agents), listener):
        _log().info("listening", url=url_of(listener), database=instance.store.database.url)
        await _run_instance(instance)


async def _run_instance(instance: Instance) -> None:
    def say_stopping() -> None:
        running = len(instance.worker.running) if instance.worker is not None else 0
        hint = "a second signal hands back at once what still runs" if running else None
        _log().info("stopping", running=running, **({"hint": hint} if hint else {}))

    if instance.worker is not None and not instance.plan.tasks:
        _log().warning("no task functions are registered", hint="name the modules that have them by --tasks")
    await instance.run(on_stopping=say_stopping)


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

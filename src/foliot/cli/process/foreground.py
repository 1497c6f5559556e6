"""Run an instance as a process: logs, metrics and event loop. The instance handles signals itself."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import structlog

from foliot.cli.support.exits import ending_by
from foliot.instance.preparation import spare_collector
from foliot.instance.runtime import Instance
from foliot.instance.settings import Settings
from foliot.instance.spec import InstanceRole, InstanceSpec
from foliot.model.error_codes import Exit
from foliot.model.event import Observer
from foliot.sdk.app import Foliot
from foliot.telemetry import logs
from foliot.telemetry.rendering import sign


def run_role(
    role: InstanceRole, app: Foliot, settings: Settings, *, queues: Sequence[str] | None = None
) -> None:
    """Run one role. The database schema is not upgraded here."""
    with logged(settings):
        plan = plan_of(
            app, settings, frozenset({role}), [logs.LogObserver()], queues=queues, is_own_process=True
        )
        if settings.metrics_port is None:
            run_loop(lambda: run_instance(make_instance(plan)))
        else:
            run_loop(lambda: _run_with_probes(plan, settings.metrics_host, settings.metrics_port or 0))


@contextmanager
def logged(settings: Settings) -> Iterator[None]:
    """Configure logging from the settings. With JSON, an error that ends the process is logged as a line."""
    logs.configure(settings.effective_log_format, settings.log_level)
    try:
        yield
    except Exception as error:
        if settings.effective_log_format != "json":
            raise
        ending = ending_by(error)
        if ending is None:
            log().exception("process_failed", exit_code=int(Exit.FAILED))
            raise SystemExit(Exit.FAILED) from None
        log().error("process_failed", error=ending.message, exit_code=int(ending.code))
        raise SystemExit(ending.code) from None


def make_instance(plan: InstanceSpec) -> Instance:
    """Create an instance and add its id to all further log lines of this process."""
    instance = Instance(plan)
    sign(instance.instance_id)
    return instance


async def _run_with_probes(plan: InstanceSpec, host: str, port: int) -> None:
    """Run an instance with a probe server, which starts before the instance and ends after it."""
    from foliot.api.probe_server import ProbeServer
    from foliot.telemetry.health.probes import Probes

    probes = Probes(plan.clock)
    async with ProbeServer(probes).listening(host, port) as url:
        instance = make_instance(replace(plan, observers=[*plan.observers, *probes.observers]))
        instance.show(probes)
        log().info("listening", url=url, serves="metrics and health")
        await run_instance(instance)


def plan_of(
    app: Foliot,
    settings: Settings,
    roles: frozenset[InstanceRole],
    observers: Sequence[Observer],
    *,
    queues: Sequence[str] | None = None,
    upgrades_schema: bool = False,
    is_own_process: bool = False,
) -> InstanceSpec:
    return InstanceSpec(
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


async def run_instance(instance: Instance, on_started: Callable[[], Awaitable[None]] | None = None) -> None:
    def say_stopping() -> None:
        running = len(instance.worker.running) if instance.worker is not None else 0
        hint = "a second signal hands back at once what still runs" if running else None
        log().info("stopping", running=running, **({"hint": hint} if hint else {}))

    if instance.worker is not None and not instance.plan.tasks and not instance.plan.consumers:
        log().warning("no task functions are registered", hint="name the modules that have them by --tasks")
    await instance.run(on_started=on_started, on_stopping=say_stopping)


def log() -> Any:
    return structlog.get_logger()


def run_loop(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    spare_collector()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not available on every platform; only faster
        return None
    return uvloop.new_event_loop

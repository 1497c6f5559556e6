"""`foliot api`, `scheduler`, `worker`, `relay`: run one role per process; any number may share a database."""

from typing import Annotated

import typer

from foliot.cli.support.options import HostOption, MetricsPortOption, PortOption, TasksOption


def api(
    host: HostOption = None,
    port: PortOption = None,
    tasks: TasksOption = None,
) -> None:
    """Serve the REST API.

    It needs FOLIOT_ADMIN_KEY until there is another key.
    """
    from foliot.cli.process.serving import run_api
    from foliot.cli.process.task_modules import load_app
    from foliot.instance.settings import load_settings

    app = load_app(tasks or ())
    run_api(app, load_settings(database_url=app.url, api_host=host, api_port=port))


def scheduler(metrics_port: MetricsPortOption = None) -> None:
    """Run a scheduler.

    It turns due times into executions while it leads, and stands by otherwise.
    """
    from foliot.cli.process.foreground import run_role
    from foliot.instance.settings import load_settings
    from foliot.instance.spec import InstanceRole
    from foliot.sdk.app import Foliot

    run_role(InstanceRole.SCHEDULER, Foliot(), load_settings(metrics_port=metrics_port))


def worker(
    queues: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Serve these queues only.", show_default="all queues"),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            help="How many executions to run at once.", show_default="FOLIOT_WORKER_CONCURRENCY, else 50"
        ),
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Drain and end when the worker uses more memory than this; kill an isolated function that "
            "does.",
            show_default="FOLIOT_WORKER_MEMORY_LIMIT, else no limit",
        ),
    ] = None,
    cpu_limit: Annotated[
        int | None,
        typer.Option(
            metavar="CORES",
            help="Use at most this many cores.",
            show_default="FOLIOT_WORKER_CPU_LIMIT, else all",
        ),
    ] = None,
    tasks: TasksOption = None,
    metrics_port: MetricsPortOption = None,
) -> None:
    """Run a worker.

    It claims executions, carries them out and records what happened.
    """
    names = _names(queues)

    from foliot.cli.process.foreground import run_role
    from foliot.cli.process.task_modules import load_app
    from foliot.instance.settings import load_settings
    from foliot.instance.spec import InstanceRole

    app = load_app(tasks or ())
    settings = load_settings(
        database_url=app.url,
        worker_concurrency=concurrency,
        worker_memory_limit=memory_limit,
        worker_cpu_limit=cpu_limit,
        metrics_port=metrics_port,
    )
    run_role(InstanceRole.WORKER, app, settings, queues=names)


def relay(metrics_port: MetricsPortOption = None) -> None:
    """Ship events to the broker that FOLIOT_RELAY names.

    One relay is active at a time; others stand by.
    """
    from foliot.cli.process.foreground import run_role
    from foliot.instance.settings import load_settings
    from foliot.instance.spec import InstanceRole
    from foliot.sdk.app import Foliot

    run_role(InstanceRole.RELAY, Foliot(), load_settings(metrics_port=metrics_port))


def _names(queues: str | None) -> list[str] | None:
    if queues is None:
        return None
    names = [name.strip() for name in queues.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter("name at least one queue; leave it out for all", param_hint="--queues")
    return names

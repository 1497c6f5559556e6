"""`foliot up`: run everything in one process. `Foliot.run()` does the same."""

from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.support.exits import run_command
from foliot.cli.support.options import HostOption, PortOption, TasksOption
from foliot.model.error_codes import Exit

if TYPE_CHECKING:
    from foliot.sdk.app import Foliot


def up(
    tasks: TasksOption = None,
    demo: Annotated[bool, typer.Option("--demo", help="Add a few live demo schedules.")] = False,
    host: HostOption = None,
    port: PortOption = None,
) -> None:
    """Run everything in one process.

    HTTP, a scheduler and a worker, on one database; its schema is brought up to date first.
    """
    from foliot.cli.process.serving import run_everything
    from foliot.cli.process.task_modules import load_app
    from foliot.instance.settings import load_settings

    extra = []
    if demo:
        from foliot.cli.process.demo import demo_app

        extra.append(demo_app())
    app = load_app(tasks or (), *extra)
    run_everything(app, load_settings(database_url=app.url, api_host=host, api_port=port))


def run_app(app: "Foliot") -> None:
    """Run an application until it is stopped. On an error, exit with the exit code of `foliot up`."""
    from foliot.cli.process.task_modules import refuse_while_loading
    from foliot.worker.isolation.loading import refuse_in_template

    refuse_while_loading()
    refuse_in_template()

    from foliot.cli.process.serving import run_everything
    from foliot.instance.settings import load_settings

    code = run_command(lambda: run_everything(app, load_settings(database_url=app.url)))
    if code != Exit.OK:
        raise SystemExit(code)

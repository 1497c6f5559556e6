"""The application `foliot` with all commands."""

from collections.abc import Sequence
from typing import Annotated

import typer

from foliot.cli.commands import (
    calendar,
    cluster,
    cron,
    db,
    doctor,
    event,
    execution,
    import_schedules,
    instance,
    key,
    notification,
    queue,
    roles,
    schedule,
    secret,
    sign_in,
    simulate,
    task,
    up,
    verify,
    version,
)
from foliot.cli.support.api_failures import ending
from foliot.cli.support.exits import run_command

app = typer.Typer(
    name="foliot",
    help="A distributed scheduler: every due time is decided exactly once.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        version.version()
        raise typer.Exit


@app.callback(invoke_without_command=True)
def foliot(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


app.command()(up.up)
app.command()(roles.api)
app.command()(roles.scheduler)
app.command()(roles.worker)
app.command()(roles.relay)
app.add_typer(db.app, name="db")
app.add_typer(schedule.app, name="schedule")
app.add_typer(execution.app, name="execution")
app.add_typer(task.app, name="task")
app.add_typer(instance.app, name="instance")
app.add_typer(cluster.app, name="cluster")
app.add_typer(queue.app, name="queue")
app.add_typer(event.app, name="event")
app.add_typer(cron.app, name="cron")
app.add_typer(key.app, name="key")
app.add_typer(secret.app, name="secret")
app.add_typer(calendar.app, name="calendar")
app.add_typer(notification.app, name="notification")
app.add_typer(import_schedules.app, name="import")
app.command("sign-in")(sign_in.sign_in)
app.command()(verify.verify)
app.command()(simulate.simulate)
app.command()(doctor.doctor)
app.command()(version.version)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code. None: the arguments of this process."""
    command = typer.main.get_command(app)
    return run_command(
        lambda: ending(lambda: command.main(args=arguments, prog_name="foliot", standalone_mode=False))
    )

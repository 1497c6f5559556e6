"""`foliot version`."""

import platform

import typer

from foliot.cli.support.output import Output, OutputOption, print_json
from foliot.version import __version__


def version(output: OutputOption = Output.TABLE) -> None:
    """Show the version."""
    if output is Output.JSON:
        print_json({"version": __version__, "python": platform.python_version()})
    else:
        typer.echo(f"foliot {__version__} (Python {platform.python_version()})")

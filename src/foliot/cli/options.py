"""Options that several commands share."""

from typing import Annotated

import typer

TasksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tasks",
        metavar="MODULE_OR_FILE",
        help="Take the task functions and schedules of this module's Foliot objects; repeatable.",
    ),
]

HostOption = Annotated[
    str | None, typer.Option(help="Where to listen.", show_default="FOLIOT_API_HOST, else 127.0.0.1")
]
PortOption = Annotated[
    int | None, typer.Option(help="Which port to listen on.", show_default="FOLIOT_API_PORT, else 8700")
]

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

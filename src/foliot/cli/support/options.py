"""Options and groups of options that several commands share."""

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from foliot.cli.support.output import Format, FormatOption, say

if TYPE_CHECKING:
    from foliot.cli.support.rest_client import ApiClient

TasksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tasks",
        metavar="MODULE_OR_FILE",
        help="Use the task functions and schedules of the Foliot objects in this module. Repeatable.",
    ),
]

HostOption = Annotated[
    str | None, typer.Option(help="Where to listen.", show_default="FOLIOT_API_HOST, else 127.0.0.1")
]
PortOption = Annotated[
    int | None, typer.Option(help="Which port to listen on.", show_default="FOLIOT_API_PORT, else 8700")
]

MetricsPortOption = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        metavar="PORT",
        help="Serve /metrics, /healthz and /readyz on this port; 0: any free port, named in the log.",
        show_default="FOLIOT_METRICS_PORT, else none",
    ),
]

YesOption = Annotated[bool, typer.Option("-y", "--yes", help="Don't ask for confirmation.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]
ReasonOption = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Reason, stored in the audit.")
]


def one_of(*words: str) -> Any:
    """Return settings of an option with a few allowed words. The server checks them; help shows them."""
    return {"metavar": "|".join(words), "autocompletion": lambda: list(words)}


@dataclass(frozen=True, slots=True)
class Connection:
    """Options that choose the server and the key."""

    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            metavar="URL",
            help="URL of the server.",
            show_default="FOLIOT_URL, else this folder's `foliot up`",
        ),
    ] = None
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help="The API key. Other users of this machine can see it here: better set FOLIOT_KEY.",
            show_default="FOLIOT_KEY",
        ),
    ] = None

    def open(self) -> "AbstractContextManager[ApiClient]":
        from foliot.cli.support.server_choice import connected

        return connected(self.url, self.key)


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """Options of every command that changes something. A test checks that all of them have these."""

    yes: YesOption = False
    dry_run: DryRunOption = False

    def is_only_shown(self, what: str) -> bool:
        """With --dry-run, print what the command would do and return True. The command must then do nothing.

        `what` begins with a verb: "pause nightly".
        """
        if self.dry_run:
            say(f"would {what}")
        return self.dry_run


USUAL_LIMIT = 50


@dataclass(frozen=True, slots=True)
class Listing:
    """Options of lists: how much to show, and how."""

    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", metavar="N", help="Maximum number to show.", min=1, show_default=str(USUAL_LIMIT)
        ),
    ] = None
    all: Annotated[bool, typer.Option("--all", help="Show all.")] = False
    output: FormatOption = Format.TABLE
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every 2 seconds.")] = False

    @property
    def max_items(self) -> int | None:
        return None if self.all else self.limit or USUAL_LIMIT


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter of a command that is a group of options by the options of the group."""
    hints = get_type_hints(command, include_extras=True)
    own = list(inspect.signature(command).parameters.values())
    groups = {each.name: hints[each.name] for each in own if is_dataclass(hints[each.name])}

    @wraps(command)
    def taking_options(**given: Any) -> None:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    parameters = [
        parameter
        for each in own
        for parameter in (
            _options_of(groups[each.name]) if each.name in groups else [_parameter(each, hints)]
        )
    ]
    # Typer reads signature and annotations. Those copied by `wraps` still have the groups.
    taking_options.__dict__.pop("__wrapped__", None)
    taking_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    taking_options.__annotations__ = {each.name: each.annotation for each in parameters}
    return taking_options


def _parameter(own: inspect.Parameter, hints: dict[str, Any]) -> inspect.Parameter:
    return own.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[own.name])


def _options_of(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        _parameter(
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default), hints
        )
        for field in fields(group)
    ]

"""Find schedules by name or id, and other things that a user names."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import typer

from foliot.cli.support.api_failures import ApiRefusedError, CommandError, exit_of, tell
from foliot.model.error_codes import Exit
from foliot.model.errors import FoliotError

if TYPE_CHECKING:
    from foliot.cli.support.rest_client import ApiClient


def find_schedule(api: "ApiClient", name_or_id: str) -> dict[str, Any]:
    """Return a schedule by name or id. Raises CommandError if there is none."""
    if _is_id(name_or_id):
        try:
            found: dict[str, Any] = api.get(f"schedules/{UUID(name_or_id)}")
            return found
        except ApiRefusedError as error:
            if error.exit is not Exit.NOT_FOUND:
                raise
    # A name may look like an id.
    named = api.page("schedules", {"name": name_or_id, "page_size": 1}).items
    if not named:
        raise CommandError(f'there is no schedule "{name_or_id}"', Exit.NOT_FOUND)
    return named[0]


def schedule_path(api: "ApiClient", name_or_id: str, *parts: str) -> str:
    return "/".join(["schedules", str(find_schedule(api, name_or_id)["schedule_id"]), *parts])


def require_named(api: "ApiClient", path: str, name: str, kind: str) -> None:
    """Check that a list has an item of this name. Raises CommandError if not."""
    if all(item["name"] != name for item in api.items(path).items):
        raise CommandError(f'there is no {kind} "{name}"', Exit.NOT_FOUND)


def execution_path(execution_id: str, *parts: str) -> str:
    """Return the API path of an execution. Raises CommandError if the id is malformed."""
    if not _is_id(execution_id):
        raise CommandError(f'there is no execution "{execution_id}"', Exit.NOT_FOUND)
    return "/".join(["executions", str(UUID(execution_id)), *parts])


def on_each(names: Sequence[str], act: Callable[[str], None]) -> None:
    """Call `act` for each name, even if others fail. Ends with the exit code of the first failure."""
    codes = []
    for name in dict.fromkeys(names):
        try:
            act(name)
        except FoliotError as error:
            if len(names) == 1:
                raise
            message = str(error) if name in str(error) else f"{name}: {error}"
            codes.append(tell(CommandError(message, exit_of(error))))
    if codes:
        raise typer.Exit(codes[0])


def _is_id(text: str) -> bool:
    try:
        return len(text) >= 32 and bool(UUID(text))
    except ValueError:
        return False

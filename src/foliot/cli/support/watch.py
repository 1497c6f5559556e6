"""Refresh lists, and follow executions to their end.

The stream of changes only says when to read an execution again. If the stream is not available, or if little
time is left, the execution is polled every half second.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

import typer

from foliot.cli.support.api_failures import CommandError, TimedOutError, may_pass, tell
from foliot.cli.support.options import Listing
from foliot.cli.support.output import Document, View, is_terminal, say, show_list
from foliot.timing.clock import SystemClock

if TYPE_CHECKING:
    from foliot.cli.support.rest_client import ApiClient, ListedItems, StreamEvent

REFRESH_S = 2.0
POLL_S = 0.5
SILENCE_S = 20.0
"""Timeout for the next event. The stream sends a heartbeat every 15 seconds."""
PATIENCE_S = 60.0
OPEN = ("pending", "running", "retrying")

_CLEAR = "\x1b[2J\x1b[H"


# --- lists -----------------------------------------------------------------------------------------


def show(listing: Listing, fetch: "Callable[[], ListedItems]", view: View) -> None:
    """Show a list once or, with `--watch`, every 2 seconds until Ctrl-C."""
    if not listing.watch:
        _show(listing, fetch(), view)
        return
    with suppress(KeyboardInterrupt):
        _show(listing, fetch(), view)
        while True:
            time.sleep(REFRESH_S)
            _show_again(listing, fetch, view)


def _show_again(listing: Listing, fetch: "Callable[[], ListedItems]", view: View) -> None:
    try:
        found = fetch()
    except CommandError as error:
        if not may_pass(error):
            raise
        tell(error)
    else:
        _show(listing, found, view)


def _show(listing: Listing, found: "ListedItems", view: View) -> None:
    if listing.watch and is_terminal(sys.stdout):
        typer.echo(_CLEAR, nl=False)
    show_list(found.items, listing.output, view, SystemClock().now())
    if found.has_more and listing.limit is None:
        say(f"foliot: there are more {view.kind} than these {len(found.items)}; --all shows them")


# --- executions ------------------------------------------------------------------------------------


def follow(
    api: "ApiClient",
    execution: Document,
    on_change: Callable[[Document], None],
    *,
    timeout_s: float | None = None,
) -> Document:
    """Wait for an execution to end and return it. `on_change` gets each new state. Raises TimedOutError."""
    execution_id = str(execution["execution_id"])
    patience = ReconnectTimer()
    for _ in _polls(api, execution, timeout_s):
        with patience:
            execution = api.get(f"executions/{execution_id}")
        on_change(execution)
        if execution["status"] not in OPEN:
            return execution
    raise TimedOutError(f"execution {execution_id} is still {execution['status']}")


def _polls(api: "ApiClient", execution: Document, timeout_s: float | None) -> Iterator[None]:
    """Yield whenever the execution should be read again, until the timeout."""
    clock = SystemClock()
    until = float("inf") if timeout_s is None else clock.monotonic() + timeout_s
    wanted = {"schedule_id": execution["schedule_id"], "kinds": "execution"}
    while until - clock.monotonic() > SILENCE_S:
        try:
            with api.stream(wanted, silence_s=SILENCE_S) as events:
                yield  # it may have ended before the stream began
                for event in events:
                    if _is_about(event, execution["execution_id"]):
                        yield
                    if until - clock.monotonic() <= SILENCE_S:
                        break
        except CommandError:
            yield
        time.sleep(POLL_S)
    while True:
        yield
        left_s = until - clock.monotonic()
        if left_s <= 0:
            return
        time.sleep(min(POLL_S, left_s))


def _is_about(event: "StreamEvent", execution_id: Any) -> bool:
    """Whether an event is a reason to read the execution. Heartbeats and notices of lost events are, too."""
    if event.kind != "execution":
        return True
    try:
        return bool(json.loads(event.data)["execution_id"] == execution_id)
    except (ValueError, TypeError, KeyError):
        return True


def poll(check: Callable[[], bool], *, timeout_s: float | None = None, what: str = "") -> None:
    """Call `check` until it returns True. Raises TimedOutError with the text `what`."""
    clock = SystemClock()
    until = float("inf") if timeout_s is None else clock.monotonic() + timeout_s
    patience = ReconnectTimer()
    is_over = False
    while not is_over:
        with patience:
            is_over = check()
        left_s = until - clock.monotonic()
        if not is_over and left_s <= 0:
            raise TimedOutError(what)
        time.sleep(0 if is_over else min(POLL_S, left_s))


class ReconnectTimer:
    """A context manager that ignores an unreachable server for 60 s: executions go on without it."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._since: float | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None:
            self._since = None
        if not isinstance(error, CommandError) or not may_pass(error):
            return False
        if self._since is None:
            self._since = self._clock.monotonic()
            tell(error)
        return self._clock.monotonic() - self._since < PATIENCE_S

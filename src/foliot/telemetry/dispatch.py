"""Dispatch events to one handler per type, and catch the handlers' exceptions."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar, cast

import structlog

from foliot.model.event import DomainEvent

Kind = TypeVar("Kind", bound=DomainEvent)


class Dispatch:
    """Calls the handler of each event's type. Ignores events without a handler. Never raises."""

    def __init__(self) -> None:
        self._handlers: dict[type[DomainEvent], Callable[[DomainEvent], None]] = {}
        self._failed: set[type[DomainEvent]] = set()

    def on(self, kind: type[Kind], handler: Callable[[Kind], None]) -> None:
        self._handlers[kind] = cast("Callable[[DomainEvent], None]", handler)

    def handles(self, kind: type[DomainEvent]) -> bool:
        return kind in self._handlers

    def notify(self, event: DomainEvent) -> None:
        handler = self._handlers.get(type(event))
        if handler is None:
            return
        try:
            handler(event)
        except Exception as error:
            self._report(event, error)

    def _report(self, event: DomainEvent, error: Exception) -> None:
        """Log a handler's error once per type of event: a defect must not flood the log."""
        if type(event) in self._failed:
            return
        self._failed.add(type(event))
        with suppress(Exception):
            structlog.get_logger().error(
                "observer_failed",
                observer=type(self).__name__,
                told_of=type(event).__name__,
                error=f"{type(error).__name__}: {error}",
            )

"""What must not be said aloud by what runs here now: set by whoever puts secrets in place, asked by logs."""

from collections.abc import Callable
from contextvars import ContextVar

hiding: ContextVar[Callable[[str], str] | None] = ContextVar("foliot_hiding", default=None)
"""Hides secrets in a text. It follows awaits, tasks and threads."""

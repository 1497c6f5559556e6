"""Lets a task function's own spans join the trace of its execution.

This module does not import OpenTelemetry: a function that creates spans has imported it already. The span of
the attempt is attached as a remote parent, because it is created only when the attempt has ended.
"""

import sys
import threading
from typing import Any

from foliot.kinds.target_protocol import Fire
from foliot.model.trace import parse_traceparent

FLUSH_S = 2.0
"""Maximum seconds that an ending process waits for its spans to be sent."""


class joined:  # noqa: N801 - reads as what it does
    """Makes spans created in this context, also by tasks and threads started in it, children of the
    attempt's."""

    __slots__ = ("_fire", "_token")

    def __init__(self, fire: Fire) -> None:
        self._fire = fire
        self._token: Any = None

    def __enter__(self) -> None:
        if "opentelemetry.trace" not in sys.modules:
            return
        context = parse_traceparent(self._fire.traceparent)
        if context is None:
            return
        from opentelemetry.context import attach
        from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

        flags = TraceFlags(TraceFlags.SAMPLED if context.is_sampled else TraceFlags.DEFAULT)
        span = SpanContext(context.trace_id, context.span_id, is_remote=True, trace_flags=flags)
        self._token = attach(set_span_in_context(NonRecordingSpan(span)))

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            from opentelemetry.context import detach

            detach(self._token)


def flush() -> None:
    """Send the function's spans before this process exits: it ends without running exit handlers."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return
    send = getattr(trace.get_tracer_provider(), "force_flush", None)
    if send is not None:
        # In a thread, because not every provider respects its timeout argument.
        sending = threading.Thread(target=send, args=(int(FLUSH_S * 1000),), daemon=True)
        sending.start()
        sending.join(FLUSH_S)

"""The trace of an execution and the ids of its spans, computed from the execution's id.

Nothing is passed along or stored for this. The trace id follows from the execution's id; a span id follows
from the execution's id, the kind of span and the attempt. So any process can name the parent of its span,
also after a crash, and the history leads to the trace. Only an execution that was requested within a caller's
trace continues that trace, and stores it in its row (`trace_context`, a W3C `traceparent`).

    create    of a schedule's version, in the schedule's own trace
    fire      the root of an execution's trace, or a child of the caller's span; linked to `create`
    execute   an attempt, child of `fire`
    settle    storing how the attempt ended, child of `execute`
    cancel    the end of an execution that was waiting, child of `fire`
"""

import re
from collections.abc import Callable
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple
from uuid import UUID

_LOW = (1 << 64) - 1
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_SAMPLED = 0x01


class SpanName(StrEnum):
    CREATE = "create"
    FIRE = "fire"
    EXECUTE = "execute"
    SETTLE = "settle"
    CANCEL = "cancel"


class TraceContext(NamedTuple):
    """A reference to a span. Its text is a W3C `traceparent`."""

    trace_id: int
    span_id: int
    is_sampled: bool = True

    def __str__(self) -> str:
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.is_sampled:02x}"


Sampling = Callable[[int, str | None], bool]
"""Decides whether the spans of a trace are recorded, by its id and the context that it continues."""


def sampled_by_caller(_trace_id: int, trace_context: str | None) -> bool:
    """Sampling for instances that make no spans: true, unless the caller said no.

    An agent that follows its parent's decision must not lose its spans because of us.
    """
    continued = parse_traceparent(trace_context)
    return continued is None or continued.is_sampled


def parse_traceparent(text: str | None) -> TraceContext | None:
    """Parse a `traceparent`; None: there is none, or W3C Trace Context does not allow it."""
    found = _TRACEPARENT.fullmatch(text) if text else None
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more is not None):
        return None
    context = TraceContext(int(trace_id, 16), int(span_id, 16), bool(int(flags, 16) & _SAMPLED))
    return context if context.trace_id and context.span_id else None


def trace_id_of(identity: UUID, trace_context: str | None = None) -> int:
    """Return the trace id of an execution, continuing this context if there is one, or of a schedule.

    The first half is that of the given id, so that one can be recognised by the other. The second half is a
    hash: samplers and collectors expect it to be random, but a UUIDv7 has fixed bits there and counts up
    within a batch.
    """
    continued = parse_traceparent(trace_context) if trace_context is not None else None
    if continued is not None:
        return continued.trace_id
    return identity.int & ~_LOW | int.from_bytes(blake2b(identity.bytes, digest_size=8).digest())


def trace_id_text(identity: UUID, trace_context: str | None = None) -> str:
    return f"{trace_id_of(identity, trace_context):032x}"


def create_span(schedule_id: UUID, aggregate_version: int) -> TraceContext:
    """Return the span of the change that made this version."""
    return TraceContext(trace_id_of(schedule_id), _span_id(schedule_id, SpanName.CREATE, aggregate_version))


def fire_span(execution_id: UUID, trace_context: str | None = None) -> TraceContext:
    return _span(execution_id, SpanName.FIRE, 0, trace_context)


def execute_span(execution_id: UUID, attempt: int, trace_context: str | None = None) -> TraceContext:
    return _span(execution_id, SpanName.EXECUTE, attempt, trace_context)


def settle_span(execution_id: UUID, attempt: int, trace_context: str | None = None) -> TraceContext:
    return _span(execution_id, SpanName.SETTLE, attempt, trace_context)


def cancel_span(execution_id: UUID, attempt: int, trace_context: str | None = None) -> TraceContext:
    """Return the span of a cancel after this many attempts: after a manual retry there may be another."""
    return _span(execution_id, SpanName.CANCEL, attempt, trace_context)


def _span(execution_id: UUID, name: SpanName, number: int, trace_context: str | None) -> TraceContext:
    span_id = _span_id(execution_id, name, number)
    continued = parse_traceparent(trace_context) if trace_context is not None else None
    if continued is not None:
        return TraceContext(continued.trace_id, span_id, continued.is_sampled)
    return TraceContext(trace_id_of(execution_id), span_id)


def _span_id(identity: UUID, name: SpanName, number: int) -> int:
    digest = blake2b(identity.bytes + f"{name} {number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) or 1  # zero is not a valid span id

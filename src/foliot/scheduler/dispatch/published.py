"""Remembers what a leader has published, so that it does not publish it again too soon."""

from collections import OrderedDict
from typing import NamedTuple
from uuid import UUID

MAX_REMEMBERED = 50_000


class _Once(NamedTuple):
    attempt: int
    at: float
    times: int


class Published:
    """Executions by id and attempt: one that waits again after a claim counts as new.

    Bounded: beyond the limit the oldest are forgotten. A message published twice does no harm.
    """

    def __init__(self, *, first_s: float, longest_s: float, limit: int = MAX_REMEMBERED) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._limit = limit
        self._known: OrderedDict[UUID, _Once] = OrderedDict()

    def knows(self, execution_id: UUID, attempt: int) -> bool:
        known = self._known.get(execution_id)
        return known is not None and known.attempt == attempt

    def is_due_again(self, execution_id: UUID, attempt: int, now: float) -> bool:
        """Whether to publish a waiting execution again. The pause doubles each time."""
        known = self._known.get(execution_id)
        if known is None or known.attempt != attempt:
            return True
        # Caps the exponent: after 64 doublings the maximum is long reached.
        pause_s = min(self._first_s * 2.0 ** min(known.times - 1, 64), self._longest_s)
        return now - known.at >= pause_s

    def add(self, execution_id: UUID, attempt: int, now: float) -> None:
        known = self._known.pop(execution_id, None)
        times = known.times + 1 if known is not None and known.attempt == attempt else 1
        self._known[execution_id] = _Once(attempt, now, times)
        if len(self._known) > self._limit:
            self._known.popitem(last=False)

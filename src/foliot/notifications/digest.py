"""Limit messages per rule: up to 20 per minute are sent alone, the rest are combined into one.

When a database fails, ten thousand schedules may fail within seconds. The person on call needs that number
and some names. Ten thousand messages would hide this and overload the receiver.
"""

from collections import deque
from collections.abc import Iterable
from itertools import groupby
from uuid import UUID

from foliot.model.incident import Notice
from foliot.model.notification import NotificationType

MAX_ALONE = 20
WINDOW_S = 60.0
MAX_NAMED = 50
"""Maximum number of schedules that a combined message names."""


class MessageDigest:
    """Remembers what each rule sent recently. Lost with the lease: then a rule may exceed its limit once."""

    def __init__(self) -> None:
        self._sent_at: dict[UUID, deque[float]] = {}

    def gather(self, notices: Iterable[Notice], at: float) -> list[Notice]:
        """Return the messages to send for these notices. `at`: monotonic time in seconds."""
        kept: list[Notice] = []
        beyond: list[Notice] = []
        for notice in notices:
            sent_at = self._sent_at.setdefault(notice.rule_id, deque())
            while sent_at and at - sent_at[0] >= WINDOW_S:
                sent_at.popleft()
            if len(sent_at) < MAX_ALONE:
                sent_at.append(at)
                kept.append(notice)
            else:
                beyond.append(notice)
        if kept:
            # Rules come and go: forget those that have sent nothing recently.
            self._sent_at = {
                rule_id: sent_at
                for rule_id, sent_at in self._sent_at.items()
                if sent_at and at - sent_at[-1] < WINDOW_S
            }
        beyond.sort(key=_kind_of)
        return kept + [_gathered(list(alike)) for _, alike in groupby(beyond, key=_kind_of)]


def _kind_of(notice: Notice) -> tuple[UUID, str]:
    return notice.rule_id, notice.type.value


def _gathered(notices: list[Notice]) -> Notice:
    first = notices[0]
    if len(notices) == 1:
        return first
    data = {
        "host_id": first.data["host_id"],
        "rule": first.data["rule"],
        "of": first.type.value,
        "count": len(notices),
        "schedules": [each.data["schedule"] for each in notices[:MAX_NAMED]],
    }
    return first._replace(
        type=NotificationType.GATHERED, schedule_id=None, dedupe_key=f"gathered:{first.dedupe_key}", data=data
    )

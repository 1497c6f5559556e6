"""The notifier's memory under one lease. It is discarded when the lease ends."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from foliot.model.lease import Lease
from foliot.notifications.digest import MessageDigest
from foliot.notifications.lateness_sql import Behind, Queue

NEVER = float("-inf")


@dataclass(slots=True)
class Round:
    """Progress of a scan through the schedules that rules watch."""

    place: tuple[UUID, str] | None = None
    """Where to continue: a host, and the last schedule name that was read. None: at the beginning."""
    pages_left: int = 0
    """Pages that may still be read until the next sweep interval."""
    began_ts: datetime | None = None
    before_ts: datetime | None = None
    """When the last complete round began. None: there was none under this lease."""
    is_whole: bool = True
    """Whether all pages of this round could be read."""
    successes: dict[UUID, datetime] = field(default_factory=dict)
    """Cache: last success of schedules whose last run was no success, found by reading their runs."""


@dataclass(slots=True)
class NotifierState:
    lease: Lease
    since: datetime | None = None
    """All failures that ended before this are decided. Always older than the notifier's overlap."""
    reading: tuple[datetime, UUID] | None = None
    """Cursor of an unfinished scan for failures: end and id of the last one read. None: finished."""
    seen: dict[tuple[UUID, int], datetime] = field(default_factory=dict)
    """Failures after `since` that are already decided, by execution and attempt, with their ends."""
    waiting: dict[Queue, Behind] = field(default_factory=dict)
    """Queues with more late executions than one scan reads, and where the next scan continues."""
    running: tuple[datetime, UUID] | None = None
    """Where the next scan for executions that started too late continues. None: at the beginning."""
    round: Round = field(default_factory=Round)
    swept_at: float = NEVER
    pruned_at: float = NEVER
    remembered_at: float = NEVER
    gathering: MessageDigest = field(default_factory=MessageDigest)

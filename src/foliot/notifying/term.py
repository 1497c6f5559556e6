"""What a notifier knows under one lease, and forgets with it."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from foliot.model.lease import Lease
from foliot.notifying.gathering import Gathering
from foliot.store.lateness import Behind, Queue

NEVER = float("-inf")


@dataclass(slots=True)
class Round:
    """How far the schedules that rules watch have been gone through."""

    place: tuple[UUID, str] | None = None
    """Where it goes on: a host, and the name behind which; None: at the beginning."""
    pages_left: int = 0
    """That may be read before the next pause."""
    began_ts: datetime | None = None
    before_ts: datetime | None = None
    """When the last round began that has left nothing out; None: there was none under this lease."""
    is_whole: bool = True
    """No page of this round had to be left out."""
    successes: dict[UUID, datetime] = field(default_factory=dict)
    """When schedules were well that are not well now: it was found by going through their runs."""


@dataclass(slots=True)
class NotifierState:
    lease: Lease
    since: datetime | None = None
    """All failures that ended before are decided: never less than the overlap ago."""
    reading: tuple[datetime, UUID] | None = None
    """Behind which failure the next look goes on, where there were more than one look reads."""
    seen: dict[tuple[UUID, int], datetime] = field(default_factory=dict)
    """Of those behind `since`, what is decided."""
    waiting: dict[Queue, Behind] = field(default_factory=dict)
    """Queues of which more waits for too long than one look reads, and where the next goes on."""
    running: tuple[datetime, UUID] | None = None
    """Where the next scan for executions that started too late goes on; None: at the beginning."""
    round: Round = field(default_factory=Round)
    swept_at: float = NEVER
    pruned_at: float = NEVER
    remembered_at: float = NEVER
    gathering: Gathering = field(default_factory=Gathering)

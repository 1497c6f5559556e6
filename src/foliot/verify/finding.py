"""Findings, counters and verdict of a verification."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from foliot.model.ids import first_id_at
from foliot.model.instant import EPOCH


class FindingKind(StrEnum):
    """The kind of violation."""

    GAP = "gap"
    """No row decides a due time."""
    DOUBLE = "double"
    """Two rows decide one time."""
    PHANTOM = "phantom"
    """A row for a time that was not due, or for a schedule or version that does not exist."""
    MISCOUNT = "miscount"
    """A row claims to decide more or fewer times than were due."""
    EARLY = "early"
    """Decided before it was due."""
    LATE = "late"
    """Fired later than its policy allows, or skipped as late although it was not."""
    FORBIDDEN = "forbidden"
    """Fired although the window or a calendar excludes it, or skipped although none does."""
    STATE = "state"
    """An execution with an impossible state."""
    ATTEMPT = "attempt"
    """Attempts that overlap, run backwards or are missing."""
    EPOCH = "epoch"
    """More leader changes than the epoch has counted, or an epoch that decreased."""
    OUTBOX_GAP = "outbox_gap"
    """An offset or a fired event without a message."""
    OUTBOX_DOUBLE = "outbox_double"
    """An event that is twice in the outbox, or that no execution fired."""
    OUTBOX_ORDER = "outbox_order"
    """Messages whose offsets are not in commit order."""


class Verdict(StrEnum):
    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"
    """Nothing was found that could be checked."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation, and what would be correct."""

    kind: FindingKind
    wrong: str
    right: str
    at: datetime | None = None
    """The time it is about; for several in a row, the first. None: it has no time."""
    schedule_name: str | None = None
    schedule_id: UUID | None = None
    count: int = 1
    """Number of consecutive times it applies to."""


@dataclass(frozen=True, slots=True)
class VerifiedSpan:
    """The period that is checked, both ends included."""

    first: datetime
    last: datetime

    @property
    def first_id(self) -> UUID:
        """The smallest possible id of a row in the span. Ids are created up to a minute before their rows."""
        return first_id_at(max(EPOCH, self.first - timedelta(minutes=1)))


@dataclass(slots=True)
class CheckCounts:
    """Counters of what was checked."""

    schedules: int = 0
    executions: int = 0
    due_times: int = 0
    """Due times that were computed and compared with the execution rows."""
    waiting: int = 0
    """Due times that are not decided yet: the schedule's next fire time is at or before them."""
    messages: int = 0
    worst_late_s: float = 0.0
    """The longest delay between a fire time and the row that fired it, in seconds."""
    not_checked: Counter[str] = field(default_factory=Counter)
    """What could not be checked, by reason, with counts."""


@dataclass(frozen=True, slots=True)
class Report:
    span: VerifiedSpan
    is_cut: bool
    """Whether older history was left out because retention may have deleted it."""
    tally: CheckCounts
    epochs: dict[int, int]
    """The epoch of every shard, as read."""
    findings: tuple[Finding, ...]

    @property
    def counts(self) -> dict[FindingKind, int]:
        """The number of violations by kind, without zeros."""
        found: Counter[FindingKind] = Counter()
        for each in self.findings:
            found[each.kind] += each.count
        return {kind: found[kind] for kind in FindingKind if found[kind]}

    @property
    def verdict(self) -> Verdict:
        if self.findings:
            return Verdict.INVALID
        has_checked = self.tally.due_times or self.tally.executions or self.tally.messages
        return Verdict.VALID if has_checked else Verdict.UNKNOWN

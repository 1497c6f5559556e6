"""What a look at the history found, and the verdict on it."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from foliot.model.ids import first_id_at
from foliot.model.instant import EPOCH


class FindingKind(StrEnum):
    """What is wrong."""

    GAP = "gap"
    """A due time that no row decides."""
    DOUBLE = "double"
    """A time that two rows decide."""
    PHANTOM = "phantom"
    """A row for a time that is none, or of a schedule or version that is none."""
    MISCOUNT = "miscount"
    """A row that says to decide another number of times than there are."""
    EARLY = "early"
    """Decided before it was due."""
    LATE = "late"
    """Fired later than its policy allows, or skipped as late although it was not."""
    FORBIDDEN = "forbidden"
    """Fired although window or calendar exclude it, or skipped for one that does not."""
    STATE = "state"
    """An execution that stands as none can."""
    ATTEMPT = "attempt"
    """Attempts that overlap, run backwards or are missing."""
    EPOCH = "epoch"
    """More leaders than the epoch has counted, or an epoch that fell."""
    OUTBOX_GAP = "outbox_gap"
    """An offset, or an event that fired, without a message."""
    OUTBOX_DOUBLE = "outbox_double"
    """An event that the outbox has twice, or that nothing has fired."""
    OUTBOX_ORDER = "outbox_order"
    """Messages whose offsets are not in the order in which they were committed."""


class Verdict(StrEnum):
    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"
    """There was nothing to check."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, and what would be right."""

    kind: FindingKind
    wrong: str
    right: str
    at: datetime | None = None
    """The time that it is about; of several in a row, the first."""
    schedule_name: str | None = None
    schedule_id: UUID | None = None
    count: int = 1
    """How many times in a row it is so."""


@dataclass(frozen=True, slots=True)
class VerifiedSpan:
    """The time that is looked at, both ends included."""

    first: datetime
    last: datetime

    @property
    def first_id(self) -> UUID:
        """The smallest id that what was made within the span can have; ids are made a little before rows."""
        return first_id_at(max(EPOCH, self.first - timedelta(minutes=1)))


@dataclass(slots=True)
class Tally:
    """What was looked at, added up while looking."""

    schedules: int = 0
    executions: int = 0
    due_times: int = 0
    """Due times that were worked out anew and looked up in the ledger."""
    waiting: int = 0
    """Due times that are still to be decided: the schedule stands at or before them."""
    messages: int = 0
    worst_late_s: float = 0.0
    """The longest time between a fire time and the row that fired it."""
    not_checked: Counter[str] = field(default_factory=Counter)
    """Schedules of which something could not be checked, by what."""


@dataclass(frozen=True, slots=True)
class Report:
    span: VerifiedSpan
    is_cut: bool
    """Older history was left out, because retention may have deleted it."""
    tally: Tally
    epochs: dict[int, int]
    """The epoch of every shard, as read."""
    findings: tuple[Finding, ...]

    @property
    def counts(self) -> dict[FindingKind, int]:
        """How often each kind of wrong was found."""
        found: Counter[FindingKind] = Counter()
        for each in self.findings:
            found[each.kind] += each.count
        return {kind: found[kind] for kind in FindingKind if found[kind]}

    @property
    def verdict(self) -> Verdict:
        if self.findings:
            return Verdict.INVALID
        has_looked = self.tally.due_times or self.tally.executions or self.tally.messages
        return Verdict.VALID if has_looked else Verdict.UNKNOWN

"""Plans which faults happen when. A seed gives the same plan on every machine."""

import random
from dataclasses import dataclass
from enum import StrEnum

SPACING_S = 3.0
"""Mean seconds between two faults."""


class Kind(StrEnum):
    KILL = "kill -9"
    STOP = "SIGSTOP past every lease"
    END = "SIGTERM"
    CUT = "connections reset"
    REFUSE = "connections refused"
    DELAY = "every message late"
    HOLD_REQUESTS = "nothing gets to the database"
    HOLD_REPLIES = "nothing comes back from the database"
    LOSE_COMMIT = "the reply to COMMIT lost"
    STALE_WRITE = "heartbeats held, then a late write"
    RESTART_DATABASE = "database restarted"
    CRASH_DATABASE = "database crashed"
    TERMINATE_BACKENDS = "all backends terminated"
    PROVIDER_AWAY = "lease provider killed"
    CLOCK = "wall clock off"
    RESHARD = "resharded"
    DRAIN = "drained"


class Role(StrEnum):
    LEADER = "leader"
    """The scheduler that leads when the fault begins."""
    SCHEDULER = "scheduler"
    WORKER = "worker"
    API = "api"


@dataclass(frozen=True, slots=True)
class Fault:
    at_s: float
    kind: Kind
    role: Role | None = None
    number: int = 0
    """Index of the process within its role. For etcd it decides how many nodes are killed."""
    lasts_s: float = 0.0
    amount: float = 0.0
    """Seconds of delay, seconds of clock error, or number of shards, depending on the kind."""

    def __str__(self) -> str:
        words = [f"{self.at_s:6.1f} s  {self.kind}"]
        if self.role is not None:
            words.append(f"of the {self.role} {self.number if self.role is not Role.LEADER else ''}".rstrip())
        if self.amount:
            words.append(f"({self.amount:g})")
        if self.lasts_s:
            words.append(f"for {self.lasts_s:.1f} s")
        return " ".join(words)


MUST = (
    (Kind.KILL, Role.LEADER),
    (Kind.STOP, Role.LEADER),
    (Kind.STALE_WRITE, Role.LEADER),
    (Kind.LOSE_COMMIT, Role.LEADER),
    (Kind.LOSE_COMMIT, Role.WORKER),
    (Kind.KILL, Role.WORKER),
    (Kind.CRASH_DATABASE, None),
)
"""Faults in every plan. Without them a verdict would prove little."""

MAY = (
    *((Kind.KILL, role) for role in Role),
    *((Kind.STOP, role) for role in (Role.LEADER, Role.SCHEDULER, Role.WORKER)),
    *((Kind.END, role) for role in Role),
    *((kind, role) for kind in (Kind.CUT, Kind.REFUSE, Kind.DELAY) for role in Role),
    *(
        (kind, role)
        for kind in (Kind.HOLD_REQUESTS, Kind.HOLD_REPLIES)
        for role in (Role.LEADER, Role.WORKER)
    ),
    *((Kind.LOSE_COMMIT, role) for role in (Role.LEADER, Role.WORKER)),
    *((Kind.CLOCK, role) for role in (Role.LEADER, Role.SCHEDULER, Role.WORKER)),
    *((Kind.DRAIN, role) for role in (Role.SCHEDULER, Role.WORKER)),
    (Kind.STALE_WRITE, Role.LEADER),
    (Kind.RESTART_DATABASE, None),
    (Kind.CRASH_DATABASE, None),
    (Kind.TERMINATE_BACKENDS, None),
    (Kind.TERMINATE_BACKENDS, None),
    (Kind.PROVIDER_AWAY, None),
    (Kind.RESHARD, None),
)


def plan_faults(seed: int, seconds: float, *, ttl_s: float, has_provider: bool) -> list[Fault]:
    """Return faults over `seconds`, in order of time: all of MUST, and random ones of MAY."""
    chance = random.Random(seed)
    may = [each for each in MAY if has_provider or each[0] is not Kind.PROVIDER_AWAY]
    count = max(len(MUST), int(seconds / SPACING_S))
    chosen = [*MUST, *(chance.choice(may) for _ in range(count - len(MUST)))]
    chance.shuffle(chosen)
    gap_s = seconds / count
    return [
        _fault(chance, gap_s * (place + chance.random() / 2), kind, role, ttl_s)
        for place, (kind, role) in enumerate(chosen)
    ]


def _fault(chance: random.Random, at_s: float, kind: Kind, role: Role | None, ttl_s: float) -> Fault:
    # Draw all numbers for every fault, even unused ones, so that its kind does not change later draws.
    number, short_s, long_s = chance.randrange(3), chance.uniform(0.2, 1.0), chance.uniform(1.2, 3.0)
    late_s, off_s, shards = chance.uniform(0.05, 0.4), chance.choice((-600, 600)), chance.randint(1, 5)
    lasts_s = {
        Kind.KILL: short_s * ttl_s,
        Kind.STOP: long_s * ttl_s,
        Kind.REFUSE: long_s * ttl_s,
        Kind.DELAY: long_s * ttl_s,
        Kind.HOLD_REQUESTS: long_s * ttl_s,
        Kind.HOLD_REPLIES: long_s * ttl_s,
        Kind.RESTART_DATABASE: short_s,
        Kind.CRASH_DATABASE: short_s,
        Kind.PROVIDER_AWAY: long_s * ttl_s,
        Kind.CLOCK: long_s * ttl_s,
        Kind.DRAIN: long_s * ttl_s,
    }
    amounts = {Kind.DELAY: late_s, Kind.CLOCK: float(off_s), Kind.RESHARD: float(shards)}
    if role is Role.API:
        number = 0
    return Fault(at_s, kind, role, number, lasts_s.get(kind, 0.0), amounts.get(kind, 0.0))

"""Whose messages a courier sends next: so that receivers that are away keep no other waiting.

A receiver that does not answer takes a place for as long as a try may last. Until that is known a rule has
a few places, like any other. Once a try has failed, or took long, it gets one at a time, after pauses that
grow, and together such rules have a part of the places, in which they take turns. The first try that goes
well and quickly makes it a rule like any other.
"""

from collections import Counter
from dataclasses import dataclass
from uuid import UUID

AT_ONCE = 20
MAX_OF_RULE = 4
MAX_OF_HOST = 10
MAX_AWAY = 5
"""Of the tries under way, those by rules that are away."""
LONG_S = 5.0
"""A try that takes longer is as bad as one that fails, for those who wait."""
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
FORGOTTEN_AFTER_S = 3600.0


@dataclass(slots=True)
class Away:
    """A rule whose last try was in vain, or long."""

    tried_at: float
    again_at: float
    failures: int


class Turns:
    """Remembers what is under way, and how it went lately. Times are those of a monotonic clock."""

    def __init__(self) -> None:
        self._of_rule: Counter[UUID] = Counter()
        self._of_host: Counter[UUID] = Counter()
        self._away: dict[UUID, Away] = {}

    @property
    def places(self) -> int:
        """How many more may be sent at once."""
        return AT_ONCE - self._of_rule.total()

    @property
    def at_a_time(self) -> int:
        """How many of them to take in one go, so that no host gets more than its part."""
        most = max((count for count in self._of_host.values() if count < MAX_OF_HOST), default=0)
        return min(self.places, MAX_OF_HOST - most)

    @property
    def probes(self) -> int:
        """How many of them by rules that are away."""
        under_way = sum(self._of_rule[rule_id] for rule_id in self._away)
        return min(self.places, max(0, MAX_AWAY - under_way))

    def busy_rules(self) -> set[UUID]:
        """Of which no more is to be taken in turn: they have enough under way, or are away."""
        return {key for key, count in self._of_rule.items() if count >= MAX_OF_RULE} | set(self._away)

    def busy_hosts(self) -> set[UUID]:
        return {key for key, count in self._of_host.items() if count >= MAX_OF_HOST}

    def worth_a_try(self, at: float) -> list[UUID]:
        """The rules that are away and may be tried again, the longest untried first."""
        found = [
            (each.tried_at, key)
            for key, each in self._away.items()
            if each.again_at <= at and not self._of_rule[key]
        ]
        return [key for _, key in sorted(found)]

    def begin(self, rule_id: UUID, host_id: UUID, at: float) -> None:
        self._of_rule[rule_id] += 1
        self._of_host[host_id] += 1
        if rule_id in self._away:
            self._away[rule_id].tried_at = at

    def end(self, rule_id: UUID, host_id: UUID, at: float, *, began_at: float, is_well: bool | None) -> None:
        """A try has ended; `is_well`: the receiver has said something, be it that it does not want it; None:
        nobody was asked."""
        _take_off(self._of_rule, rule_id)
        _take_off(self._of_host, host_id)
        if is_well is None:
            return
        if is_well and at - began_at < LONG_S:
            self._away.pop(rule_id, None)
            return
        known = self._away.get(rule_id)
        if known is not None and began_at < known.tried_at:
            return  # one of several that were under way when it turned out
        failures = 1 if known is None else known.failures + 1
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures - 1, 16))
        self._away[rule_id] = Away(at, at + pause_s, failures)

    def forget(self, at: float) -> None:
        """Rules come and go: those that were not tried for long need not be remembered."""
        gone = [key for key, each in self._away.items() if at - each.tried_at > FORGOTTEN_AFTER_S]
        for key in gone:
            del self._away[key]


def _take_off(counter: Counter[UUID], key: UUID) -> None:
    counter[key] -= 1
    if counter[key] <= 0:
        del counter[key]

"""Decide which rules' messages a sender sends next, so that unreachable receivers do not block others.

A receiver that does not answer occupies a slot until the send times out. At first a rule may use a few slots.
Once a try failed or took long, the rule is "away": it gets one slot at a time, after growing pauses. Rules
that are away share a limited part of the slots and take turns. A rule is normal again after its first quick
success.
"""

from collections import Counter
from dataclasses import dataclass
from uuid import UUID

AT_ONCE = 20
MAX_OF_RULE = 4
MAX_OF_HOST = 10
MAX_AWAY = 5
"""Maximum number of running tries for rules that are away."""
LONG_S = 5.0
"""A try that takes longer, in seconds, counts as failed: it keeps others waiting just as long."""
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
FORGOTTEN_AFTER_S = 3600.0


@dataclass(slots=True)
class UnreachableRule:
    """A rule whose last try failed or took long."""

    tried_at: float
    again_at: float
    failures: int


class SendOrder:
    """Counts running tries, and remembers recent failures. Times are monotonic, in seconds."""

    def __init__(self) -> None:
        self._of_rule: Counter[UUID] = Counter()
        self._of_host: Counter[UUID] = Counter()
        self._away: dict[UUID, UnreachableRule] = {}

    @property
    def places(self) -> int:
        """Number of free slots."""
        return AT_ONCE - self._of_rule.total()

    @property
    def at_a_time(self) -> int:
        """Maximum size of the next claim, so that no host exceeds its share of the slots."""
        largest = max((count for count in self._of_host.values() if count < MAX_OF_HOST), default=0)
        return min(self.places, MAX_OF_HOST - largest)

    @property
    def probes(self) -> int:
        """Number of free slots that rules that are away may use."""
        under_way = sum(self._of_rule[rule_id] for rule_id in self._away)
        return min(self.places, max(0, MAX_AWAY - under_way))

    def busy_rules(self) -> set[UUID]:
        """Return the rules to exclude from normal claims: they have enough running tries, or are away."""
        return {key for key, count in self._of_rule.items() if count >= MAX_OF_RULE} | set(self._away)

    def busy_hosts(self) -> set[UUID]:
        return {key for key, count in self._of_host.items() if count >= MAX_OF_HOST}

    def worth_a_try(self, at: float) -> list[UUID]:
        """Return the rules that are away and may be tried again, longest untried first."""
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
        """Record the end of a try.

        `is_well`: the receiver answered, even if it refused the message. None: no request was sent.
        """
        _take_off(self._of_rule, rule_id)
        _take_off(self._of_host, host_id)
        if is_well is None:
            return
        if is_well and at - began_at < LONG_S:
            self._away.pop(rule_id, None)
            return
        known = self._away.get(rule_id)
        if known is not None and began_at < known.tried_at:
            return  # this try had begun before the rule was known to be away
        failures = 1 if known is None else known.failures + 1
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(failures - 1, 16))
        self._away[rule_id] = UnreachableRule(at, at + pause_s, failures)

    def forget(self, at: float) -> None:
        """Forget rules that were not tried for an hour: rules come and go."""
        gone = [key for key, each in self._away.items() if at - each.tried_at > FORGOTTEN_AFTER_S]
        for key in gone:
            del self._away[key]


def _take_off(counter: Counter[UUID], key: UUID) -> None:
    counter[key] -= 1
    if counter[key] <= 0:
        del counter[key]

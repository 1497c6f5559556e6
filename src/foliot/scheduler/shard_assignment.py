"""Who leads which shards. Every scheduler computes it for itself, from what all of them can see.

With N shards and M candidates each may lead N/M of them, rounded down. The N mod M candidates that lead most
already may lead one more. So an even assignment never changes, and an uneven one is balanced by the fewest
hand-overs. A shard without a leader goes to the candidate that is furthest below its share.

Schedulers that read at different moments may decide differently. That costs a lost race or a short delay,
never a shard: the database decides who leads, and any candidate may take what nobody has led for a TTL.

Candidates are the live schedulers that are not draining. If all are draining, all are candidates, since one
has to lead. With a single shard every candidate campaigns for it: one leader and its followers.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from foliot.scheduler.cluster_sql import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Who leads and who could lead, as read from a survey."""

    holders: tuple[str | None, ...]
    """The leader of each shard; None: nobody."""
    candidates: frozenset[str]
    """The instances that may lead."""

    @property
    def unled(self) -> frozenset[int]:
        return frozenset(number for number, holder in enumerate(self.holders) if holder is None)


@dataclass(frozen=True, slots=True)
class ShareDecision:
    """Which shards one scheduler takes, and which it hands over."""

    take: frozenset[int] = frozenset()
    leave: frozenset[int] = frozenset()


def view_of(survey: ClusterSnapshot, me: str, ttl_s: float) -> ClusterView:
    """Read from a survey who leads and who could. A heartbeat from the future counts as missing.

    Its leases show that a leader is live. If its lease expired it is gone, even if its registry row is fresh.
    So the shards of a killed leader are reassigned at once.
    """
    holders = tuple(
        shard.holder if shard.holder and abs(shard.heartbeat_age_s) <= ttl_s else None
        for shard in survey.shards
    )
    silent = {shard.holder for shard in survey.shards} - set(holders)
    live = {
        seen.instance_id
        for seen in survey.schedulers
        if seen.instance_id in holders
        or (abs(seen.heartbeat_age_s) <= ttl_s and seen.instance_id not in silent)
    } | {me}
    draining = {seen.instance_id for seen in survey.schedulers if seen.is_draining}
    # A leader without a registry row has lost it only for a moment.
    live |= {holder for holder in holders if holder is not None}
    return ClusterView(holders, frozenset(live - draining or live))


def decide(me: str, view: ClusterView) -> ShareDecision:
    """Decide which free shards `me` takes, and which of its own it hands over."""
    mine = [number for number, holder in enumerate(view.holders) if holder == me]
    if me not in view.candidates:
        return ShareDecision(leave=frozenset(mine))
    if len(view.holders) == 1:
        return ShareDecision(take=frozenset({0}))
    shares = shares_of(view)
    return ShareDecision(
        take=frozenset(_given_out(view, shares)[me]),
        # The last numbers: the first ones have usually been led for longer.
        leave=frozenset(mine[shares[me] :]),
    )


def shares_of(view: ClusterView) -> Mapping[str, int]:
    """Return how many shards each candidate should lead."""
    held = _held(view)
    richest_first = sorted(view.candidates, key=lambda each: (-held[each], each))
    minimum, more = divmod(len(view.holders), len(richest_first))
    return {each: minimum + (rank < more) for rank, each in enumerate(richest_first)}


def _given_out(view: ClusterView, shares: Mapping[str, int]) -> Mapping[str, Sequence[int]]:
    """Assign each free shard to the candidate furthest below its share."""
    held = _held(view)
    room = {each: shares[each] - held[each] for each in view.candidates}
    given: dict[str, list[int]] = {each: [] for each in view.candidates}
    for number in sorted(view.unled):
        poorest = min(room, key=lambda each: (-room[each], each))
        given[poorest].append(number)
        room[poorest] -= 1
    return given


def _held(view: ClusterView) -> Mapping[str, int]:
    return {each: view.holders.count(each) for each in view.candidates}


class LeaderlessTimer:
    """Measures how long each shard has had no leader, as one scheduler has seen it."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._unled_since: dict[int, float] = {}

    def ended(self, unled: Collection[int], at: float) -> frozenset[int]:
        """Return the shards whose candidate has not taken them in time."""
        self._unled_since = {number: self._unled_since.get(number, at) for number in unled}
        return frozenset(
            number for number, since in self._unled_since.items() if at - since >= self._patience_s
        )

"""Who leads which shards: every scheduler works it out for itself, from what all of them can see.

With N shards and M candidates each has room for N/M of them, rounded down, and the N mod M that lead most
already for one more. So whoever leads its share keeps it: an assignment that is even is never changed, and
an uneven one is evened out by the fewest hand-overs. A shard that nobody leads goes to whoever has the most
room.

Two that look at different moments may come to different answers. That costs a lost race or a moment's delay,
never a shard: the database decides who leads, and what nobody has led for a TTL is for anyone to take.

Candidates are the live schedulers that are not draining; where all are draining, they go on, since somebody
has to. A shard alone is the classic case of one leader and its followers: every candidate campaigns for it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from foliot.store.survey import Survey


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A survey as far as sharing out goes."""

    holders: tuple[str | None, ...]
    """Who leads each shard; None: nobody."""
    candidates: frozenset[str]
    """Who is to lead."""

    @property
    def unled(self) -> frozenset[int]:
        return frozenset(number for number, holder in enumerate(self.holders) if holder is None)


@dataclass(frozen=True, slots=True)
class ShareDecision:
    """What one scheduler is to do."""

    take: frozenset[int] = frozenset()
    leave: frozenset[int] = frozenset()


def view_of(survey: Survey, me: str, ttl_s: float) -> ClusterView:
    """Who leads, and who could. A heartbeat from the future is as good as none, as for those who take leases.

    Who leads gives signs of life by its leases. Whose lease ran out is gone, whatever its row in the registry
    still says: a killed leader's shards are shared out at once.
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
    # One that leads without a row in the registry has lost it for a moment: it will be back.
    live |= {holder for holder in holders if holder is not None}
    return ClusterView(holders, frozenset(live - draining or live))


def decide(me: str, view: ClusterView) -> ShareDecision:
    """What `me` is to take of what is free, and to hand over of what it leads."""
    mine = [number for number, holder in enumerate(view.holders) if holder == me]
    if me not in view.candidates:
        return ShareDecision(leave=frozenset(mine))
    if len(view.holders) == 1:
        return ShareDecision(take=frozenset({0}))
    shares = shares_of(view)
    return ShareDecision(
        take=frozenset(_given_out(view, shares)[me]),
        # The last ones: those that have led for long are rather the first.
        leave=frozenset(mine[shares[me] :]),
    )


def shares_of(view: ClusterView) -> Mapping[str, int]:
    """How many shards each candidate is to lead."""
    held = _held(view)
    richest_first = sorted(view.candidates, key=lambda each: (-held[each], each))
    least, more = divmod(len(view.holders), len(richest_first))
    return {each: least + (rank < more) for rank, each in enumerate(richest_first)}


def _given_out(view: ClusterView, shares: Mapping[str, int]) -> Mapping[str, Sequence[int]]:
    """Each free shard to the candidate with the most room."""
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
    """How long each shard has been led by nobody, as one scheduler has seen it."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._unled_since: dict[int, float] = {}

    def ended(self, unled: Collection[int], at: float) -> frozenset[int]:
        """Which of the unled shards have waited for their candidate long enough."""
        self._unled_since = {number: self._unled_since.get(number, at) for number in unled}
        return frozenset(
            number for number, since in self._unled_since.items() if at - since >= self._patience_s
        )

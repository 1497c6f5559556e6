"""Sharing out shards, played by schedulers that each look, decide and act on their own."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from foliot.scheduler.cluster_sql import ClusterSnapshot, SeenScheduler, SeenShard
from foliot.scheduler.shard_assignment import ClusterView, LeaderlessTimer, ShareDecision, decide, view_of

TTL_S = 3.0
NAMES = [f"scheduler-{number}" for number in range(7)]


@dataclass
class Cluster:
    """What the database would say, and how often leading has changed hands."""

    holders: list[str | None]
    candidates: set[str]
    moves: int = 0

    def view(self) -> ClusterView:
        return ClusterView(tuple(self.holders), frozenset(self.candidates))

    def act(self, me: str, view: ClusterView | None = None) -> ShareDecision:
        """Look (or have looked earlier), decide, act; what another leads by now can't be taken."""
        decision = decide(me, view or self.view())
        for number in decision.leave:
            if self.holders[number] == me:
                self.holders[number] = None
        for number in decision.take:
            if self.holders[number] is None:
                self.holders[number] = me
                self.moves += 1
        return decision

    def settle(self, order: Sequence[str]) -> None:
        """Everybody acts again and again until nobody has anything to do."""
        for _ in range(3 * len(self.holders) + 3):
            before = list(self.holders)
            for me in order:
                self.act(me)
            if self.holders == before:
                return
        raise AssertionError(f"does not come to rest: {self.holders}")

    def assert_even(self) -> None:
        held = Counter(self.holders)
        count = len(self.holders)
        assert set(held) <= self.candidates, "each shard is led, by one that is to lead"
        least, limit = count // len(self.candidates), -(-count // len(self.candidates))
        assert all(least <= held[each] <= limit for each in self.candidates), held


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    candidates = draw(st.sets(st.sampled_from(NAMES), min_size=1))
    holder = st.sampled_from([None, *NAMES])
    return Cluster(draw(st.lists(holder, min_size=2, max_size=24)), candidates)


@given(clusters(), st.permutations(NAMES))
def test_every_shard_is_led_and_shares_are_even_whoever_acts_first(
    cluster: Cluster, order: list[str]
) -> None:
    cluster.settle(order)
    cluster.assert_even()


@given(st.integers(1, 7), st.permutations(NAMES), st.integers(2, 24), st.randoms())
def test_what_is_even_is_never_changed(count: int, names: list[str], shards: int, random: Random) -> None:
    """Whichever of the even assignments it is."""
    holders: list[str | None] = [names[number % count] for number in range(shards)]
    random.shuffle(holders)
    cluster = Cluster(holders, set(names[:count]))
    for me in sorted(cluster.candidates):
        assert decide(me, cluster.view()) == ShareDecision()


@given(clusters(), st.permutations(NAMES))
def test_nothing_changes_hands_that_need_not(cluster: Cluster, order: list[str]) -> None:
    held = [Counter(cluster.holders)[each] for each in cluster.candidates]
    least, more = divmod(len(cluster.holders), len(held))
    # As many as can stay where they are: up to the lower share of each, and one more where there is room.
    kept = sum(min(count, least) for count in held) + min(more, sum(count > least for count in held))
    cluster.settle(order)
    assert cluster.moves == len(cluster.holders) - kept


@given(clusters(), st.permutations(NAMES), st.sampled_from(NAMES))
def test_one_that_joins_or_leaves_moves_only_its_own_share(
    cluster: Cluster, order: list[str], other: str
) -> None:
    cluster.settle(order)
    before, cluster.moves = list(cluster.holders), 0
    cluster.candidates ^= {other}
    if not cluster.candidates:
        return
    cluster.settle(order)
    cluster.assert_even()
    its_share = max(before.count(other), cluster.holders.count(other))
    assert cluster.moves == its_share


@given(clusters(), st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 5)), max_size=60))
def test_views_that_are_out_of_date_leave_nothing_uneven_for_good(
    cluster: Cluster, steps: list[tuple[str, int]]
) -> None:
    seen = [cluster.view()]
    for me, age in steps:
        cluster.act(me, seen[max(0, len(seen) - 1 - age)])
        seen.append(cluster.view())
    cluster.settle(NAMES)
    cluster.assert_even()


@given(clusters())
def test_free_shards_are_given_to_one_candidate_each(cluster: Cluster) -> None:
    view = cluster.view()
    taken = [number for me in view.candidates for number in decide(me, view).take]
    assert sorted(taken) == sorted(view.unled)


def test_a_single_shard_is_campaigned_for_by_every_candidate_and_by_nobody_else() -> None:
    for holder in (None, "a", "b"):
        view = ClusterView((holder,), frozenset({"a", "b"}))
        assert decide("a", view) == decide("b", view) == ShareDecision(take=frozenset({0}))
        assert decide("c", view) == ShareDecision()
    assert decide("c", ClusterView(("c",), frozenset({"a"}))) == ShareDecision(leave=frozenset({0}))


# --- who is a candidate ---------------------------------------------------------------------------


def view(shards: Sequence[tuple[str, float]], *schedulers: SeenScheduler, me: str = "me") -> ClusterView:
    seen = tuple(SeenShard(number, holder, age_s) for number, (holder, age_s) in enumerate(shards))
    return view_of(ClusterSnapshot(None, seen, schedulers), me, TTL_S)


def test_who_gives_signs_of_life_and_does_not_drain_is_to_lead() -> None:
    found = view(
        [("leader", 1.0), ("", 1e9)],
        SeenScheduler("leader", 5.0, is_draining=False),
        SeenScheduler("follower", 1.0, is_draining=False),
        SeenScheduler("silent", 4.0, is_draining=False),
        SeenScheduler("draining", 1.0, is_draining=True),
    )
    assert found.holders == ("leader", None)
    assert found.candidates == {"me", "leader", "follower"}


def test_a_leader_whose_lease_ran_out_is_gone_although_the_registry_knows_it_yet() -> None:
    found = view([("dead", 3.1), ("dead", 3.1)], SeenScheduler("dead", 2.9, is_draining=False))
    assert found.candidates == {"me"}
    assert decide("me", found) == ShareDecision(take=frozenset({0, 1}))


def test_a_heartbeat_from_the_future_is_as_good_as_none() -> None:
    found = view([("ahead", -600.0)], SeenScheduler("other", -600.0, is_draining=False))
    assert found.holders == (None,)
    assert found.candidates == {"me"}


def test_a_draining_leader_hands_over_only_where_there_is_somebody_else() -> None:
    draining = SeenScheduler("me", 1.0, is_draining=True)
    alone = view([("me", 1.0), ("me", 1.0)], draining)
    assert decide("me", alone) == ShareDecision()
    joined = view([("me", 1.0), ("me", 1.0)], draining, SeenScheduler("other", 1.0, is_draining=False))
    assert decide("me", joined) == ShareDecision(leave=frozenset({0, 1}))


def test_a_shard_that_its_candidate_leaves_lying_is_for_anyone_after_a_while() -> None:
    patience = LeaderlessTimer(TTL_S)
    assert patience.ended({1, 2}, at=10.0) == frozenset()
    assert patience.ended({2}, at=12.0) == frozenset()
    assert patience.ended({1, 2}, at=13.0) == {2}, "1 was led in between"
    assert patience.ended({1, 2}, at=16.0) == {1, 2}

"""What overlap does, as a table."""

import pytest

from foliot.model.policy import Overlap, OverlapPolicy
from foliot.planning.overlap import OpenCounts, OverlapDecision, admit_execution, count_admissible

SKIP, QUEUE, CANCEL, ALLOW = (
    OverlapPolicy.SKIP,
    OverlapPolicy.QUEUE,
    OverlapPolicy.CANCEL_RUNNING,
    OverlapPolicy.ALLOW,
)

TABLE = [
    # policy, limit, open, a scheduled time, any other run
    (SKIP, 1, 0, OverlapDecision.RUN, OverlapDecision.RUN),
    (SKIP, 1, 1, OverlapDecision.SKIP, OverlapDecision.HOLD),
    (SKIP, 1, 5, OverlapDecision.SKIP, OverlapDecision.HOLD),
    (SKIP, 3, 2, OverlapDecision.RUN, OverlapDecision.RUN),
    (SKIP, 3, 3, OverlapDecision.SKIP, OverlapDecision.HOLD),
    (QUEUE, 1, 0, OverlapDecision.RUN, OverlapDecision.RUN),
    (QUEUE, 1, 1, OverlapDecision.HOLD, OverlapDecision.HOLD),
    (QUEUE, 2, 1, OverlapDecision.RUN, OverlapDecision.RUN),
    (QUEUE, 2, 9, OverlapDecision.HOLD, OverlapDecision.HOLD),
    (CANCEL, 1, 0, OverlapDecision.RUN, OverlapDecision.RUN),
    (CANCEL, 1, 1, OverlapDecision.REPLACE, OverlapDecision.REPLACE),
    (CANCEL, 2, 1, OverlapDecision.RUN, OverlapDecision.RUN),
    (CANCEL, 2, 2, OverlapDecision.REPLACE, OverlapDecision.REPLACE),
    (ALLOW, 1, 0, OverlapDecision.RUN, OverlapDecision.RUN),
    (ALLOW, 1, 1000, OverlapDecision.RUN, OverlapDecision.RUN),
]


@pytest.mark.parametrize(("policy", "limit", "opened", "scheduled", "other"), TABLE)
def test_what_becomes_of_an_execution_by_policy_limit_and_what_is_open(
    policy: OverlapPolicy, limit: int, opened: int, scheduled: OverlapDecision, other: OverlapDecision
) -> None:
    overlap = Overlap(policy=policy, max_instances=limit)
    counts = OpenCounts(opened, max(0, opened - limit))
    assert admit_execution(overlap, counts, is_skippable=True) is scheduled
    assert admit_execution(overlap, counts, is_skippable=False) is other


FULL = [
    # policy, a scheduled time, any other run
    (SKIP, OverlapDecision.SKIP, OverlapDecision.WAIT),
    (QUEUE, OverlapDecision.SKIP, OverlapDecision.WAIT),
    (CANCEL, OverlapDecision.REPLACE, OverlapDecision.REPLACE),
    (ALLOW, OverlapDecision.RUN, OverlapDecision.RUN),
]


@pytest.mark.parametrize(("policy", "scheduled", "other"), FULL)
@pytest.mark.parametrize("held", [5, 6, 4_000])
def test_beyond_max_queued_nothing_more_is_held(
    policy: OverlapPolicy, held: int, scheduled: OverlapDecision, other: OverlapDecision
) -> None:
    overlap = Overlap(policy=policy, max_queued=5)
    assert admit_execution(overlap, OpenCounts(held + 1, held), is_skippable=True) is scheduled
    assert admit_execution(overlap, OpenCounts(held + 1, held), is_skippable=False) is other
    is_held = admit_execution(overlap, OpenCounts(5, 4), is_skippable=False) is OverlapDecision.HOLD
    assert is_held is (policy in (SKIP, QUEUE))


def test_a_full_queue_holds_up_nothing_that_may_run_at_once() -> None:
    overlap = Overlap(policy=QUEUE, max_instances=3, max_queued=1)
    assert admit_execution(overlap, OpenCounts(2, 1), is_skippable=False) is OverlapDecision.RUN


@pytest.mark.parametrize(
    ("opened", "limit", "expected"),
    [
        (OpenCounts(), 10, (5, 2)),
        (OpenCounts(2, 0), 10, (3, 0)),
        (OpenCounts(1, 0), 3, (3, 1)),
        (OpenCounts(5, 3), 10, (0, 0)),
        (OpenCounts(), 1, (1, 1)),
    ],
)
def test_how_many_of_several_are_inserted_and_run(
    opened: OpenCounts, limit: int, expected: tuple[int, int]
) -> None:
    overlap = Overlap(policy=QUEUE, max_instances=2, max_queued=3)
    assert count_admissible(overlap, opened, limit) == expected

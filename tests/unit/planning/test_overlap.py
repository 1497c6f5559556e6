"""What overlap does, as a table."""

import pytest

from foliot.model.policy import Overlap, OverlapPolicy
from foliot.planning.overlap import Admission, admit_execution

SKIP, QUEUE, CANCEL, ALLOW = (
    OverlapPolicy.SKIP,
    OverlapPolicy.QUEUE,
    OverlapPolicy.CANCEL_RUNNING,
    OverlapPolicy.ALLOW,
)

TABLE = [
    # policy, limit, open, a scheduled time, any other run
    (SKIP, 1, 0, Admission.RUN, Admission.RUN),
    (SKIP, 1, 1, Admission.SKIP, Admission.HOLD),
    (SKIP, 1, 5, Admission.SKIP, Admission.HOLD),
    (SKIP, 3, 2, Admission.RUN, Admission.RUN),
    (SKIP, 3, 3, Admission.SKIP, Admission.HOLD),
    (QUEUE, 1, 0, Admission.RUN, Admission.RUN),
    (QUEUE, 1, 1, Admission.HOLD, Admission.HOLD),
    (QUEUE, 2, 1, Admission.RUN, Admission.RUN),
    (QUEUE, 2, 9, Admission.HOLD, Admission.HOLD),
    (CANCEL, 1, 0, Admission.RUN, Admission.RUN),
    (CANCEL, 1, 1, Admission.REPLACE, Admission.REPLACE),
    (CANCEL, 2, 1, Admission.RUN, Admission.RUN),
    (CANCEL, 2, 2, Admission.REPLACE, Admission.REPLACE),
    (ALLOW, 1, 0, Admission.RUN, Admission.RUN),
    (ALLOW, 1, 1000, Admission.RUN, Admission.RUN),
]


@pytest.mark.parametrize(("policy", "limit", "opened", "scheduled", "other"), TABLE)
def test_what_becomes_of_an_execution_by_policy_limit_and_what_is_open(
    policy: OverlapPolicy, limit: int, opened: int, scheduled: Admission, other: Admission
) -> None:
    overlap = Overlap(policy=policy, max_instances=limit)
    assert admit_execution(overlap, opened, is_skippable=True) is scheduled
    assert admit_execution(overlap, opened, is_skippable=False) is other

"""The life cycle of an execution: one table of what may follow what."""

import pytest

from foliot.model.execution import CLAIMABLE, FINAL, OPEN, TRANSITIONS, Status, can_become


def test_every_status_is_open_or_final_and_never_both() -> None:
    assert set(Status) == OPEN | FINAL
    assert not OPEN & FINAL
    assert CLAIMABLE < OPEN


@pytest.mark.parametrize("status", sorted(FINAL))
def test_what_is_final_stays(status: Status) -> None:
    assert not any(can_become(status, wanted) for wanted in Status)


def test_every_open_status_can_reach_an_end() -> None:
    for status in OPEN:
        reached: set[Status] = set()
        ahead = {status}
        while ahead:
            reached |= ahead
            ahead = set().union(*(TRANSITIONS[each] for each in ahead)) - reached
        assert reached & FINAL


def test_only_what_is_claimable_starts_and_only_what_runs_ends_well() -> None:
    assert {each for each in Status if can_become(each, Status.RUNNING)} == CLAIMABLE
    for ended in (Status.SUCCESS, Status.TIMEOUT, Status.UNKNOWN):
        assert {each for each in Status if can_become(each, ended)} == {Status.RUNNING}


def test_nothing_becomes_skipped_later() -> None:
    assert not any(can_become(each, Status.SKIPPED) for each in Status)

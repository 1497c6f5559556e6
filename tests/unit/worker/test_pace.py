"""How often a worker looks by itself."""

import pytest

from foliot.model.policy import Priority
from foliot.worker.poll_intervals import PollIntervals

LEASE_S = 15.0


@pytest.mark.parametrize(
    ("uses_hints", "hears_others", "poll_s", "renew_s"),
    [(True, True, 1.0, 5.0), (True, False, 0.5, 0.8), (False, False, 0.1, 0.8)],
)
def test_the_less_it_hears_the_more_often_it_looks(
    uses_hints: bool, hears_others: bool, poll_s: float, renew_s: float
) -> None:
    pace = PollIntervals.of(poll_s=1, lease_s=LEASE_S, uses_hints=uses_hints, hears_others=hears_others)
    assert pace == PollIntervals(poll_s, renew_s)
    assert pace.poll_s <= min(each.sla_s for each in Priority)


def test_it_never_looks_less_often_than_it_was_told_to() -> None:
    assert PollIntervals.of(poll_s=0.05, lease_s=LEASE_S, uses_hints=False, hears_others=False).poll_s == 0.05


def test_a_chosen_interval_is_kept_also_one_of_a_day_on_a_virtual_clock() -> None:
    day_s = 86400.0
    assert PollIntervals.at(day_s, lease_s=day_s, hears_others=False) == PollIntervals(day_s, day_s / 3)

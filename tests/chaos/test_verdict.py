"""What the verdict is worth: it finds what is wrong, and calls unknown what was never put to the test."""

import pytest

from tests.chaos.agent import Delivery
from tests.chaos.load import STEADY
from tests.chaos.plan import MUST, plan_faults
from tests.chaos.verdict import Bites, Outcome, Row, Verdict, judge_deliveries

BITTEN = Bites(elections=2, fenced=1, refused=0, lost_commits=1)


def times(second: int) -> str:
    return f"2026-03-01T12:00:{second:02}Z"


def good_log() -> list[Delivery]:
    return [Delivery(f"{name}-{second}", name, times(second), 1) for name in STEADY for second in range(3)]


def good_rows() -> list[Row]:
    return [Row(each.key, each.schedule_name, "success", False) for each in good_log()]


ONCE = Row("k", "once-only", "success", True)
FIRST = good_log()[0]


@pytest.mark.parametrize(
    ("rows", "deliveries", "words"),
    [
        ([], [], None),
        ([Row("k", "queued", "skipped", False)], [], None),
        ([Row("k", "once-only", "unknown", True)], [], None),
        ([ONCE], [Delivery("k", "once-only", times(0), 1)], None),
        ([], [FIRST._replace(attempt=2)], None),
        ([Row("k", "queued", "success", False)], [], "never came"),
        ([Row("k", "queued", "unknown", False)], [], "never came"),
        ([ONCE], [], "never came"),
        ([], [Delivery("k", "queued", times(0), 1)], "not in the ledger"),
        ([ONCE], [Delivery("k", "once-only", times(0), each) for each in (1, 2)], "came 2 times"),
        ([], [FIRST], "attempt 1"),
        (
            [Row(key, "queued", "success", False) for key in "kl"],
            [Delivery(key, "queued", times(0), 1) for key in "kl"],
            "under 2 keys",
        ),
        ([Row("k", "queued", "failed", False)], [Delivery("k", "queued", times(0), 1)], "ended failed"),
        (
            [Row("k", STEADY[0], "success", False)],
            [Delivery("k", STEADY[0], times(4), 1)],
            "12:00:03+00:00 never came",
        ),
        (
            [Row("k", STEADY[0], "success", False)],
            [Delivery("k", STEADY[0], "2026-03-01T12:00:01.5Z", 1)],
            "none of its times",
        ),
    ],
)
def test_what_is_wrong_between_ledger_and_agent_is_found(
    rows: list[Row], deliveries: list[Delivery], words: str | None
) -> None:
    found = judge_deliveries([*good_rows(), *rows], [*good_log(), *deliveries])
    if words is None:
        assert found == []
    else:
        assert len(found) == 1
        assert words in found[0]


@pytest.mark.parametrize(
    ("findings", "bites", "outcome"),
    [
        ([], BITTEN, Outcome.VALID),
        (["a gap"], BITTEN, Outcome.INVALID),
        ([], Bites(elections=1, fenced=1, refused=1, lost_commits=1), Outcome.UNKNOWN),
        ([], Bites(elections=2, fenced=0, refused=1, lost_commits=1), Outcome.UNKNOWN),
        ([], Bites(elections=2, fenced=1, refused=1, lost_commits=0), Outcome.UNKNOWN),
        (["a gap"], Bites(elections=1, fenced=0, refused=0, lost_commits=0), Outcome.INVALID),
    ],
)
def test_a_run_without_bites_proves_nothing_and_one_finding_is_enough(
    findings: list[str], bites: Bites, outcome: Outcome
) -> None:
    verdict = Verdict(findings, bites)
    assert verdict.outcome is outcome
    assert verdict.lines()[-1] == f"verdict: {outcome}"


def test_a_seed_is_a_plan_in_order_of_time_with_all_that_must_be() -> None:
    plans = [plan_faults(seed, 60, ttl_s=2, has_provider=False) for seed in range(20)]
    assert plans == [plan_faults(seed, 60, ttl_s=2, has_provider=False) for seed in range(20)]
    assert len({tuple(plan) for plan in plans}) == len(plans)
    for plan in plans:
        assert [each.at_s for each in plan] == sorted(each.at_s for each in plan)
        assert set(MUST) <= {(each.kind, each.role) for each in plan}

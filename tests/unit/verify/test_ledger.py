"""Rows compared with due times: a part of a history is judged by what happened before and after it."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from foliot.verify.finding import CheckCounts, FindingKind, VerifiedSpan
from foliot.verify.history import SKIPPED, CurrentState, Row, StoredHistory, VersionPeriod
from foliot.verify.ledger import compare

START = datetime(2026, 3, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def row(number: int, status: str = "success") -> Row:
    at = START + number * SECOND
    return Row(at, 0, None, status, None, 1, at, "one")


@pytest.mark.parametrize(("fired_after", "found"), [(2, []), (0, [FindingKind.PHANTOM])])
def test_runs_after_the_span_do_not_count_as_runs_before_it(
    fired_after: int, found: list[FindingKind]
) -> None:
    """A schedule of three runs fired, skipped a time, and fired twice more after the span."""
    document = {"trigger": {"kind": "interval", "frequency_unit": "SECONDS", "frequency_time": 1}}
    version = VersionPeriod(1, "created", {**document, "max_runs": 3}, False, None, START, START)
    state = CurrentState(UUID(int=1), UUID(int=2), "thrice", None, 3)
    history = StoredHistory(state, [version], [row(1), row(2, SKIPPED)], None, fired_after)
    due = [START + SECOND, START + 2 * SECOND]
    findings = compare(history, due, VerifiedSpan(START, due[-1]), CheckCounts())
    assert [each.kind for each in findings] == found

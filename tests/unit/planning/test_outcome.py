"""What follows an attempt: final, or tried again, and how much later."""

from datetime import timedelta
from uuid import UUID

import pytest
from tests.unit.planning.schedules import NOON, SCHEDULE_ID

from foliot.model.execution import FINAL, Status, can_become
from foliot.model.ids import new_id
from foliot.model.policy import Delivery, RetryPolicy
from foliot.planning.outcome import Outcome, backoff_s, outcome_of

STEADY = RetryPolicy(
    max_attempts=3, initial_delay_seconds=1, multiplier=2, max_delay_seconds=30, jitter=False
)
WRONG = [Status.FAILED, Status.TIMEOUT, Status.UNKNOWN]


def after(
    ended: Status,
    failures: int,
    retry: RetryPolicy = STEADY,
    delivery: Delivery = Delivery.AT_LEAST_ONCE,
    execution_id: UUID = SCHEDULE_ID,
) -> Outcome:
    return outcome_of(
        ended, retry=retry, delivery=delivery, failures=failures, execution_id=execution_id, now=NOON
    )


@pytest.mark.parametrize("ended", [Status.SUCCESS, Status.CANCELLED, Status.PENDING])
def test_what_did_not_go_wrong_stays_what_it_is(ended: Status) -> None:
    for failures in (0, 1, 99):
        assert after(ended, failures) == Outcome(ended)


@pytest.mark.parametrize("ended", WRONG)
def test_what_went_wrong_is_tried_again_while_there_are_attempts_left(ended: Status) -> None:
    assert after(ended, 1) == Outcome(Status.RETRYING, NOON + timedelta(seconds=1))
    assert after(ended, 2) == Outcome(Status.RETRYING, NOON + timedelta(seconds=2))


def test_after_the_last_attempt_it_is_final_and_says_how_it_ended() -> None:
    assert after(Status.FAILED, 3) == Outcome(Status.FAILED)
    assert after(Status.TIMEOUT, 3) == Outcome(Status.TIMEOUT)
    assert after(Status.UNKNOWN, 3) == Outcome(Status.FAILED), "lost every time: it has failed"
    assert after(Status.FAILED, 4) == Outcome(Status.FAILED)


@pytest.mark.parametrize("ended", WRONG)
def test_one_attempt_means_no_retry(ended: Status) -> None:
    assert after(ended, 1, RetryPolicy(max_attempts=1)).status in FINAL


@pytest.mark.parametrize("ended", WRONG)
def test_at_most_once_is_never_tried_again(ended: Status) -> None:
    outcome = after(ended, 1, RetryPolicy(max_attempts=100), Delivery.AT_MOST_ONCE)
    assert outcome == Outcome(ended)


def test_at_most_once_that_was_lost_is_unknown() -> None:
    assert after(Status.UNKNOWN, 1, STEADY, Delivery.AT_MOST_ONCE) == Outcome(Status.UNKNOWN)


def test_every_outcome_is_one_that_a_running_execution_may_become() -> None:
    for ended in (*WRONG, Status.SUCCESS, Status.CANCELLED, Status.PENDING):
        for delivery in Delivery:
            for failures in (1, 3):
                assert can_become(Status.RUNNING, after(ended, failures, STEADY, delivery).status)


def test_the_wait_grows_by_the_multiplier_up_to_its_cap() -> None:
    retry = RetryPolicy(
        max_attempts=100, initial_delay_seconds=2, multiplier=3, max_delay_seconds=100, jitter=False
    )
    assert [backoff_s(retry, failures, SCHEDULE_ID) for failures in range(1, 7)] == [2, 6, 18, 54, 100, 100]


def test_the_wait_stays_finite_however_often_it_failed() -> None:
    retry = RetryPolicy(max_attempts=100, multiplier=100, max_delay_seconds=604800, jitter=False)
    assert backoff_s(retry, 10_000, SCHEDULE_ID) == 604800


def test_jitter_shortens_the_wait_by_up_to_a_half_and_spreads_executions() -> None:
    retry = RetryPolicy(initial_delay_seconds=10, max_delay_seconds=10)
    waits = [backoff_s(retry, 1, new_id()) for _ in range(500)]
    assert all(5 <= wait <= 10 for wait in waits)
    assert min(waits) < 5.5
    assert max(waits) > 9.5
    assert len(set(waits)) == 500


def test_jitter_is_the_same_for_the_same_failure_and_another_for_the_next() -> None:
    retry = RetryPolicy(initial_delay_seconds=10, max_delay_seconds=10)
    assert backoff_s(retry, 1, SCHEDULE_ID) == backoff_s(retry, 1, SCHEDULE_ID)
    assert backoff_s(retry, 1, SCHEDULE_ID) != backoff_s(retry, 2, SCHEDULE_ID)

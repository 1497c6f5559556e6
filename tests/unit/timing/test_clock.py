"""The clocks: one that follows the machine, one that is moved by hand, one that follows the database."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from foliot.timing.clock import ClusterClock, SystemClock, VirtualClock

START = datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC)


@pytest.fixture
def local() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture
def cluster(local: VirtualClock) -> ClusterClock:
    return ClusterClock(local)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def test_the_system_clock_tells_the_machines_time_in_utc() -> None:
    before = time.time()
    now = SystemClock().now()
    assert now.tzinfo is UTC
    assert before <= now.timestamp() <= time.time()


def test_the_system_clock_measures_on_the_monotonic_clock() -> None:
    before = time.monotonic()
    assert before <= SystemClock().monotonic() <= time.monotonic()


def test_a_virtual_clock_stands_still_until_it_is_moved(local: VirtualClock) -> None:
    assert (local.now(), local.monotonic()) == (START, 0.0)
    assert (local.now(), local.monotonic()) == (START, 0.0)
    local.advance(1.5)
    assert (local.now(), local.monotonic()) == (START + seconds(1.5), 1.5)


def test_a_virtual_clock_tells_utc_whatever_zone_it_was_started_in() -> None:
    started_in_tokyo = VirtualClock(START.astimezone(timezone(timedelta(hours=9))))
    assert started_in_tokyo.now() == START
    assert started_in_tokyo.now().tzinfo is UTC


def test_a_virtual_clock_can_be_set_back_while_no_time_passes(local: VirtualClock) -> None:
    local.advance(10)
    local.jump(-3600)
    assert (local.now(), local.monotonic()) == (START + seconds(10 - 3600), 10.0)
    local.jump(7200)
    assert (local.now(), local.monotonic()) == (START + seconds(10 + 3600), 10.0)


def test_time_itself_does_not_run_backwards(local: VirtualClock) -> None:
    with pytest.raises(ValueError, match="jump"):
        local.advance(-0.001)
    assert (local.now(), local.monotonic()) == (START, 0.0)


def test_a_cluster_clock_refuses_to_guess_before_the_database_was_asked(cluster: ClusterClock) -> None:
    with pytest.raises(RuntimeError, match="has not been read"):
        cluster.now()


def test_a_cluster_clock_tells_the_databases_time_and_carries_it_on(
    local: VirtualClock, cluster: ClusterClock
) -> None:
    database_now = START + timedelta(minutes=10)
    cluster.observe(database_now, sent_at=local.monotonic())
    assert cluster.now() == database_now
    local.advance(2.5)
    assert cluster.now() == database_now + seconds(2.5)
    assert cluster.monotonic() == local.monotonic() == 2.5


def test_a_machine_whose_wall_clock_jumps_keeps_the_databases_time(
    local: VirtualClock, cluster: ClusterClock
) -> None:
    cluster.observe(START, sent_at=0.0)
    local.advance(1)
    local.jump(-600)
    assert cluster.now() == START + seconds(1)
    local.jump(86_400)
    assert cluster.now() == START + seconds(1)


def test_the_offset_tells_how_far_the_machine_is_ahead_of_the_database(
    local: VirtualClock, cluster: ClusterClock
) -> None:
    cluster.observe(START - timedelta(minutes=10), sent_at=0.0)
    assert cluster.offset_s == 600.0
    local.jump(-1200)
    cluster.observe(START - timedelta(minutes=10), sent_at=0.0)
    assert cluster.offset_s == -600.0


@pytest.mark.parametrize("read_after_s", [0.0, 0.3, 1.0])
def test_a_slow_answer_leaves_the_estimate_behind_the_truth_by_at_most_its_round_trip(
    local: VirtualClock, cluster: ClusterClock, read_after_s: float
) -> None:
    sent_at = local.monotonic()
    reading = START + seconds(read_after_s)
    local.advance(1.0)
    truth = START + seconds(1.0)
    cluster.observe(reading, sent_at)
    assert timedelta(0) <= truth - cluster.now() <= seconds(1.0)


def test_a_quicker_answer_brings_the_estimate_closer_to_the_truth(
    local: VirtualClock, cluster: ClusterClock
) -> None:
    local.advance(1.0)
    cluster.observe(START, sent_at=0.0)
    assert cluster.now() == START
    cluster.observe(START + seconds(1.0), sent_at=1.0)
    assert cluster.now() == START + seconds(1.0)


def test_a_slow_answer_does_not_spoil_a_good_estimate(local: VirtualClock, cluster: ClusterClock) -> None:
    cluster.observe(START, sent_at=0.0)
    sent_at = local.monotonic()
    local.advance(2.0)
    cluster.observe(START + seconds(0.5), sent_at)
    assert cluster.now() == START + seconds(2.0)


def test_a_database_whose_clock_was_set_back_is_followed(local: VirtualClock, cluster: ClusterClock) -> None:
    cluster.observe(START, sent_at=0.0)
    sent_at = local.monotonic()
    local.advance(0.1)
    set_back = START - timedelta(minutes=5)
    cluster.observe(set_back, sent_at)
    assert cluster.now() == set_back


def test_a_database_whose_clock_was_set_forward_is_followed(
    local: VirtualClock, cluster: ClusterClock
) -> None:
    cluster.observe(START, sent_at=0.0)
    local.advance(0.1)
    cluster.observe(START + timedelta(hours=1), sent_at=0.0)
    assert cluster.now() == START + timedelta(hours=1)


def test_a_step_forward_of_the_databases_clock_is_noticed(local: VirtualClock, cluster: ClusterClock) -> None:
    cluster.observe(START, sent_at=0.0)
    local.advance(5)
    cluster.observe(START + seconds(5), sent_at=5.0)
    assert cluster.stepped_at == float("-inf")
    local.advance(1)
    cluster.observe(START + seconds(66), sent_at=6.0)
    assert cluster.stepped_at == 6.0
    local.advance(1)
    cluster.observe(START + seconds(67), sent_at=7.0)
    assert cluster.stepped_at == 6.0, "once it is followed, it is no news"


def test_neither_a_slow_answer_nor_a_step_back_is_taken_for_a_step_forward(
    local: VirtualClock, cluster: ClusterClock
) -> None:
    local.advance(3)
    cluster.observe(START, sent_at=0.0)  # it took 3 s, so it may be 3 s old
    cluster.observe(START + seconds(3), sent_at=3.0)
    local.advance(1)
    cluster.observe(START - seconds(3600), sent_at=4.0)
    assert cluster.stepped_at == float("-inf")

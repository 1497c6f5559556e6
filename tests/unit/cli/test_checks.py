"""What `foliot doctor` makes of what it sees."""

from datetime import UTC, datetime, timedelta

import pytest

from foliot.cli.process.checks import (
    Level,
    check_journal,
    check_locks,
    check_postgres,
    check_skew,
    check_zones,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TTL = timedelta(seconds=3)
DURABLE = {
    "server_version": "15.4",
    "server_version_num": "150004",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
}


def _after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("database_ahead_s", "level", "words"),
    [
        (0, Level.OK, "0.000 s"),
        (0.9, Level.OK, "behind"),
        (2, Level.WARN, "behind"),
        (-2, Level.WARN, "ahead of"),
    ],
)
def test_clocks_more_than_a_second_apart_are_warned_of(
    database_ahead_s: float, level: Level, words: str
) -> None:
    found = check_skew(NOW, _after(database_ahead_s), NOW)
    assert (found.level, words in found.detail) == (level, True)


def test_a_slow_answer_alone_is_no_skew() -> None:
    assert check_skew(NOW, _after(0), _after(6)).level is Level.OK


def test_led_shards_are_in_order() -> None:
    found = check_locks([("one", _after(-1), NOW), ("two", _after(-2), NOW)], 2, TTL)
    assert found.level is Level.OK
    assert "shard 1: led by two, heartbeat 2.0 s ago" in found.detail


def test_a_shard_without_a_leader_is_warned_of() -> None:
    found = check_locks([("one", _after(-1), NOW), ("", NOW, NOW)], 2, TTL)
    assert found.level is Level.WARN
    assert "shard 1: no leader" in found.detail
    assert "foliot scheduler" in found.advice


def test_a_lease_that_ran_out_is_warned_of() -> None:
    found = check_locks([("one", _after(-4), NOW)], 1, TTL)
    assert found.level is Level.WARN
    assert "its lease has run out" in found.detail


def test_a_missing_lock_row_is_a_failure() -> None:
    assert check_locks([("one", NOW, NOW)], 2, TTL).level is Level.FAIL


def test_no_time_zones_is_a_failure() -> None:
    assert check_zones(set()).level is Level.FAIL
    assert check_zones({"UTC"}).level is Level.OK


def test_a_journal_other_than_wal_is_warned_of() -> None:
    assert check_journal("wal").level is Level.OK
    assert check_journal("delete").level is Level.WARN


def test_a_durable_postgres_is_in_order() -> None:
    assert {each.level for each in check_postgres(DURABLE)} == {Level.OK}


def test_an_old_postgres_is_a_failure() -> None:
    found = check_postgres(DURABLE | {"server_version": "12.9", "server_version_num": "120009"})
    assert found[0].level is Level.FAIL


@pytest.mark.parametrize("name", ["fsync", "synchronous_commit", "full_page_writes"])
def test_a_postgres_that_may_lose_commits_is_warned_of(name: str) -> None:
    found = check_postgres(DURABLE | {name: "off"})[-1]
    assert found.level is Level.WARN
    assert name in found.advice

"""What `foliot doctor` says of those who read events."""

from datetime import UTC, datetime

from foliot.cli.process.checks import Level, check_events
from foliot.outbox.readers_sql import GroupRecord, ReaderState, RefusedTopic, RelayRecord, state_of

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def group(state: ReaderState) -> GroupRecord:
    return GroupRecord(
        group="billing",
        source="database",
        partitions=1,
        next_offset=1,
        lag=7,
        oldest_unread_ts=NOW,
        seen_ts=NOW,
        is_running=False,
        state=state,
    )


def relay(*topics: str) -> RelayRecord:
    return RelayRecord(
        name="default",
        instance_id=None,
        next_offset=1,
        lag=0,
        oldest_unread_ts=None,
        is_running=True,
        state=ReaderState.OK,
        refused_topics=[
            RefusedTopic(topic=each, next_offset=1, reason="no", since_ts=NOW, tried_ts=NOW)
            for each in topics
        ],
    )


def test_an_abandoned_group_and_a_refused_topic_are_named_with_what_to_do() -> None:
    found = check_events([group(ReaderState.ABANDONED)], [relay("orders")])
    assert found.level is Level.WARN
    assert "group billing is abandoned, 7 events" in found.detail
    assert "refuses topic orders (no)" in found.detail
    assert "foliot event groups delete" in found.advice


def test_while_nobody_is_behind_all_is_well() -> None:
    assert check_events([group(ReaderState.OK)], [relay()]).level is Level.OK


def test_many_are_counted_and_not_all_named() -> None:
    found = check_events([], [relay(*(f"topic-{number}" for number in range(9)))])
    assert found.detail.endswith("and 4 more")


def test_only_one_that_does_not_run_and_has_left_an_event_for_an_hour_is_abandoned() -> None:
    assert state_of(is_running=False, oldest_age_s=None) is ReaderState.OK
    assert state_of(is_running=False, oldest_age_s=59) is ReaderState.OK
    assert state_of(is_running=False, oldest_age_s=61) is ReaderState.BEHIND
    assert state_of(is_running=True, oldest_age_s=7200) is ReaderState.BEHIND
    assert state_of(is_running=False, oldest_age_s=3600) is ReaderState.ABANDONED

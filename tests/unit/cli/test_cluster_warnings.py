"""What `foliot cluster status` warns of."""

from datetime import UTC, datetime

from foliot.cli.commands.cluster import warnings_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WELL = {
    "shards": [{"shard": 0, "is_fresh": True}],
    "overdue": {"count": 0, "is_capped": False, "oldest": None},
    "lease_providers": [],
    "unknown_tasks": [],
    "unserved_queues": [],
}


def test_a_queue_that_no_worker_serves_is_named_with_how_much_waits_and_how_long() -> None:
    waiting = {"queue": "reports", "waiting": 3, "oldest_ready_ts": "2026-03-01T11:00:00Z"}
    assert list(warnings_of({**WELL, "unserved_queues": [waiting]}, NOW)) == [
        "no worker serves the queue reports: 3 executions wait in it, the first became ready 1 h ago"
    ]


def test_nothing_is_said_where_all_is_well() -> None:
    assert list(warnings_of(WELL, NOW)) == []

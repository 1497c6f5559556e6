"""The order in which due schedules are planned when there are more than one batch takes."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from foliot.model.policy import Priority
from foliot.planning.definition import FiringDefinition
from foliot.planning.fire import Due
from foliot.scheduler.due_queue import DueQueue

NOW = datetime(2026, 3, 1, tzinfo=UTC)
HIGH, MEDIUM, LOW = Priority.HIGH, Priority.MEDIUM, Priority.LOW


def due(priority: Priority = MEDIUM, host_id: UUID | None = None, *, late_s: float = 0) -> Due:
    definition = FiringDefinition("{}", "{}", NOW, NOW, None, None, "default", priority)
    at = NOW - timedelta(seconds=late_s)
    return Due(uuid4(), host_id or UUID(int=1), 1, at, at, 0, definition)


def filled(*dues: Due) -> DueQueue:
    queue = DueQueue()
    for each in dues:
        queue.put(each)
    return queue


def test_the_most_urgent_goes_first() -> None:
    low, high, medium = due(LOW), due(HIGH), due(MEDIUM)
    assert filled(low, high, medium).take(10) == [high, medium, low]


def test_a_share_of_each_batch_is_for_lower_priorities() -> None:
    queue = filled(*(due(HIGH) for _ in range(100)), *(due(LOW) for _ in range(100)))
    taken = [each.definition.priority for each in queue.take(20)]
    assert (taken.count(HIGH), taken.count(LOW)) == (18, 2)


def test_a_share_that_nobody_needs_is_used_by_others() -> None:
    queue = filled(*(due(HIGH) for _ in range(100)), due(LOW))
    taken = [each.definition.priority for each in queue.take(20)]
    assert (taken.count(HIGH), taken.count(LOW)) == (19, 1)


def test_hosts_take_turns_within_a_priority() -> None:
    one, two = UUID(int=1), UUID(int=2)
    queue = filled(*(due(MEDIUM, one) for _ in range(50)), *(due(MEDIUM, two) for _ in range(3)))
    assert [each.host_id for each in queue.take(6)] == [one, two, one, two, one, two]
    assert {each.host_id for each in queue.take(100)} == {one}


def test_each_schedule_waits_once_with_its_latest_data() -> None:
    first, second = due(), due()
    newer = first._replace(aggregate_version=2)
    queue = filled(first, second, newer)
    assert len(queue) == 2
    assert queue.take(10) == [newer, second], "it keeps its place"
    assert queue.take(10) == []


def test_a_discarded_schedule_is_not_taken() -> None:
    first, second = due(), due()
    queue = filled(first, second)
    queue.discard(first.schedule_id)
    queue.discard(uuid4())
    assert first.schedule_id not in queue
    assert list(queue) == [second.schedule_id]
    assert queue.take(10) == [second]


def test_the_oldest_is_found_among_the_first_of_each_host() -> None:
    assert DueQueue().oldest() is None
    older = due(LOW, UUID(int=2), late_s=60)
    assert filled(due(HIGH, late_s=5), older).oldest() == older

"""What a leader remembers of the messages it has published."""

from uuid import uuid4

from foliot.scheduler.dispatch.published import Published


def test_one_is_due_again_after_a_pause_that_doubles_up_to_the_longest() -> None:
    published, execution_id = Published(first_s=10, longest_s=50), uuid4()
    now = 0.0
    assert published.is_due_again(execution_id, 0, now)
    for pause_s in (10, 20, 40, 50, 50):
        published.add(execution_id, 0, now)
        assert not published.is_due_again(execution_id, 0, now + pause_s - 0.1)
        assert published.is_due_again(execution_id, 0, now + pause_s)
        now += pause_s


def test_the_next_attempt_is_something_new() -> None:
    published, execution_id = Published(first_s=10, longest_s=50), uuid4()
    published.add(execution_id, 0, 0.0)
    published.add(execution_id, 0, 0.0)
    assert published.knows(execution_id, 0)
    assert not published.knows(execution_id, 1)
    assert published.is_due_again(execution_id, 1, 0.0)
    published.add(execution_id, 1, 0.0)
    assert published.is_due_again(execution_id, 1, 10.0)


def test_of_too_many_the_oldest_are_forgotten() -> None:
    published = Published(first_s=10, longest_s=50, limit=2)
    one, two, three = uuid4(), uuid4(), uuid4()
    published.add(one, 0, 0.0)
    published.add(two, 0, 0.0)
    published.add(one, 0, 1.0)
    published.add(three, 0, 2.0)
    assert [published.knows(each, 0) for each in (one, two, three)] == [True, False, True]

"""Ids of a batch: unique, of one instant, and in order."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from foliot.model.ids import first_id_at, ids_at

NOW = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)


def test_ids_of_a_batch_grow_and_are_proper_uuids() -> None:
    next_id = ids_at(NOW)
    made = [next_id() for _ in range(1000)]
    assert made == sorted(made)
    assert len(set(made)) == 1000
    assert {(each.version, UUID(str(each)) == each) for each in made} == {(7, True)}


def test_they_lie_between_the_first_of_their_instant_and_of_the_next() -> None:
    each = ids_at(NOW)()
    assert first_id_at(NOW) <= each < first_id_at(NOW + timedelta(milliseconds=1))


def test_two_batches_of_one_instant_do_not_meet() -> None:
    one, other = ids_at(NOW), ids_at(NOW)
    assert not {one() for _ in range(1000)} & {other() for _ in range(1000)}

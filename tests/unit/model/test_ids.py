"""Identities: ordered by time, spread over the slots, and instants without loss."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from uuid import RFC_4122, UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from foliot.model.ids import (
    SLOTS,
    first_id_at,
    hash_key,
    hash_key_of_name,
    new_id,
    schedule_id_of,
    slot_of,
)
from foliot.model.instant import EPOCH, instant_of, micros_of

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_ids_are_unique_and_ordered_by_the_time_they_were_made_for() -> None:
    times = [NOON + timedelta(milliseconds=n) for n in range(50)]
    ids = [new_id(time) for time in times]
    assert ids == sorted(ids)
    assert len({new_id(NOON) for _ in range(1000)}) == 1000


def test_all_ids_of_a_time_lie_between_the_bounds_of_it_and_the_next() -> None:
    for _ in range(200):
        assert first_id_at(NOON) <= new_id(NOON) < first_id_at(NOON + timedelta(milliseconds=1))
    assert new_id(NOON - timedelta(milliseconds=1)) < first_id_at(NOON)


def test_the_slot_of_a_schedule_is_fixed_and_slots_are_used_evenly() -> None:
    ids = [new_id(NOON + timedelta(milliseconds=n)) for n in range(20_000)]
    slots = Counter(slot_of(each) for each in ids)
    assert set(slots) <= set(range(SLOTS))
    assert len(slots) == SLOTS
    for shards in (2, 3, 8):
        counts = Counter(slot_of(each) % shards for each in ids)
        assert max(counts.values()) < 1.15 * min(counts.values())
    assert slot_of(ids[0]) == slot_of(ids[0])


@given(st.datetimes(timezones=st.just(UTC)))
def test_instants_keep_every_microsecond(instant: datetime) -> None:
    assert instant_of(micros_of(instant)) == instant
    assert micros_of(instant) == (instant - EPOCH) // timedelta(microseconds=1)


def test_the_hash_key_of_a_new_schedule_is_known_by_host_and_name_before_it_has_an_id() -> None:
    host_id, other = uuid4(), uuid4()
    made = {schedule_id_of(new_id(), host_id, "nightly") for _ in range(100)}
    assert len(made) == 100, "the name alone does not decide about the id"
    assert {hash_key(each) for each in made} == {hash_key_of_name(host_id, "nightly")}
    names = {hash_key_of_name(host_id, f"nightly-{number}") for number in range(100)}
    assert len(names | {hash_key_of_name(other, "nightly"), hash_key_of_name(host_id, "nightly")}) == 102


def test_a_schedule_id_is_a_uuid_of_its_instant_and_the_same_whenever_it_is_asked_for() -> None:
    identity, host_id = new_id(), uuid4()
    made = schedule_id_of(identity, host_id, "nightly")
    assert made == schedule_id_of(identity, host_id, "nightly")
    assert (made.version, made.variant) == (8, RFC_4122)
    assert made.int >> 80 == identity.int >> 80, "ordered by time"


def test_schedules_that_were_made_before_keep_their_hash_key() -> None:
    for known in (new_id(), uuid4(), UUID("0190b5f1-7b6a-8abc-9def-0123456789ab")):
        assert hash_key(known) == str(known)

"""The wheel gives out each item once, in order, never early, however time moves."""

import gc
import sys
import tracemalloc

import pytest

from foliot.timing.wheel import TimingWheel

MS = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

NOW = 1_767_225_599_987_654
"""Some 12 ms before a new year, so that small steps cross a second, a minute, an hour and a day."""


@pytest.fixture
def wheel() -> TimingWheel[str]:
    return TimingWheel(NOW)


def test_an_item_comes_out_at_its_microsecond_and_not_before(wheel: TimingWheel[str]) -> None:
    wheel.insert("a", NOW + 1_500, "item")
    assert wheel.advance(NOW + 1_499) == []
    assert wheel.advance(NOW + 1_500) == ["item"]
    assert wheel.advance(NOW + 1_501) == []


@pytest.mark.parametrize(
    "ahead_us",
    [
        1,
        9 * MS,
        10 * MS,
        999 * MS,
        SECOND,
        59 * SECOND,
        MINUTE,
        59 * MINUTE,
        HOUR,
        23 * HOUR,
        DAY,
        29 * DAY,
        30 * DAY,
        31 * DAY,
        45 * DAY,
        400 * DAY,
    ],
)
@pytest.mark.parametrize("past_midnight_us", [0, 1, 12_346, 20 * MS, 30 * SECOND, 10 * DAY])
def test_every_level_gives_out_exactly_on_time_when_the_wheel_wakes_as_it_asks_to(
    ahead_us: int, past_midnight_us: int
) -> None:
    start_us = NOW + past_midnight_us
    due_us = start_us + ahead_us
    wheel = TimingWheel[str](start_us)
    wheel.insert("a", due_us, "item")
    given: list[str] = []
    wakes = 0
    while not given:
        next_us = wheel.next_due_us()
        assert next_us is not None
        assert next_us <= due_us
        assert wheel.advance(next_us - 1) == []
        given = wheel.advance(next_us)
        wakes += 1
        assert wakes <= 5 + ahead_us // (30 * DAY) + 1
    assert (given, next_us) == (["item"], due_us)
    assert wheel.next_due_us() is None


def test_items_come_out_in_order_of_due_time_within_a_slot_and_across_levels(wheel: TimingWheel[str]) -> None:
    dues = [40 * DAY, 5, 3, 2 * HOUR, 4, 70 * SECOND, 1, 2 * DAY, 15 * SECOND, 30 * MS]
    for due in dues:
        wheel.insert(due, NOW + due, str(due))
    assert wheel.advance(NOW + 4) == ["1", "3", "4"]
    assert wheel.advance(NOW + 50 * DAY) == [
        str(due) for due in (5, 30 * MS, 15 * SECOND, 70 * SECOND, 2 * HOUR, 2 * DAY, 40 * DAY)
    ]


def test_a_jump_over_a_month_gives_out_all_that_lies_between_and_nothing_after(
    wheel: TimingWheel[str],
) -> None:
    for days in (1, 29, 30, 31):
        wheel.insert(days, NOW + days * DAY, f"day {days}")
    assert wheel.advance(NOW + 30 * DAY) == ["day 1", "day 29", "day 30"]
    assert wheel.advance(NOW + 31 * DAY - 1) == []
    assert wheel.advance(NOW + 31 * DAY) == ["day 31"]


def test_a_jump_does_not_walk_the_slots_it_passes(wheel: TimingWheel[str]) -> None:
    wheel.insert("a", NOW + 100 * 365 * DAY, "item")
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        assert wheel.advance(NOW + 100 * 365 * DAY - 1) == []
        assert wheel.advance(NOW + 100 * 365 * DAY) == ["item"]
    finally:
        sys.setprofile(None)
    assert calls < 200


def test_an_entry_moves_down_a_level_without_taking_the_place_of_one_a_turn_later(
    wheel: TimingWheel[str],
) -> None:
    wheel.insert("near", NOW + 59 * SECOND, "near")
    wheel.advance(NOW + 30 * SECOND)
    wheel.insert("far", NOW + 30 * SECOND + 59 * SECOND, "far")
    wheel.insert("later", NOW + 119 * SECOND, "later")
    assert wheel.advance(NOW + 59 * SECOND) == ["near"]
    assert wheel.advance(NOW + 89 * SECOND) == ["far"]
    assert wheel.advance(NOW + 119 * SECOND) == ["later"]


def test_what_waits_in_the_overflow_is_not_overtaken_by_later_entries_of_the_day_level() -> None:
    start_us = 1000 * 30 * DAY
    wheel = TimingWheel[str](start_us)
    wheel.insert("a", start_us + 30 * DAY + SECOND, "waited in the overflow")
    wheel.advance(start_us + 29 * DAY)
    wheel.insert("b", start_us + 50 * DAY, "never did")
    assert wheel.next_due_us() == start_us + 30 * DAY
    assert wheel.advance(start_us + 30 * DAY + SECOND) == ["waited in the overflow"]
    assert wheel.advance(start_us + 50 * DAY) == ["never did"]


def test_an_item_inserted_in_the_past_comes_out_at_the_next_advance(wheel: TimingWheel[str]) -> None:
    wheel.insert("old", NOW - DAY, "old")
    wheel.insert("older", NOW - 40 * DAY, "older")
    assert wheel.next_due_us() == NOW - 40 * DAY
    assert wheel.advance(NOW) == ["older", "old"]


def test_a_clock_that_goes_back_gives_out_nothing_and_loses_nothing(wheel: TimingWheel[str]) -> None:
    wheel.insert("a", NOW + 2 * SECOND, "a")
    wheel.insert("b", NOW + 2 * HOUR, "b")
    wheel.advance(NOW + SECOND)
    assert wheel.advance(NOW - HOUR) == []
    assert wheel.advance(NOW + 2 * SECOND - 1) == []
    assert wheel.advance(NOW + 2 * SECOND) == ["a"]
    assert wheel.advance(NOW) == []
    assert wheel.advance(NOW + 2 * HOUR) == ["b"]


def test_an_item_inserted_while_the_clock_is_set_back_waits_for_that_clock(wheel: TimingWheel[str]) -> None:
    wheel.insert("a", NOW - 30 * MINUTE, "a")
    assert wheel.advance(NOW - HOUR) == []
    assert wheel.next_due_us() == NOW - 30 * MINUTE
    assert wheel.advance(NOW - 30 * MINUTE) == ["a"]


def test_inserting_a_key_again_replaces_its_entry(wheel: TimingWheel[str]) -> None:
    wheel.insert("a", NOW + 5, "first")
    wheel.insert("a", NOW + 7, "same slot")
    assert (len(wheel), wheel.get("a"), wheel.next_due_us()) == (1, "same slot", NOW + 7)
    wheel.insert("a", NOW + HOUR, "another level")
    assert wheel.advance(NOW + SECOND) == []
    wheel.insert("a", NOW + 2 * SECOND, "back")
    assert wheel.advance(NOW + 2 * HOUR) == ["back"]


def test_a_cancelled_item_is_handed_back_and_never_comes_out(wheel: TimingWheel[str]) -> None:
    for key in "abc":
        wheel.insert(key, NOW + 5, key)
    assert wheel.cancel("a") == "a"
    assert wheel.cancel("a") is None
    assert "a" not in wheel
    assert "b" in wheel
    assert wheel.get("a") is None
    assert sorted(wheel.advance(NOW + HOUR)) == ["b", "c"]


def test_cancelling_the_next_entry_makes_the_one_after_it_the_next(wheel: TimingWheel[str]) -> None:
    wheel.insert("a", NOW + 5, "a")
    wheel.insert("b", NOW + 6, "b")
    wheel.insert("c", NOW + 11 * MS, "c")
    assert wheel.next_due_us() == NOW + 5
    wheel.cancel("a")
    assert wheel.next_due_us() == NOW + 6
    wheel.cancel("b")
    assert wheel.next_due_us() == NOW + 11 * MS
    wheel.cancel("c")
    assert wheel.next_due_us() is None


def test_cancelling_the_only_entry_of_a_far_slot_spares_waking_for_it(wheel: TimingWheel[str]) -> None:
    wheel.insert("a", NOW + 10 * SECOND, "a")
    wheel.insert("b", NOW + 20 * SECOND, "b")
    assert wheel.next_due_us() == (NOW + 10 * SECOND) // SECOND * SECOND
    wheel.cancel("a")
    assert wheel.next_due_us() == (NOW + 20 * SECOND) // SECOND * SECOND


def test_many_entries_of_one_slot_can_be_cancelled_in_any_order(wheel: TimingWheel[str]) -> None:
    for key in range(20):
        wheel.insert(key, NOW + HOUR, str(key))
    for key in (0, 19, 18, 1, 10, 9, 17, 2):
        assert wheel.cancel(key) == str(key)
    assert sorted(map(int, wheel.advance(NOW + HOUR))) == [3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16]


def test_the_next_due_time_is_exact_within_the_present_second_whatever_waits_above() -> None:
    start_us = NOW - NOW % MINUTE
    wheel = TimingWheel[str](start_us)
    wheel.insert("second", start_us + SECOND, "second")
    wheel.insert("minute", start_us + 100 * SECOND, "minute")
    wheel.insert("month", start_us + 50 * DAY, "month")
    wheel.insert("now", start_us + 999_999, "now")
    assert wheel.next_due_us() == start_us + 999_999
    wheel.insert("sooner", start_us + 999_998, "sooner")
    assert wheel.next_due_us() == start_us + 999_998


def test_items_can_be_counted_walked_and_cleared(wheel: TimingWheel[str]) -> None:
    for key in range(300):
        wheel.insert(key, NOW + key * HOUR, f"item {key}")
    assert len(wheel) == 300
    assert sorted(wheel) == sorted(f"item {key}" for key in range(300))
    wheel.clear()
    assert (len(wheel), list(wheel), wheel.next_due_us()) == (0, [], None)
    assert wheel.advance(NOW + 300 * HOUR) == []
    wheel.insert(1, NOW, "again")
    assert wheel.advance(NOW + 300 * HOUR) == ["again"]


def test_a_key_that_cannot_be_hashed_is_refused_and_changes_nothing(wheel: TimingWheel[str]) -> None:
    wheel.insert("a", NOW + 5, "a")
    with pytest.raises(TypeError):
        wheel.insert([], NOW + 4, "b")  # type: ignore[arg-type]
    assert len(wheel) == 1
    assert wheel.advance(NOW + 5) == ["a"]


def test_what_came_out_is_not_kept_alive(wheel: TimingWheel[str]) -> None:
    class Thing:
        pass

    things = TimingWheel[Thing](NOW)
    for key in range(100):
        things.insert(key, NOW + key, Thing())
    things.advance(NOW + 50)
    for key in range(51, 100):
        things.cancel(key)
    assert not [thing for thing in gc.get_objects() if type(thing) is Thing]


def test_an_entry_takes_less_than_150_bytes_beyond_its_key_and_item() -> None:
    count = 50_000
    keys = list(range(1_000_000, 1_000_000 + count))
    tracemalloc.start()
    try:
        wheel = TimingWheel[None](NOW)
        for key in keys:
            wheel.insert(key, NOW + key % 3600 * SECOND, None)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(wheel) == count
    assert size / count < 150

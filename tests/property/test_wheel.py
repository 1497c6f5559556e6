"""The wheel against the plainest thing that could work: a dict of due times, read whole at every step."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from foliot.timing.wheel import TimingWheel

SECOND = 1_000_000
DAY = 86_400 * SECOND

WIDTHS = (1, 10_000, SECOND, 60 * SECOND, 3600 * SECOND, DAY, 30 * DAY)

keys = st.integers(0, 11)
beside = st.integers(-1, 1)


@st.composite
def spans(draw: st.DrawFn) -> int:
    """A stretch of time of any magnitude, and often one that ends on or beside the border of a slot."""
    return draw(st.integers(0, 70)) * draw(st.sampled_from(WIDTHS)) + draw(st.integers(-2, 2))


class WheelMachine(RuleBasedStateMachine):
    @initialize(turn_us=st.integers(0, 29).map(lambda days: days * DAY), within_us=spans())
    def start(self, turn_us: int, within_us: int) -> None:
        self.now_us = 680 * 30 * DAY + turn_us + within_us
        self.wheel = TimingWheel[tuple[int, int]](self.now_us)
        self.dues: dict[int, tuple[int, int]] = {}
        """By key: when it is due, and which insertion it came from."""
        self.insertions = 0

    def due_by(self, now_us: int) -> list[tuple[int, int]]:
        return sorted(entry for entry in self.dues.values() if entry[0] <= now_us)

    def advance_to(self, now_us: int) -> None:
        expected = self.due_by(now_us)
        given = self.wheel.advance(now_us)
        assert sorted(given) == expected
        assert [due_us for due_us, _ in given] == [due_us for due_us, _ in expected]
        self.dues = {key: entry for key, entry in self.dues.items() if entry[0] > now_us}
        self.now_us = now_us

    @rule(key=keys, ahead_us=spans())
    def insert(self, key: int, ahead_us: int) -> None:
        self.insertions += 1
        entry = (self.now_us + ahead_us, self.insertions)
        self.wheel.insert(key, entry[0], entry)
        self.dues[key] = entry

    @rule(key=keys, behind_us=spans())
    def insert_in_the_past(self, key: int, behind_us: int) -> None:
        self.insert(key, -behind_us)

    @rule(key=keys, border_us=st.sampled_from(WIDTHS), beside_us=beside, borders=st.integers(0, 70))
    def insert_at_a_border(self, key: int, border_us: int, beside_us: int, borders: int) -> None:
        self.insert(key, (borders * border_us - self.now_us % border_us) + beside_us)

    @rule(key=keys)
    def cancel(self, key: int) -> None:
        assert self.wheel.cancel(key) == self.dues.pop(key, None)

    @rule(by_us=spans())
    def advance(self, by_us: int) -> None:
        self.advance_to(self.now_us + by_us)

    @rule(by_us=spans())
    def set_the_clock_back(self, by_us: int) -> None:
        self.advance_to(self.now_us - by_us)

    @precondition(lambda self: self.dues)
    @rule(beside_us=beside)
    def advance_to_the_next_due_time(self, beside_us: int) -> None:
        self.advance_to(max(self.now_us, min(self.dues.values())[0]) + beside_us)

    @precondition(lambda self: self.dues)
    @rule()
    def sleep_as_the_wheel_asks_until_something_is_due(self) -> None:
        due_us = min(self.dues.values())[0]
        for _ in range(100):
            next_us = self.wheel.next_due_us()
            assert next_us is not None
            self.advance_to(max(self.now_us, next_us))
            if self.now_us >= due_us:
                return
        raise AssertionError("the wheel asks to be woken without end")

    @precondition(lambda self: len(self.dues) > 8)
    @rule()
    def clear(self) -> None:
        self.wheel.clear()
        self.dues.clear()

    @invariant()
    def holds_the_same_entries(self) -> None:
        assert len(self.wheel) == len(self.dues)
        assert sorted(self.wheel) == sorted(self.dues.values())
        for key in range(12):
            assert self.wheel.get(key) == self.dues.get(key)
            assert (key in self.wheel) == (key in self.dues)

    @invariant()
    def never_asks_to_be_woken_too_late(self) -> None:
        next_us = self.wheel.next_due_us()
        if not self.dues:
            assert next_us is None
            return
        due_us = min(self.dues.values())[0]
        assert next_us is not None
        assert next_us <= due_us
        if due_us // SECOND <= self.now_us // SECOND:
            assert next_us == due_us


TestWheel = WheelMachine.TestCase
TestWheel.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)

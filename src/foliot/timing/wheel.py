"""The hierarchical timing wheel: hundreds of thousands of due times in memory, a handful touched per tick.

Five levels of slots, a slot as wide as one turn of the level below it: 100 × 10 ms, 60 × 1 s, 60 × 1 min,
24 × 1 h, 30 × 1 d. An entry lies in the finest level that reaches its due time; when time enters the slot
of a coarser level, its entries move to finer ones. What the day level does not reach waits in an overflow
that is looked through once per turn of the day level.

The finest level holds the present second, and what was overdue already when it was inserted. Every other
level starts with the slot after the present one and reaches one turn ahead. So the finest level comes
before all others, and an hour loaded ahead spreads over 60 slots instead of leaving one slot at once when
the hour strikes.

The wheel knows no clock: time is what it was last told, in whole microseconds since the epoch. It never
turns back. Told an older time, it gives out only what is due by that time, so nothing comes out early
while a clock that was set back catches up.

MEASURED
"""

from array import array
from collections.abc import Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")

_TICK_US = 10_000
_TICKS = 100
_SECOND_US = 1_000_000
_FINEST = (1 << _TICKS) - 1


class _Level(NamedTuple):
    """A level above the finest: the place of its first slot among all slots, how many they are, how wide."""

    base: int
    size: int
    width_us: int


_LEVELS = (
    _Level(100, 60, _SECOND_US),
    _Level(160, 60, 60 * _SECOND_US),
    _Level(220, 24, 3600 * _SECOND_US),
    _Level(244, 30, 86400 * _SECOND_US),
)
_OVERFLOW = 274
_TURN_US = 30 * 86400 * _SECOND_US
_NEVER_US = 1 << 80


class TimingWheel(Generic[Item]):
    """Items by due time; insert, cancel and giving out are O(1) per entry, however many there are."""

    # Entries are numbers into columns, not objects: half the memory, and nothing for the garbage
    # collector to walk, which had cost as much as the rest of an insert.
    __slots__ = (
        "_bound_us",
        "_due_us",
        "_free",
        "_items",
        "_keys",
        "_now_us",
        "_numbers",
        "_occupied",
        "_place",
        "_position",
        "_reach_us",
        "_slots",
    )

    def __init__(self, now_us: int) -> None:
        self._reach_us = (0, 0, 0, 0, 0)
        self._set_time(now_us)
        self.clear()

    def clear(self) -> None:
        """Forget all entries; time stays."""
        self._numbers: dict[Hashable, int] = {}
        self._due_us = array("q")
        self._keys: list[Hashable] = []
        self._items: list[Item | None] = []
        self._place = array("h")
        self._position = array("i")
        self._free: list[int] = []
        self._slots: list[list[int]] = [[] for _ in range(_OVERFLOW + 1)]
        # Bit n tells that slot n has entries.
        self._occupied = 0
        # Until then nothing is due and no entry changes its level; None when it has to be looked up.
        self._bound_us: int | None = _NEVER_US

    def insert(self, key: Hashable, due_us: int, item: Item) -> None:
        """Keep an item until its due time, which may be past; it replaces an entry of the same key."""
        if not self._free:
            self._grow()
        number = self._free[-1]
        held = self._numbers.setdefault(key, number)
        if held == number:
            self._free.pop()
        else:
            self._remove(held)
            number = held
        self._due_us[number] = due_us
        self._keys[number] = key
        self._items[number] = item
        self._put(number, due_us)

    def _grow(self) -> None:
        size = len(self._keys)
        more = max(size // 8, 64)
        self._due_us.frombytes(bytes(8 * more))
        self._place.frombytes(bytes(2 * more))
        self._position.frombytes(bytes(4 * more))
        self._keys += [None] * more
        self._items += [None] * more
        self._free.extend(range(size + more - 1, size - 1, -1))

    def cancel(self, key: Hashable) -> Item | None:
        """Take an item out before its time."""
        number = self._numbers.pop(key, None)
        if number is None:
            return None
        self._remove(number)
        item = self._items[number]
        self._items[number] = self._keys[number] = None
        self._free.append(number)
        return item

    def get(self, key: Hashable) -> Item | None:
        number = self._numbers.get(key)
        return None if number is None else self._items[number]

    def advance(self, now_us: int) -> list[Item]:
        """Take out all that is due at or before now, in order of due time; nothing before its microsecond.

        Costs what comes out or changes its level, not the time that passed: a month of standstill is
        one step.
        """
        bound_us = self._bound_us
        if bound_us is None:
            bound_us = self._find_bound()
        if now_us < bound_us:
            if now_us > self._now_us:
                self._set_time(now_us)
            return []
        due: list[int] = []
        if now_us > self._now_us:
            self._turn(now_us, due)
        self._pick(now_us, due)
        self._bound_us = None
        due.sort(key=self._due_us.__getitem__)
        return self._drop(due)

    def _drop(self, due):
        numbers, keys, items = self._numbers, self._keys, self._items
        dropped = []
        for number in due:
            del numbers[keys[number]]
            dropped.append(items[number])
            keys[number] = items[number] = None
        due.reverse()
        self._free += due
        return dropped

    def next_due_us(self) -> int | None:
        """When to advance next: exact within the present second, else a moment not after the next due time.

        None when there are no entries. Looking it up anew reads one slot of the finest level at most.
        """
        if not self._numbers:
            return None
        return self._find_bound() if self._bound_us is None else self._bound_us

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._numbers

    def __iter__(self) -> Iterator[Item]:
        for number in self._numbers.values():
            yield self._items[number]

    def _set_time(self, now_us: int) -> None:
        self._now_us = now_us
        end = self._reach_us[0]
        if end - 1000000 <= now_us < end:
            return
        self._reach_us = (
            (now_us // _SECOND_US + 1) * _SECOND_US,
            *[((now_us // width_us) + size) * width_us for _, size, width_us in _LEVELS],
        )

    def _put(self, number: int, due_us: int) -> None:
        """Lay the entry into the finest level that reaches it."""
        present, seconds, minutes, hours, days = self._reach_us
        if due_us < present:
            place = max(due_us, self._now_us) // _TICK_US % _TICKS
        elif due_us < seconds:
            place = 100 + due_us // 1000000 % 60
        elif due_us < minutes:
            place = 160 + due_us // 60000000 % 60
        elif due_us < hours:
            place = 220 + due_us // 3600000000 % 24
        elif due_us < days:
            place = 244 + due_us // 86400000000 % 30
        else:
            place = _OVERFLOW
        slot = self._slots[place]
        if not slot:
            self._occupied |= 1 << place
            self._bound_us = None
        elif place < 100 and self._bound_us is not None and due_us < self._bound_us:
            self._bound_us = due_us
        self._place[number] = place
        self._position[number] = len(slot)
        slot.append(number)

    def _remove(self, number: int) -> None:
        place = self._place[number]
        slot = self._slots[place]
        last = slot.pop()
        if last != number:
            position = self._position[number]
            slot[position] = last
            self._position[last] = position
        if not slot:
            self._occupied ^= 1 << place
        if not slot or self._due_us[number] == self._bound_us:
            self._bound_us = None

    def _turn(self, now_us: int, due: list[int]) -> None:
        """Let time go on to a later moment: empty the slots it passed or entered, but the present one."""
        entered = self._entered(now_us)
        self._set_time(now_us)
        slots = self._slots
        # All are detached before any entry is put back: it may belong into a slot that was just passed.
        passed = []
        while entered:
            place = _lowest_bit(entered)
            entered ^= 1 << place
            passed += slots[place]
            slots[place] = []
        self._bound_us = None
        due_us_of = self._due_us
        for number in passed:
            due_us = due_us_of[number]
            if due_us <= now_us:
                due.append(number)
            else:
                self._put(number, due_us)

    def _entered(self, now_us: int) -> int:
        """The occupied slots that time passes or enters on its way to a later moment, marked as empty."""
        if now_us < self._reach_us[0]:
            mask = (1 << now_us // _TICK_US % _TICKS) - 1
        else:
            mask = _FINEST
            for base, size, width_us in _LEVELS:
                present = self._now_us // width_us
                steps = min(now_us // width_us - present, size)
                bits = ((1 << steps) - 1) << (present + 1) % size
                mask |= (bits | bits >> size) % (1 << size) << base
            if now_us // _TURN_US != self._now_us // _TURN_US:
                mask |= 1 << _OVERFLOW
        entered = self._occupied & mask
        self._occupied ^= entered
        return entered

    def _pick(self, now_us: int, due: list[int]) -> None:
        """Take what is due out of the present slot of the finest level."""
        place = self._now_us // _TICK_US % _TICKS
        slot = self._slots[place]
        due_us = self._due_us
        ripe = [number for number in slot if due_us[number] <= now_us]
        for number in ripe:
            self._remove(number)
        due += ripe

    def _find_bound(self) -> int:
        occupied, now_us = self._occupied, self._now_us
        bound_us = _NEVER_US
        if occupied & _FINEST:
            bound_us = min(map(self._due_us.__getitem__, self._slots[_lowest_bit(occupied)]))
        else:
            for base, size, width_us in _LEVELS:
                bits = occupied >> base & (1 << size) - 1
                if bits:
                    present = now_us // width_us
                    ahead = bits >> present % size | bits << size - present % size
                    bound_us = min(bound_us, (present + _lowest_bit(ahead)) * width_us)
            if occupied >> _OVERFLOW:
                bound_us = min(bound_us, (now_us // _TURN_US + 1) * _TURN_US)
        self._bound_us = bound_us
        return bound_us


def _lowest_bit(bits: int) -> int:
    return (bits & -bits).bit_length() - 1

"""Compares recurrence rules with dateutil: time to the next occurrence, memory, and times around DST.

It prints figures and has no target. `python -m bench.rrule` measures. See docs/decisions/0022.
"""

import signal
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr

from foliot.model.policy import Dst
from foliot.timing.rrule import rule_times

RULES = (
    "FREQ=DAILY;BYHOUR=9;BYMINUTE=30;BYSECOND=0",
    "FREQ=WEEKLY;BYDAY=MO,WE,FR",
    "FREQ=MONTHLY;BYDAY=-1FR",
    "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
    "FREQ=MINUTELY;INTERVAL=5",
)
NEVER = "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30"
BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2021, 1, 1, 2, 30, tzinfo=BERLIN)
YEARS = timedelta(days=5 * 365)
ENDLESS_S = 30


def micros(call: Callable[[], object]) -> float:
    """Return the microseconds of the fastest call within half a second; of one call if it takes longer."""
    best, began = float("inf"), time.perf_counter()
    while time.perf_counter() - began < 0.5:
        called = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - called)
    return best * 1e6


def kilobytes(make: Callable[[], Any]) -> float:
    """Return the memory that a rule holds after its first use."""
    make()
    tracemalloc.start()
    kept = [make() for _ in range(3)]
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / len(kept) / 1024


@contextmanager
def limited() -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(ENDLESS_S)
    try:
        yield
    finally:
        signal.alarm(0)


def ours(rule: str) -> Any:
    times = rule_times(rule, BERLIN, Dst(), START)
    times.after(START)
    return times


def theirs(rule: str) -> Any:
    times = rrulestr(rule, dtstart=START)
    times.after(START)
    return times


def main() -> bool:
    late = START + YEARS
    print(f"{'next, 5 years after the start':48} {'foliot':>10} {'dateutil':>12}   {'kB':>6} {'kB':>6}")
    for rule in RULES:
        mine, other = ours(rule), theirs(rule)
        figures = micros(lambda: mine.after(late)), micros(lambda: other.after(late))  # noqa: B023
        sizes = kilobytes(lambda: ours(rule)), kilobytes(lambda: theirs(rule))  # noqa: B023
        print(f"{rule:48} {figures[0]:7.1f} us {figures[1]:9.1f} us   {sizes[0]:6.1f} {sizes[1]:6.1f}")
    print(f"\n{NEVER}, which never fires")
    for name, make in (("foliot", ours), ("dateutil", theirs)):
        began = time.perf_counter()
        try:
            with limited():
                make(NEVER)
            end = "no time found"
        except Exception as error:
            end = f"{type(error).__name__}: {error}"[:90]
        print(f"  {name:10} {time.perf_counter() - began:8.3f} s  {end}")
    print("\nDAILY at 02:30 in Berlin, around both changes of 2026: instants in UTC")
    for day in (datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)):
        mine, other = ours("FREQ=DAILY"), theirs("FREQ=DAILY")
        for name, times in (("foliot", mine), ("dateutil", other)):
            found, at = [], day
            for _ in range(2):
                at = times.after(at)
                at = getattr(at, "at", at)
                found.append(f"{at.astimezone(UTC):%d %H:%M}")
            print(f"  {day:%B}  {name:10} {', '.join(found)}")
    print("\nHOURLY in Berlin, around the repeated hour: instants in UTC")
    for name, times in (("foliot", ours("FREQ=HOURLY")), ("dateutil", theirs("FREQ=HOURLY"))):
        found, at = [], datetime(2026, 10, 24, 23, 0, tzinfo=UTC)
        for _ in range(5):
            at = times.after(at)
            found.append(f"{at.astimezone(UTC):%H:%M}")
        print(f"  {name:10} {', '.join(found)}")
    return True


if __name__ == "__main__":
    sys.exit(not main())

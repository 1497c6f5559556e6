"""The `rrule` trigger, and the SDK's `rrule`."""

from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import ClassVar, Literal
from zoneinfo import ZoneInfo

from pydantic import Field

from foliot.kinds.checking import MAX_CACHED, TIMEZONE, checked, countable, warn_of_short_months
from foliot.model.kind import BaseTrigger, CliOption, PreviewWarning
from foliot.model.policy import Dst, DstGap, DstRepeat
from foliot.model.recurrence import Recurrence
from foliot.timing.rrule import rule_times
from foliot.timing.rule_parts import Frequency, RecurrenceRule, parse_rule, require_bounded_count
from foliot.timing.zone import check_zone

_PERIODS = {
    Frequency.YEARLY: "year",
    Frequency.MONTHLY: "month",
    Frequency.WEEKLY: "week",
    Frequency.DAILY: "day",
    Frequency.HOURLY: "hour",
    Frequency.MINUTELY: "minute",
    Frequency.SECONDLY: "second",
}
_DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip


class RRuleTrigger(BaseTrigger):
    """An RFC 5545 recurrence rule; its DTSTART is the schedule's start, in `timezone`."""

    display_name: ClassVar = "Recurrence rule"
    position: ClassVar = 4
    cli_options: ClassVar = (CliOption("--rrule", ("rule",), "RULE", "An RFC 5545 rule."),)
    counts_from_start: ClassVar = True

    kind: Literal["rrule"] = "rrule"
    rule: str = Field(min_length=1, max_length=1000)
    timezone: str = "UTC"

    def build(self, *, dst: Dst, anchor: datetime, key: str) -> Recurrence:  # noqa: ARG002
        tz = check_zone(self.timezone, TIMEZONE)
        start = countable(anchor, "/start_ts").replace(microsecond=0)
        return _rule(self.rule, tz, dst.gap, dst.repeat, start)

    def describe(self) -> str:
        return f"{_in_words(parse_rule(self.rule))} ({self.timezone})"

    def check_new(self) -> None:
        require_bounded_count(self.rule)

    def warnings(self, start: datetime, key: str | None) -> Iterator[PreviewWarning]:  # noqa: ARG002
        rule = parse_rule(self.rule)
        days = rule.bymonthday
        is_by_month = rule.freq in (Frequency.MONTHLY, Frequency.YEARLY)
        if not days and is_by_month and not (rule.byday or rule.byyearday or rule.byweekno):
            # Then the day of the start applies.
            days = (start.day,)
        if is_by_month and not rule.bysetpos:
            months = rule.bymonth or range(1, 13)
            if rule.freq is Frequency.YEARLY and not rule.bymonth and not rule.bymonthday:
                months = (start.month,)
            yield from warn_of_short_months(days, months, "BYMONTHDAY=-1")

    def follows_real_time(self, key: str) -> bool:  # noqa: ARG002
        return parse_rule(self.rule).follows_real_time


def rrule(rule: str, tz: str = "UTC") -> RRuleTrigger:
    """Return a trigger for an RFC 5545 recurrence rule."""
    return checked(RRuleTrigger, rule=rule, timezone=tz)


@lru_cache(maxsize=MAX_CACHED)
def _rule(rule: str, tz: ZoneInfo, gap: DstGap, repeat: DstRepeat, start: datetime) -> Recurrence:
    return rule_times(rule, tz, Dst(gap=gap, repeat=repeat), start)


def _in_words(rule: RecurrenceRule) -> str:
    unit = _PERIODS[rule.freq]
    words = [f"Every {unit}" if rule.interval == 1 else f"Every {rule.interval} {unit}s"]
    if rule.byday:
        words.append("on " + _list([_weekday(day, nth) for day, nth in rule.byday]))
    if rule.bymonthday:
        words.append("on day " + _numbers(rule.bymonthday) + " of the month")
    if rule.byyearday:
        words.append("on day " + _numbers(rule.byyearday) + " of the year")
    if rule.byweekno:
        words.append("in week " + _numbers(rule.byweekno))
    if rule.bymonth:
        words.append("in " + _list([_MONTHS[month - 1] for month in rule.bymonth]))
    for name, numbers in (("hour", rule.byhour), ("minute", rule.byminute), ("second", rule.bysecond)):
        if numbers:
            words.append(f"at {name} {_numbers(numbers)}")
    if rule.bysetpos:
        words.append(f"of these only number {_numbers(rule.bysetpos)}")
    if rule.count is not None:
        words.append("once" if rule.count == 1 else f"{rule.count} times")
    if rule.until is not None:
        words.append(f"until {rule.until:%Y-%m-%d %H:%M}")
    return ", ".join(words)


def _weekday(day: int, nth: int) -> str:
    name = _DAY_NAMES[day]
    if nth == 0:
        return name
    if nth < 0:
        return f"the last {name}" if nth == -1 else f"the {_ordinal(-nth)} {name} from the end"
    return f"the {_ordinal(nth)} {name}"


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0, "th")
    return f"{number}{ending}"


def _numbers(numbers: tuple[int, ...]) -> str:
    return _list([str(number) for number in numbers])


def _list(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"

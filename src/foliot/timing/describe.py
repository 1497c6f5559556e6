"""Describes a trigger in words, for people who do not read cron."""

from functools import lru_cache

from cron_descriptor import ExpressionDescriptor, Options
from cron_descriptor.ExpressionParser import ExpressionParser
from cron_descriptor.GetText import GetText

from foliot.model.trigger import (
    CronTrigger,
    DelayTrigger,
    FrequencyUnit,
    IntervalTrigger,
    OnceTrigger,
    RRuleTrigger,
    Trigger,
)
from foliot.timing.cron_fields import H_TERM, is_hashed, normalise
from foliot.timing.rule_parts import Frequency, RecurrenceRule, parse_rule

_OPTIONS = Options(use_24hour_time_format=True, locale_code="en_GB")
_WORDS = GetText(_OPTIONS.locale_code)


class _Descriptor(ExpressionDescriptor):  # type: ignore[misc]
    """The library's class, with its texts cached. It reads them for every expression, which takes 0.5 ms."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._options = _OPTIONS
        self.get_text = _WORDS
        self._expression_parts = ExpressionParser(expression, _OPTIONS).parse()


_UNITS = ("second", "minute", "hour", "day", "month", "weekday")
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


def describe(trigger: Trigger) -> str:
    """Describe the trigger in an English phrase. Never raises for a valid trigger."""
    match trigger:
        case CronTrigger():
            return f"{_cron(trigger.expression)} ({trigger.timezone})"
        case IntervalTrigger():
            every = _every(trigger.frequency_time, trigger.frequency_unit.value.lower().removesuffix("s"))
            is_elapsed = trigger.frequency_unit in (
                FrequencyUnit.SECONDS,
                FrequencyUnit.MINUTES,
                FrequencyUnit.HOURS,
            )
            return every if is_elapsed else f"{every} ({trigger.timezone})"
        case OnceTrigger():
            return f"Once, at {trigger.at.isoformat(sep=' ')}"
        case RRuleTrigger():
            return f"{_rule(parse_rule(trigger.rule))} ({trigger.timezone})"
        case DelayTrigger():
            amount = f"{trigger.seconds:.15g}"
            return f"{amount} second{'' if amount == '1' else 's'} after the last run has ended"


def _every(amount: int, unit: str) -> str:
    return f"Every {unit}" if amount == 1 else f"Every {amount} {unit}s"


def _cron(expression: str) -> str:
    parts = normalise(expression).split()
    days = _days(parts)
    if is_hashed(" ".join(parts[:-3])):
        # The library does not know H, a value that differs between schedules.
        times = ", ".join(
            _field(part, unit) for part, unit in zip(parts[:-3], _UNITS[-len(parts) :], strict=False)
        )
        return f"At {times}{days}" if times.startswith("a") else times[:1].upper() + times[1:] + days
    return _library([*parts[:-3], "*", "*", "*"]).removeprefix(", ") + days


def _days(parts: list[str]) -> str:
    """Describe the day and month fields, with a comma before; empty if all are open."""
    day, month, weekday = parts[-3:]
    is_listed_special = any("," in part and any(sign in part for sign in "LW#") for part in (day, weekday))
    if is_listed_special or is_hashed(" ".join(parts[-3:])):
        phrases = [_field(part, unit) for part, unit in zip(parts[-3:], _UNITS[-3:], strict=True)]
        return "".join(f", {phrase}" for phrase in phrases if phrase)
    words = _library(["0", "0", day, month, weekday]).removeprefix("At 00:00")
    if day.startswith("*") or weekday.startswith("*"):
        # The library reads every pair of day fields as alternatives.
        words = words.replace(", or ", ", and only ")
    return words


def _library(parts: list[str]) -> str:
    return _described(" ".join(parts))


@lru_cache(maxsize=4_096)
def _described(expression: str) -> str:
    try:
        return str(_Descriptor(expression).get_full_description())
    except Exception:  # it can't read some rare forms; then the expression itself is shown
        return f", cron {expression}"


def _field(part: str, unit: str) -> str:
    if part in ("*", "?"):
        return f"every {unit}" if unit in ("second", "minute", "hour") else ""
    if part.startswith("*/"):
        return f"every {part[2:]} {unit}s"
    return " and ".join(_term(term, unit) for term in part.split(","))


def _term(term: str, unit: str) -> str:
    read = H_TERM.fullmatch(term)
    if read is None:
        return f"{unit} {term}"
    within = f" from {read[1]} to {read[2]}" if read[1] is not None else ""
    if read[3] is not None:
        return f"every {read[3]} {unit}s{within} with an offset of its own"
    return f"{'an' if unit == 'hour' else 'a'} {unit} of its own{within}"


def _rule(rule: RecurrenceRule) -> str:
    words = [_every(rule.interval, _PERIODS[rule.freq])]
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

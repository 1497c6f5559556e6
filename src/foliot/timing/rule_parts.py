"""Parses RFC 5545 recurrence rules. Refuses what the standard forbids, and rules that can't be fast."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time
from enum import IntEnum
from typing import NoReturn

from foliot.model.errors import InvalidError

POINTER = "/trigger/rule"


class Frequency(IntEnum):
    """Frequencies with the numbers of dateutil: finer ones have greater numbers."""

    YEARLY = 0
    MONTHLY = 1
    WEEKLY = 2
    DAILY = 3
    HOURLY = 4
    MINUTELY = 5
    SECONDLY = 6


WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
Numbers = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrenceRule:
    """A parsed recurrence rule. An empty tuple: the part was not given."""

    freq: Frequency
    interval: int = 1
    count: int | None = None
    until: datetime | None = None
    """The last allowed moment: in UTC if it ended in Z, else naive, on the wall clock."""
    wkst: int = 0
    bymonth: Numbers = ()
    bymonthday: Numbers = ()
    byyearday: Numbers = ()
    byweekno: Numbers = ()
    byday: tuple[tuple[int, int], ...] = ()
    """Pairs of weekday (0 = Monday) and its number in the month or year; 0 means every."""
    byhour: Numbers = ()
    byminute: Numbers = ()
    bysecond: Numbers = ()
    bysetpos: Numbers = ()

    @property
    def follows_real_time(self) -> bool:
        """Whether the minute or the hour is open, so that it fires in both hours of a repeat (as cron)."""
        open_minute = self.freq >= Frequency.MINUTELY and not self.byminute
        return open_minute or (self.freq >= Frequency.HOURLY and not self.byhour)


_NUMBERS = {
    "BYMONTH": (1, 12, False),
    "BYMONTHDAY": (1, 31, True),
    "BYYEARDAY": (1, 366, True),
    "BYWEEKNO": (1, 53, True),
    "BYHOUR": (0, 23, False),
    "BYMINUTE": (0, 59, False),
    "BYSECOND": (0, 59, False),
    "BYSETPOS": (1, 366, True),
}
_KNOWN = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", *_NUMBERS)
_BYDAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)")
_UNTIL = re.compile(r"(\d{8})(?:T(\d{6})(Z?))?")
_MAX_NUMBER = 1_000_000_000
MAX_COUNT = 1_000_000
"""Limit for COUNT of a new rule: a year of minutes, but not a year of seconds."""
MAX_COUNT_WITH_SETPOS = 10_000
"""Limit for COUNT with BYSETPOS: there all months or years before the n-th occurrence are iterated."""
MAX_IN_MONTH = 5
"""Occurrences of each weekday."""
_SUB_DAILY_FILTERS = frozenset({"BYDAY", "BYHOUR", "BYMINUTE", "BYSECOND"})


def refuse(detail: str, hint: str, code: str = "bad_rule") -> NoReturn:
    raise InvalidError.at(POINTER, code, detail, hint)


def parse_rule(text: str) -> RecurrenceRule:
    """Parse a rule, or raise an InvalidError that names the wrong part."""
    parts = _split(text)
    if "FREQ" not in parts:
        refuse("FREQ is missing", f"FREQ= one of: {', '.join(f.name for f in Frequency)}")
    if parts["FREQ"] not in Frequency.__members__:
        refuse(f'FREQ "{parts["FREQ"]}" is not known', f"one of: {', '.join(f.name for f in Frequency)}")
    rule = RecurrenceRule(
        freq=Frequency[parts["FREQ"]],
        interval=_number("INTERVAL", parts["INTERVAL"], 1, _MAX_NUMBER) if "INTERVAL" in parts else 1,
        count=_number("COUNT", parts["COUNT"], 1, _MAX_NUMBER) if "COUNT" in parts else None,
        until=_until(parts["UNTIL"]) if "UNTIL" in parts else None,
        wkst=_weekday(parts["WKST"]) if "WKST" in parts else 0,
        byday=_byday(parts["BYDAY"]) if "BYDAY" in parts else (),
        **{name.lower(): _numbers(name, parts[name]) for name in _NUMBERS if name in parts},
    )
    _check(rule, parts)
    return rule


def require_bounded_count(text: str) -> None:
    """Refuse a COUNT above the maximum. Only for new rules.

    Not part of `parse_rule`, because saved schedules with a larger COUNT must go on firing.
    """
    rule = parse_rule(text)
    limit = MAX_COUNT_WITH_SETPOS if rule.bysetpos else MAX_COUNT
    if rule.count is not None and rule.count > limit:
        with_setpos = " together with BYSETPOS" if rule.bysetpos else ""
        refuse(
            f"COUNT {rule.count} is more than {limit}, the maximum{with_setpos}",
            "a smaller COUNT, or UNTIL with a date",
            "count_too_large",
        )


def _split(text: str) -> dict[str, str]:
    text = text.strip().upper().removeprefix("RRULE:")
    for line in ("DTSTART", "EXDATE", "RDATE", "EXRULE"):
        if line in text:
            refuse(
                f"{line} does not belong into the rule",
                "give the RRULE part only; it starts at the schedule's start_ts, calendars exclude days",
            )
    parts: dict[str, str] = {}
    for item in text.removesuffix(";").split(";"):
        name, equals, value = item.strip().partition("=")
        if not equals or not value:
            refuse(f'"{item[:40]}" is not of the form NAME=value', "such as FREQ=WEEKLY;BYDAY=MO,FR")
        if name not in _KNOWN:
            refuse(f'"{name[:40]}" is not part of a rule', f"one of: {', '.join(_KNOWN)}")
        if name in parts:
            refuse(f"{name} is given twice", "give it once, with its values separated by commas")
        parts[name] = value
    return parts


def _number(name: str, text: str, low: int, high: int, *, signed: bool = False) -> int:
    right = f"a whole number, {low} to {high}" + (f" or -{high} to -{low}" if signed else "")
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text):
        refuse(f'{name} "{text[:40]}" is not a number', right)
    number = int(text)
    if not low <= (abs(number) if signed else number) <= high:
        refuse(f"{name} {number} is out of range", right)
    return number


def _numbers(name: str, text: str) -> Numbers:
    low, high, signed = _NUMBERS[name]
    return tuple(sorted({_number(name, item, low, high, signed=signed) for item in text.split(",")}))


def _weekday(text: str) -> int:
    if text not in WEEKDAYS:
        refuse(f'WKST "{text[:40]}" is not a weekday', f"one of: {', '.join(WEEKDAYS)}")
    return WEEKDAYS.index(text)


def _byday(text: str) -> tuple[tuple[int, int], ...]:
    found = set()
    for item in text.split(","):
        read = _BYDAY.fullmatch(item)
        if not read or (read[1] is not None and not 1 <= abs(int(read[1])) <= 53):
            refuse(f'BYDAY "{item[:40]}" can not be read', "such as MO, 2TU (the second) or -1FR (the last)")
        found.add((WEEKDAYS.index(read[2]), int(read[1] or 0)))
    return tuple(sorted(found))


def _until(text: str) -> datetime:
    read = _UNTIL.fullmatch(text)
    try:
        if not read:
            raise ValueError
        day = datetime.strptime(read[1], "%Y%m%d")  # noqa: DTZ007
        if read[2] is None:  # a date alone means to the end of that day
            return datetime.combine(day, time.max)
        moment = datetime.strptime(read[1] + read[2], "%Y%m%d%H%M%S")  # noqa: DTZ007
    except ValueError:
        refuse(f'UNTIL "{text[:40]}" is not a date or time', "such as 20271231 or 20271231T235959Z")
    return moment.replace(tzinfo=UTC) if read[3] else moment


def _check(rule: RecurrenceRule, parts: dict[str, str]) -> None:
    """Refuse combinations that RFC 5545 forbids, and filters on short frequencies that need long searches."""
    freq = rule.freq
    filters = {name for name in parts if name.startswith("BY")}
    if "COUNT" in parts and "UNTIL" in parts:
        refuse("COUNT and UNTIL exclude each other", "give one of them")
    if freq is Frequency.SECONDLY and filters:
        refuse(
            f"FREQ=SECONDLY can't be filtered by {', '.join(sorted(filters))}",
            "FREQ=DAILY with BYHOUR, BYMINUTE and BYSECOND says the same",
        )
    if freq >= Frequency.HOURLY and filters - _SUB_DAILY_FILTERS:
        refuse(
            f"FREQ={freq.name} can't be filtered by {', '.join(sorted(filters - _SUB_DAILY_FILTERS))}",
            "FREQ=DAILY with BYHOUR and BYMINUTE says the same",
        )
    if rule.byweekno and freq is not Frequency.YEARLY:
        refuse(f"BYWEEKNO does not go with FREQ={freq.name}", "only with FREQ=YEARLY")
    if rule.byyearday and freq is not Frequency.YEARLY:
        refuse(f"BYYEARDAY does not go with FREQ={freq.name}", "only with FREQ=YEARLY")
    if rule.bymonthday and freq is Frequency.WEEKLY:
        refuse("BYMONTHDAY does not go with FREQ=WEEKLY", "FREQ=MONTHLY or FREQ=DAILY")
    is_within_months = freq is Frequency.MONTHLY or (freq is Frequency.YEARLY and bool(rule.bymonth))
    if is_within_months and any(abs(nth) > MAX_IN_MONTH for _, nth in rule.byday):
        refuse(
            "BYDAY has a number that no weekday of a month reaches",
            f"1 to {MAX_IN_MONTH}, or -{MAX_IN_MONTH} to -1",
            "never_fires",
        )
    if any(nth for _, nth in rule.byday) and (freq > Frequency.MONTHLY or rule.byweekno):
        refuse(
            "a numbered BYDAY such as 2MO needs a month or a year to count in", "FREQ=MONTHLY or FREQ=YEARLY"
        )

"""Parse a recurrence rule and compute its times, by testing wall times one by one.

Not supported: BYSETPOS, BYWEEKNO, BYYEARDAY, and weekdays with and without numbers in one rule. Rules with
them are counted as not checked.
"""

from calendar import isleap, monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from zoneinfo import ZoneInfo

from foliot.verify.cron import UnsupportedExpressionError
from foliot.verify.wall_times import DAY, REAL_TIME, DstRules, on_day

_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_BY_DAY = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY")
_STEPS = {
    "HOURLY": timedelta(hours=1),
    "MINUTELY": timedelta(minutes=1),
    "SECONDLY": timedelta(seconds=1),
}
_READ = frozenset(
    (
        "FREQ",
        "INTERVAL",
        "COUNT",
        "UNTIL",
        "WKST",
        "BYMONTH",
        "BYMONTHDAY",
        "BYDAY",
        "BYHOUR",
        "BYMINUTE",
        "BYSECOND",
    )
)
MAX_STEPS = 2_000_000
"""Maximum number of steps that an hourly, minutely or secondly rule is walked."""


@dataclass(frozen=True, slots=True)
class ParsedRule:
    """A parsed recurrence rule. An empty set means that the part was not given."""

    freq: str
    interval: int
    count: int | None
    until: datetime | None
    week_start: int
    months: frozenset[int]
    month_days: frozenset[int]
    weekdays: frozenset[tuple[int, int]]
    """Pairs of weekday (0 = Monday) and its number in the month or year (0 = every)."""
    hours: frozenset[int]
    minutes: frozenset[int]
    seconds: frozenset[int]

    @property
    def follows_real_time(self) -> bool:
        is_minute_open = self.freq in ("MINUTELY", "SECONDLY") and not self.minutes
        return is_minute_open or (self.freq in _STEPS and not self.hours)


def read_rule(text: str) -> ParsedRule:
    """Parse a recurrence rule. Raises UnsupportedExpressionError."""
    parts = dict(
        part.strip().split("=", 1)
        for part in text.strip().upper().removeprefix("RRULE:").removesuffix(";").split(";")
    )
    unread = sorted(set(parts) - _READ)
    if unread:
        raise UnsupportedExpressionError(f"{', '.join(unread)} in a rule")

    def numbers(name: str) -> frozenset[int]:
        return frozenset(int(each) for each in parts[name].split(",")) if name in parts else frozenset()

    rule = ParsedRule(
        freq=parts["FREQ"],
        interval=int(parts.get("INTERVAL", "1")),
        count=int(parts["COUNT"]) if "COUNT" in parts else None,
        until=_until(parts["UNTIL"]) if "UNTIL" in parts else None,
        week_start=_WEEKDAYS.index(parts.get("WKST", "MO")),
        months=numbers("BYMONTH"),
        month_days=numbers("BYMONTHDAY"),
        weekdays=frozenset(
            (_WEEKDAYS.index(each[-2:]), int(each[:-2] or 0)) for each in parts["BYDAY"].split(",")
        )
        if "BYDAY" in parts
        else frozenset(),
        hours=numbers("BYHOUR"),
        minutes=numbers("BYMINUTE"),
        seconds=numbers("BYSECOND"),
    )
    if len({place == 0 for _, place in rule.weekdays}) > 1:
        # RFC 5545 reads MO,1TU as every Monday and the first Tuesday. dateutil requires both: no day matches.
        raise UnsupportedExpressionError("BYDAY with and without numbers in one rule")
    return rule


def _until(text: str) -> datetime:
    day = datetime.strptime(text[:8], "%Y%m%d")  # noqa: DTZ007 - a wall time
    if len(text) == 8:
        return datetime.combine(day, time.max)
    moment = datetime.strptime(text[:15], "%Y%m%dT%H%M%S")  # noqa: DTZ007
    return moment.replace(tzinfo=UTC) if text.endswith("Z") else moment


def rule_times(
    rule: ParsedRule, anchor: datetime, zone: ZoneInfo, changes: DstRules, first: datetime, last: datetime
) -> Iterator[datetime]:
    """Yield the times of a rule that starts at `anchor`, from first to last, both included, in order."""
    if rule.follows_real_time:
        changes = REAL_TIME
    start = anchor.astimezone(zone).replace(tzinfo=None, fold=0, microsecond=0)
    begin = first.astimezone(zone).replace(tzinfo=None, fold=0) - 2 * DAY
    end = last.astimezone(zone).replace(tzinfo=None, fold=0) + 2 * DAY
    found: set[datetime] = set()
    for day, walls in groupby(_walls(rule, start, begin, end, zone), key=datetime.date):
        midnight = datetime.combine(day, time.min)
        times = [wall - midnight for wall in walls]
        found.update(on_day(day, times, zone, changes, first, last))
    yield from sorted(found)


def _walls(
    rule: ParsedRule, start: datetime, begin: datetime, end: datetime, zone: ZoneInfo
) -> Iterator[datetime]:
    until = rule.until
    if until is not None and until.tzinfo is not None:
        until = until.astimezone(zone).replace(tzinfo=None, fold=0)
    left = rule.count
    # Only a rule with COUNT must be walked from its start.
    found = _on_days if rule.freq in _BY_DAY else _in_steps
    for wall in found(rule, start, start if left is not None else max(start, begin), end):
        if wall < start:
            continue
        if (until is not None and wall > until) or left == 0:
            return
        if left is not None:
            left -= 1
        if wall >= begin:
            yield wall


def _on_days(rule: ParsedRule, start: datetime, begin: datetime, end: datetime) -> Iterator[datetime]:
    times = [
        time(hour, minute, second)
        for hour in sorted(rule.hours or {start.hour})
        for minute in sorted(rule.minutes or {start.minute})
        for second in sorted(rule.seconds or {start.second})
    ]
    day = begin.date()
    while day <= end.date():
        if _is_day(rule, start.date(), day):
            for each in times:
                yield datetime.combine(day, each)
        day += DAY


def _in_steps(rule: ParsedRule, start: datetime, begin: datetime, end: datetime) -> Iterator[datetime]:
    step = _STEPS[rule.freq]
    unit = {"HOURLY": {"minute": 0, "second": 0}, "MINUTELY": {"second": 0}, "SECONDLY": {}}[rule.freq]
    origin = start.replace(**unit)  # type: ignore[arg-type]
    stride = step * rule.interval
    period = origin + max(0, (begin - origin) // stride) * stride
    if (end - period) // stride > MAX_STEPS:
        raise UnsupportedExpressionError("a rule of more steps than are walked")
    while period <= end:
        if _is_period(rule, period):
            yield from sorted(_within(rule, start, period))
        period += stride


def _is_period(rule: ParsedRule, period: datetime) -> bool:
    return (
        (not rule.weekdays or (period.weekday(), 0) in rule.weekdays)
        and (not rule.hours or period.hour in rule.hours)
        and (rule.freq == "HOURLY" or not rule.minutes or period.minute in rule.minutes)
    )


def _within(rule: ParsedRule, start: datetime, period: datetime) -> Iterator[datetime]:
    if rule.freq == "SECONDLY":
        yield period
        return
    minutes = (rule.minutes or {start.minute}) if rule.freq == "HOURLY" else {period.minute}
    for minute in minutes:
        for second in rule.seconds or {start.second}:
            yield period.replace(minute=minute, second=second)


def _is_day(rule: ParsedRule, start: date, day: date) -> bool:
    month_days, weekdays, months = rule.month_days, rule.weekdays, rule.months
    if not month_days and not weekdays:
        if rule.freq == "YEARLY":
            months = months or frozenset({start.month})
        if rule.freq in ("YEARLY", "MONTHLY"):
            month_days = frozenset({start.day})
        if rule.freq == "WEEKLY":
            weekdays = frozenset({(start.weekday(), 0)})
    if months and day.month not in months:
        return False
    length = monthrange(day.year, day.month)[1]
    if month_days and not {day.day, day.day - length - 1} & month_days:
        return False
    if weekdays and not _is_weekday(rule, weekdays, day, length):
        return False
    return _periods_between(rule, start, day) % rule.interval == 0


def _is_weekday(rule: ParsedRule, weekdays: frozenset[tuple[int, int]], day: date, length: int) -> bool:
    if rule.freq == "YEARLY" and not rule.months:
        number, of = day.timetuple().tm_yday, 366 if isleap(day.year) else 365
    else:
        number, of = day.day, length
    places = {0, (number + 6) // 7, -((of - number) // 7 + 1)}
    return any(weekday == day.weekday() and place in places for weekday, place in weekdays)


def _periods_between(rule: ParsedRule, start: date, day: date) -> int:
    match rule.freq:
        case "YEARLY":
            return day.year - start.year
        case "MONTHLY":
            return (day.year - start.year) * 12 + day.month - start.month
        case "WEEKLY":
            weeks = [each - timedelta(days=(each.weekday() - rule.week_start) % 7) for each in (start, day)]
            return (weeks[1] - weeks[0]).days // 7
        case _:
            return (day - start).days

"""Which days a calendar excludes, and the days of an iCalendar file.

A calendar is compiled once, and checked for every due time of the schedules that name it. Its days are
computed a year at a time, on first use of the year.
"""

import difflib
import warnings
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from types import MappingProxyType
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from foliot.model.calendar import MAX_RANGES, CalendarSpec, CountryHolidays, DayRange, merged
from foliot.model.errors import InvalidError, Problem
from foliot.timing.rrule import rule_times
from foliot.timing.rule_parts import Frequency, parse_rule
from foliot.timing.wall import REAL_TIME
from foliot.timing.zone import check_zone, zone

# `holidays` and `icalendar` are imported where they are used: each import takes a tenth of a second.

_DAY = timedelta(days=1)


class Calendar:
    """A compiled calendar: knows for any day whether it is excluded."""

    __slots__ = ("_ends", "_years", "spec")

    def __init__(self, spec: CalendarSpec) -> None:
        self.spec = spec
        self._ends = [each.last for each in spec.days]
        self._years: dict[int, frozenset[date]] = {}

    # Looked up on use: a zone that no longer exists must not affect other calendars.
    @property
    def zone(self) -> ZoneInfo | None:
        """The zone of its days; None: the caller's."""
        return None if self.spec.timezone is None else zone(self.spec.timezone)

    def excludes(self, day: date) -> bool:
        days = self._years.get(day.year)
        if days is None:
            days = self._years[day.year] = frozenset(self._days_of(day.year))
        return day in days

    def _days_of(self, year: int) -> Iterator[date]:
        first, last = date(year, 1, 1), date(year, 12, 31)
        for index in range(bisect_left(self._ends, first), len(self._ends)):
            each = self.spec.days[index]
            if each.first > last:
                break
            yield from _days_between(max(each.first, first), min(each.last, last))
        if self.spec.weekdays:
            weekdays = frozenset(self.spec.weekdays)
            yield from (day for day in _days_between(first, last) if day.isoweekday() in weekdays)
        for country in self.spec.countries:
            yield from _holidays_of(country, year)


CalendarBook = Mapping[tuple[UUID, str], Calendar]
"""All calendars by host id and name."""

NO_CALENDARS: CalendarBook = MappingProxyType({})


def compile_calendar(spec: CalendarSpec) -> Calendar:
    """Compile a calendar, or raise an InvalidError that names every unknown zone, country and subdivision."""
    problems: list[Problem] = []
    if spec.timezone is not None:
        try:
            check_zone(spec.timezone, "/timezone")
        except InvalidError as error:
            problems.extend(error.problems)
    for index, country in enumerate(spec.countries):
        problems.extend(_check_country(country, f"/countries/{index}"))
    if problems:
        raise InvalidError(problems)
    return Calendar(spec)


def is_excluded(calendars: Iterable[Calendar], instant: datetime, tz: ZoneInfo) -> bool:
    """Whether a calendar excludes the day of an instant; `tz` is for calendars without a zone."""
    return any(each.excludes(instant.astimezone(each.zone or tz).date()) for each in calendars)


def excluded_since(calendars: Iterable[Calendar], instant: datetime, tz: ZoneInfo) -> datetime | None:
    """Return an instant since which it has been excluded without a break; None: it is not excluded."""
    for each in calendars:
        own = each.zone or tz
        day = instant.astimezone(own).date()
        if each.excludes(day):
            # If midnight comes twice the second counts; if it is skipped, the first instant after it.
            midnight = datetime.combine(day, time.min, own)
            began = max(midnight.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
            return min(began, instant)
    return None


def _days_between(first: date, last: date) -> Iterator[date]:
    return map(date.fromordinal, range(first.toordinal(), last.toordinal() + 1))


# --- holidays ------------------------------------------------------------------------------------------


def _holidays_of(country: CountryHolidays, year: int) -> Iterable[date]:
    import holidays

    with warnings.catch_warnings():
        # Some countries warn that they know a holiday only for some years; nobody here could act on it.
        warnings.simplefilter("ignore")
        found = holidays.country_holidays(
            country.country,
            subdiv=country.subdivision,
            years=year,
            expand=False,
            categories=country.categories or None,
        )
    return list(found)


def _check_country(country: CountryHolidays, pointer: str) -> list[Problem]:
    import holidays

    known = holidays.list_supported_countries(include_aliases=False)
    if country.country not in known:
        hint = _nearest(country.country, known, _country_names()) or "two letters, such as DE or US"
        detail = f'there are no holidays known for a country "{_shown(country.country)}"'
        return [Problem(f"{pointer}/country", "unknown_country", detail, hint)]
    rules = holidays.country_holidays(country.country)
    problems = []
    if country.subdivision is not None and country.subdivision not in rules.subdivisions:
        codes = tuple(rules.subdivisions)
        aliases: Mapping[str, str] = getattr(rules, "subdivisions_aliases", {})
        hint = _nearest(country.subdivision, codes, aliases) or _one_of(codes)
        detail = f'{country.country} has no subdivision "{_shown(country.subdivision)}"'
        problems.append(Problem(f"{pointer}/subdivision", "unknown_subdivision", detail, hint))
    for index, category in enumerate(country.categories):
        if category not in rules.supported_categories:
            hint = _one_of(rules.supported_categories)
            detail = f'{country.country} has no category "{_shown(category)}"'
            problems.append(Problem(f"{pointer}/categories/{index}", "unknown_category", detail, hint))
    return problems


def _country_names() -> dict[str, str]:
    """Map names and three-letter codes of countries to their two-letter codes."""
    from holidays.registry import COUNTRIES

    found = {}
    for module, (_, code, *others) in COUNTRIES.items():
        found[module.replace("_", " ")] = code
        found.update(dict.fromkeys(others, code))
    return found


def _nearest(given: str, codes: Iterable[str], aliases: Mapping[str, str]) -> str:
    spelled = {name.casefold(): code for name, code in aliases.items()}
    spelled.update((code.casefold(), code) for code in codes)
    near = difflib.get_close_matches(given.casefold(), spelled, n=1, cutoff=0.6)
    return f"did you mean {spelled[near[0]]}?" if near else ""


def _one_of(codes: Sequence[str]) -> str:
    return f"one of: {', '.join(codes)}" if codes else "leave it out"


def _shown(text: str) -> str:
    return text if len(text) <= 64 else text[:64] + "…"


# --- iCalendar files -----------------------------------------------------------------------------------

MAX_ICAL_BYTES = 1_000_000
MAX_RULES = 200
FIRST_YEAR, LAST_YEAR = 1970, 2100
"""A yearly event is expanded between these years."""

_ICAL = "/ical"
_Event = Any
"""An event from `icalendar`. Any property may be missing or malformed."""
_READ = ("DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID")
_TIMES_OF_DAY = ("BYHOUR", "BYMINUTE", "BYSECOND")


def parse_ical(text: str) -> list[DayRange]:
    """Return the days that the events of an iCalendar file cover, in order. Raises InvalidError.

    A day belongs to an event by the wall clock of the event's own zone. The file size and the numbers of
    recurring events and of ranges are limited, so that no file takes longer than a few seconds.
    """
    events = list(_events_of(text))
    if sum(len(_all_of(event, "RRULE")) for event in events) > MAX_RULES:
        raise _too_many(f"more than {MAX_RULES} rules of recurring events")
    moved = _moved_days(events)
    found: list[DayRange] = []
    for number, event in enumerate(events, 1):
        if str(event.get("STATUS", "")).upper() == "CANCELLED":
            continue
        try:
            found.extend(_ranges_of(event, moved))
        except InvalidError as error:
            raise InvalidError([_in_event(number, event, problem) for problem in error.problems]) from None
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            problem = Problem(_ICAL, "bad_ical", str(error).partition("\n")[0])
            raise InvalidError([_in_event(number, event, problem)]) from None
        if len(found) > 10 * MAX_RANGES:
            raise _too_many(f"more than {10 * MAX_RANGES} days")
    ranges = merged(found)
    if len(ranges) > MAX_RANGES:
        raise _too_many(f"more than {MAX_RANGES} separate days")
    return list(ranges)


def _too_many(what: str) -> InvalidError:
    return InvalidError.at(_ICAL, "too_large", f"has {what}", "import only the years that matter")


def _in_event(number: int, event: _Event, problem: Problem) -> Problem:
    title = _shown("".join(str(each) for each in _all_of(event, "SUMMARY")[:1]))
    return Problem(_ICAL, problem.code, f'event {number} "{title}": {problem.detail}', problem.hint)


def _events_of(text: str) -> Iterator[_Event]:
    import icalendar

    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidError.at(_ICAL, "bad_ical", "must be whole characters, no halves of a pair") from None
    if size > MAX_ICAL_BYTES:
        raise InvalidError.at(_ICAL, "too_large", f"is larger than {MAX_ICAL_BYTES} bytes")
    try:
        components: list[Any] = list(icalendar.Calendar.from_ical(text, multiple=True))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        detail = f"can't be read: {_shown(str(error).partition(chr(10))[0])}"
        raise InvalidError.at(_ICAL, "bad_ical", detail, "a file that begins with BEGIN:VCALENDAR") from None
    calendars = [each for each in components if isinstance(each, icalendar.Calendar)]
    if not calendars:
        hint = "a file from BEGIN:VCALENDAR to END:VCALENDAR"
        raise InvalidError.at(_ICAL, "bad_ical", "holds no complete calendar", hint)
    for calendar in calendars:
        for component in calendar.subcomponents:
            if isinstance(component, icalendar.Event):
                yield component


def _moved_days(events: Iterable[_Event]) -> dict[str, set[date]]:
    """Return, by event id, the days of recurring events that another event replaces."""
    found: dict[str, set[date]] = {}
    for event in events:
        if any(name == "RECURRENCE-ID" for name, _ in event.errors):
            continue  # reported later, with the number of the event
        moment = getattr(event.get("RECURRENCE-ID"), "dt", None)
        if isinstance(moment, date):
            found.setdefault(str(event.get("UID")), set()).add(_day_of(moment))
    return found


def _ranges_of(event: _Event, moved: Mapping[str, set[date]]) -> Iterator[DayRange]:
    for name, detail in event.errors:
        if name in _READ:
            raise ValueError(f"{name} can't be read: {detail}")
    start = getattr(event.get("DTSTART"), "dt", None)
    if not isinstance(start, date):
        raise ValueError("has no DTSTART, or not a single one")
    first = _day_of(start)
    more = (_last_day(event, start) - first).days
    if more < 0:
        raise ValueError("ends before it starts")
    starts = {first, *_days_in(event, "RDATE"), *_days_by_rule(event, start)} - {*_days_in(event, "EXDATE")}
    if "RECURRENCE-ID" not in event:
        starts -= moved.get(str(event.get("UID")), set())
    for day in sorted(starts):
        yield DayRange.of(day, day + more * _DAY)


def _all_of(event: _Event, name: str) -> list[Any]:
    """Return all values of a property that may occur several times."""
    found = event.get(name, [])
    return found if isinstance(found, list) else [found]


def _day_of(moment: date | datetime) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


def _last_day(event: _Event, start: date | datetime) -> date:
    """Return the last day that the event covers. An end at midnight belongs to the day before."""
    if "DTEND" in event:
        end = event["DTEND"].dt
        if isinstance(end, datetime) != isinstance(start, datetime):
            raise ValueError("one of DTSTART and DTEND is a date, the other a time")
    elif "DURATION" in event:
        end = start + event["DURATION"].dt
    else:
        return _day_of(start)
    if end == start:
        return _day_of(start)
    if isinstance(end, datetime):
        if end.tzinfo is not None and isinstance(start, datetime) and start.tzinfo is not None:
            end = end.astimezone(start.tzinfo)
        end = end.replace(tzinfo=None) - timedelta(microseconds=1)
        return _day_of(end)
    return _day_of(end) - _DAY


def _days_in(event: _Event, name: str) -> Iterator[date]:
    for each in _all_of(event, name):
        for value in each.dts:
            # RDATE may hold periods, as (start, end).
            yield _day_of(value.dt[0] if isinstance(value.dt, tuple) else value.dt)


def _days_by_rule(event: _Event, start: date | datetime) -> Iterator[date]:
    """Yield the days on which an event recurs, up to LAST_YEAR."""
    for rule in _all_of(event, "RRULE"):
        text = _rule_of(rule, start)
        if parse_rule(text).freq is not Frequency.YEARLY:
            raise ValueError("of events that come again only those of FREQ=YEARLY can be imported")
        # Only days matter: as if the event began at midnight, in a zone without clock changes.
        midnight = datetime.combine(_day_of(start), time.min, UTC)
        times = rule_times(text, zone("UTC"), REAL_TIME, midnight)
        moment = times.after(max(midnight, datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)) - timedelta(seconds=1))
        while moment is not None and moment.year <= LAST_YEAR:
            yield moment.date()
            moment = times.after(moment)


def _rule_of(rule: Any, start: date | datetime) -> str:
    rule = rule.copy()
    if any(part in rule for part in _TIMES_OF_DAY):
        raise ValueError(f"its RRULE has one of {', '.join(_TIMES_OF_DAY)}, which no whole day can follow")
    until = rule.get("UNTIL", [None])[0]
    if isinstance(until, datetime):
        tz = start.tzinfo if isinstance(start, datetime) else None
        rule["UNTIL"] = [until.astimezone(tz).date() if tz is not None and until.tzinfo else until.date()]
    return str(rule.to_ical().decode())

"""Every kind of trigger against the walker, across clock changes in both directions, under every policy."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise, product
from uuid import UUID
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.property import walker

from foliot.kinds.cron_trigger import CronTrigger
from foliot.kinds.interval_trigger import FrequencyUnit, IntervalTrigger
from foliot.kinds.once_trigger import OnceTrigger
from foliot.kinds.rrule_trigger import RRuleTrigger
from foliot.model.errors import InvalidError
from foliot.model.kind import Trigger
from foliot.model.policy import Dst, DstGap, DstRepeat, Window
from foliot.model.recurrence import Recurrence
from foliot.timing.jitter import jitter_s
from foliot.timing.window import is_inside
from foliot.timing.zone import instants_of

TICK = timedelta(microseconds=1)
HALF_DAY = timedelta(hours=12)
ANCHOR = datetime(2011, 1, 1, tzinfo=UTC)

wall_time = datetime.fromisoformat
policies = st.builds(Dst, gap=st.sampled_from(DstGap), repeat=st.sampled_from(DstRepeat))
changes = st.sampled_from(walker.CHANGES)


def examples(number: int) -> Callable[..., Callable[..., None]]:
    return settings(max_examples=number, deadline=None, derandomize=True)


def compiled_if_it_fires(
    trigger: Trigger, dst: Dst | None = None, anchor: datetime = ANCHOR
) -> Recurrence | None:
    try:
        return compiled(trigger, dst, anchor)
    except InvalidError as error:
        if error.problems[0].code != "never_fires":
            raise
        return None


def compiled(trigger: Trigger, dst: Dst | None = None, anchor: datetime = ANCHOR) -> Recurrence:
    return trigger.compile(dst=dst or Dst(), anchor=anchor, key="a schedule")


def forward(times: Recurrence, first: datetime, last: datetime) -> list[datetime]:
    found = []
    instant = times.after(first - TICK)
    while instant is not None and instant <= last:
        found.append(instant)
        instant = times.after(instant)
        assert instant is None or instant > found[-1]
    return found


def backward(times: Recurrence, first: datetime, last: datetime) -> list[datetime]:
    found = []
    instant = times.before(last + TICK)
    while instant is not None and instant >= first:
        found.append(instant)
        instant = times.before(instant)
        assert instant is None or instant < found[-1]
    return found[::-1]


def check(times: Recurrence, expected: list[datetime], first: datetime, last: datetime) -> None:
    """The recurrence has exactly these times in [first, last], however it is asked."""
    expected = [instant for instant in expected if first <= instant <= last]
    found = forward(times, first, last)
    assert found == expected
    assert all(instant.tzinfo is UTC for instant in found)
    assert backward(times, first, last) == expected
    assert times.count(first, last) == len(expected)
    # Cuts fall close together in the middle, where the clock is changed.
    cuts = [first + (last - first) * portion / 12 for portion in range(1, 12)]
    cuts += [first + (last - first) / 2 + timedelta(minutes=13 * number) for number in range(-5, 6)]
    cuts = [cut for cut in cuts if first <= cut <= last]
    for number, middle in enumerate(cuts):
        for cut in (middle, expected[len(expected) * number // len(cuts)] if expected else middle):
            passed = [instant for instant in expected if instant <= cut]
            assert times.count(first, cut) == len(passed)
            assert times.count(cut + TICK, last) == len(expected) - len(passed)
            if passed:
                assert times.before(cut + TICK) == passed[-1]
            if len(passed) < len(expected):
                assert times.after(cut) == expected[len(passed)]


# --- cron ------------------------------------------------------------------------------------------


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    in_order = st.tuples(number, number).map(sorted)
    return st.one_of(
        st.just("*"),
        number.map(str),
        st.integers(1, high).map("*/{}".format),
        st.lists(number, min_size=2, max_size=4).map(lambda values: ",".join(map(str, values))),
        in_order.map(lambda ends: f"{ends[0]}-{ends[1]}"),
        st.tuples(in_order, st.integers(1, 10)).map(lambda it: f"{it[0][0]}-{it[0][1]}/{it[1]}"),
        st.tuples(number, st.integers(1, 30)).map(lambda it: f"{it[0]}/{it[1]}"),
    )


# Around clock changes the interesting hours are few.
hours = st.one_of(
    field(0, 23), st.sampled_from(["0", "1", "2", "3", "23", "1-3", "2,3", "22-23", "0,1,2", "*"])
)
month_days = st.one_of(
    st.sampled_from(["*", "*", "?", "L", "LW", "1W", "15W", "31W", "1,15W", "L,3"]), field(1, 31)
)
weekdays = st.one_of(
    st.sampled_from(["*", "*", "?", "0", "7", "1-5", "5#2", "0#1", "7#5", "5L", "0L", "1,5L", "6,7"]),
    field(0, 7),
)
expressions = st.one_of(
    st.tuples(field(0, 59), hours, st.just("*"), st.just("*"), st.just("*")),
    st.tuples(field(0, 59), hours, month_days, field(1, 12), weekdays),
).map(" ".join)


def cron_by_walking(expression: str, walked: walker.Walk, dst: Dst) -> list[datetime]:
    matches = walker.cron_matches(expression)
    if walker.follows_real_time(expression):
        return walker.in_real_time(matches, walked)
    return walker.at_fixed_times(matches, walked, dst.gap.value, dst.repeat.value)


@examples(250)
@given(expressions, changes, policies)
def test_cron_fires_exactly_when_a_walk_through_the_clock_change_says(
    expression: str, change: tuple[str, datetime], dst: Dst
) -> None:
    zone, around = change
    times = compiled_if_it_fires(CronTrigger(expression=expression, timezone=zone), dst)
    assume(times is not None)
    assert times is not None
    expected = cron_by_walking(expression, walker.walk(zone, around), dst)
    check(times, expected, around - 3 * HALF_DAY, around + 3 * HALF_DAY)


def test_the_usual_expressions_fire_as_walked_at_every_change_under_every_policy() -> None:
    usual = (
        "30 2 * * *",
        "0,30 1-3 * * *",
        "0 0 * * *",
        "15 23 * * *",
        "*/20 * * * *",
        "45 * * * *",
        "*/30 2 * * *",
    )
    for (zone, around), gap, repeat in product(walker.CHANGES, DstGap, DstRepeat):
        dst = Dst(gap=gap, repeat=repeat)
        for expression in usual:
            times = compiled(CronTrigger(expression=expression, timezone=zone), dst)
            expected = cron_by_walking(expression, walker.walk(zone, around), dst)
            check(times, expected, around - 3 * HALF_DAY, around + 3 * HALF_DAY)


@examples(25)
@given(st.tuples(field(0, 59), field(0, 59), hours), changes, policies)
def test_cron_with_seconds_fires_exactly_when_a_walk_by_the_second_says(
    fields: tuple[str, str, str], change: tuple[str, datetime], dst: Dst
) -> None:
    zone, around = change
    assume(zone not in ("Pacific/Apia", "UTC"))
    expression = " ".join((*fields, "*", "*", "*"))
    walked = walker.walk(zone, around, timedelta(hours=4), walker.SECOND)
    times = compiled(CronTrigger(expression=expression, timezone=zone), dst)
    expected = cron_by_walking(expression, walked, dst)
    first, last = around - timedelta(hours=1.5), around + timedelta(hours=1.5)
    assume(len(expected) < 2000)
    check(times, expected, first, last)


@examples(60)
@given(month_days, field(1, 12), weekdays, st.integers(2019, 2096))
def test_cron_days_are_those_that_a_calendar_walk_finds(
    day: str, month: str, weekday: str, year: int
) -> None:
    expression = f"0 12 {day} {month} {weekday}"
    matches = walker.cron_matches(expression)
    noons = [wall_time(f"{year}-01-01T12:00") + timedelta(days=number) for number in range(4 * 365 + 2)]
    expected = [noon.replace(tzinfo=UTC) for noon in noons if matches(noon)]
    times = compiled_if_it_fires(CronTrigger(expression=expression))
    if times is None:
        assert expected == []
        return
    check(times, expected, noons[0].replace(tzinfo=UTC), noons[-1].replace(tzinfo=UTC))


@examples(60)
@given(
    expressions,
    st.sampled_from(
        [
            "Africa/Casablanca",
            "America/St_Johns",
            "Asia/Manila",
            "Pacific/Kiritimati",
            "Africa/Monrovia",
            "Asia/Gaza",
        ]
    ),
    policies,
    st.datetimes(wall_time("1843-01-01"), wall_time("2060-01-01"), timezones=st.just(UTC)),
)
def test_times_strictly_increase_and_agree_in_odd_zones_of_any_century(
    expression: str, zone: str, dst: Dst, start: datetime
) -> None:
    times = compiled_if_it_fires(CronTrigger(expression=expression, timezone=zone), dst)
    assume(times is not None)
    assert times is not None
    found: list[datetime] = []
    while len(found) < 60:
        instant = times.after(found[-1] if found else start)
        assert instant is not None
        found.append(instant)
    assert all(earlier < later for earlier, later in pairwise(found))
    assert times.count(start + TICK, found[-1]) == len(found)
    assert backward(times, found[0], found[-1]) == found


# --- intervals -------------------------------------------------------------------------------------


@examples(100)
@given(
    st.sampled_from([FrequencyUnit.SECONDS, FrequencyUnit.MINUTES, FrequencyUnit.HOURS]),
    st.integers(1, 200),
    st.integers(0, 10**6),
)
def test_an_elapsed_interval_is_the_anchor_and_repeated_addition(
    unit: FrequencyUnit, amount: int, microseconds: int
) -> None:
    anchor = datetime(2026, 3, 28, 23, 59, tzinfo=UTC) + timedelta(microseconds=microseconds)
    step = timedelta(**{unit.value.lower(): amount})
    times = compiled(IntervalTrigger(frequency_unit=unit, frequency_time=amount), anchor=anchor)
    expected = [anchor]
    while len(expected) < 50:
        expected.append(expected[-1] + step)
    check(times, expected, anchor - 3 * step, expected[-1])


@examples(150)
@given(
    st.sampled_from([FrequencyUnit.DAYS, FrequencyUnit.WEEKS, FrequencyUnit.MONTHS]),
    st.integers(1, 3),
    st.integers(1, 40),
    st.integers(-150, 150),
    changes,
    policies,
)
def test_a_calendar_interval_steps_by_the_wall_clock(
    unit: FrequencyUnit, amount: int, steps_back: int, minutes: int, change: tuple[str, datetime], dst: Dst
) -> None:
    zone, around = change
    walked = walker.walk(zone, around)
    # The anchor's wall clock is near the change's, so that steps fall into the gap or the repeated hour.
    anchor = around + timedelta(minutes=minutes)
    if unit is FrequencyUnit.MONTHS:
        anchor -= timedelta(days=30 * steps_back)
    else:
        anchor -= timedelta(days=steps_back * (7 if unit is FrequencyUnit.WEEKS else 1) * amount)
    wall = anchor.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)
    expected = {anchor}
    for step in range(1, 80):
        if unit is FrequencyUnit.MONTHS:
            at = walker.month_later(wall, step * amount)
        else:
            at = wall + timedelta(days=step * amount * (7 if unit is FrequencyUnit.WEEKS else 1))
        if walked.steps[0][1] <= at <= walked.steps[-1][1]:
            expected.update(walker.instants(at, walked, dst.gap.value, dst.repeat.value))
    trigger = IntervalTrigger(frequency_unit=unit, frequency_time=amount, timezone=zone)
    times = compiled(trigger, dst, anchor)
    check(times, sorted(expected), around - 3 * HALF_DAY, around + 3 * HALF_DAY)
    assert times.before(anchor) is None
    assert times.after(anchor - TICK) == anchor


@examples(40)
@given(st.datetimes(wall_time("1900-01-01"), wall_time("2100-01-01"), timezones=st.just(UTC)))
def test_once_is_one_time(at: datetime) -> None:
    check(compiled(OnceTrigger(at=at)), [at], at - HALF_DAY, at + HALF_DAY)


# --- rules -----------------------------------------------------------------------------------------


def some(low: int, high: int) -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.integers(low, high), max_size=3)


_no = st.just(frozenset[int]())
_month_days = st.frozensets(st.integers(-31, 31).filter(bool), max_size=3)
rules = st.one_of(
    st.builds(
        walker.PlainRule,
        freq=st.sampled_from(["DAILY", "MONTHLY", "YEARLY"]),
        interval=st.integers(1, 4),
        months=some(1, 12) | _no,
        month_days=_month_days | _no,
        weekdays=some(0, 6) | _no,
        hours=st.frozensets(st.integers(0, 4), max_size=3),
        minutes=some(0, 59),
    ),
    st.builds(
        walker.PlainRule,
        freq=st.just("WEEKLY"),
        interval=st.integers(1, 4),
        months=some(1, 12) | _no,
        weekdays=some(0, 6),
        hours=st.frozensets(st.integers(0, 4), max_size=3),
        minutes=some(0, 59),
    ),
    st.builds(
        walker.PlainRule,
        freq=st.sampled_from(["HOURLY", "MINUTELY"]),
        interval=st.integers(1, 50),
        weekdays=some(0, 6) | _no,
        hours=st.frozensets(st.integers(0, 6), max_size=5) | _no,
        minutes=some(0, 59),
    ),
)


@examples(250)
@given(rules, st.integers(0, 60 * 24 * 5), changes, policies)
def test_a_rule_fires_exactly_when_a_walk_through_the_clock_change_says(
    rule: walker.PlainRule, minutes_back: int, change: tuple[str, datetime], dst: Dst
) -> None:
    zone, around = change
    check_rule(rule, zone, around, around - timedelta(minutes=minutes_back) - 3 * HALF_DAY, dst)


def check_rule(rule: walker.PlainRule, zone: str, around: datetime, anchor: datetime, dst: Dst) -> None:
    walked = walker.walk(zone, around)
    start = anchor.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)
    matches = rule.matches(start)
    if rule.follows_real_time():
        expected = walker.in_real_time(matches, walked)
    else:
        expected = walker.at_fixed_times(matches, walked, dst.gap.value, dst.repeat.value)
    times = compiled_if_it_fires(RRuleTrigger(rule=rule.text(), timezone=zone), dst, anchor)
    if times is None:
        assert expected == []
        return
    check(times, expected, around - 3 * HALF_DAY, around + 3 * HALF_DAY)


def test_the_usual_rules_fire_as_walked_at_every_change() -> None:
    usual = (
        walker.PlainRule("DAILY", hours=frozenset({0, 1, 2, 23}), minutes=frozenset({15, 45})),
        walker.PlainRule("HOURLY"),
        walker.PlainRule("HOURLY", hours=frozenset({0, 1, 2, 23}), minutes=frozenset({30})),
        walker.PlainRule("MINUTELY", interval=20, hours=frozenset({0, 1, 2, 23})),
        walker.PlainRule("MINUTELY", hours=frozenset({0, 1, 2, 23}), minutes=frozenset({40})),
    )
    policies_of_each_kind = (Dst(), Dst(gap=DstGap.SKIP, repeat=DstRepeat.SECOND), Dst(repeat=DstRepeat.BOTH))
    for (zone, around), dst, rule in product(walker.CHANGES, policies_of_each_kind, usual):
        check_rule(rule, zone, around, around - 4 * HALF_DAY, dst)


@examples(150)
@given(rules, st.datetimes(wall_time("2020-01-01"), wall_time("2030-01-01")), st.integers(1, 6) | st.none())
def test_a_rule_fires_on_the_days_that_a_walk_over_years_finds(
    rule: walker.PlainRule, start: datetime, count: int | None
) -> None:
    assume(rule.freq not in ("HOURLY", "MINUTELY"))
    start = start.replace(second=0, microsecond=0)
    matches = rule.matches(start)
    walls: list[datetime] = []
    for number in range(5 * 366):
        day = start.replace(hour=0, minute=0) + timedelta(days=number)
        of_day = product(rule.hours or {start.hour}, rule.minutes or {start.minute})
        walls += [wall for wall in (day.replace(hour=h, minute=m) for h, m in of_day) if matches(wall)]
    walls = sorted(walls)[:count]
    anchor = start.replace(tzinfo=UTC)
    text = rule.text() + (f";COUNT={count}" if count else "")
    times = compiled_if_it_fires(RRuleTrigger(rule=text), anchor=anchor)
    if times is None:
        assert walls == []
        return
    last = anchor + timedelta(days=5 * 366 - 1)
    assume(len(walls) < 2000)
    check(times, [wall.replace(tzinfo=UTC) for wall in walls], anchor, last)


POSITIONED = (
    "FREQ=MONTHLY;BYDAY=-1FR",
    "FREQ=MONTHLY;BYDAY=2TU,-2TH",
    "FREQ=MONTHLY;BYDAY=1MO;BYMONTH=1,6",
    "FREQ=YEARLY;BYDAY=20MO",
    "FREQ=YEARLY;BYDAY=1MO,-1SU;BYMONTH=3,10",
    "FREQ=YEARLY;BYWEEKNO=1,20,-1;BYDAY=MO,SU",
    "FREQ=YEARLY;BYWEEKNO=53",
    "FREQ=YEARLY;BYYEARDAY=1,100,-1,366",
    "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1,1",
    "FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR",
    "FREQ=YEARLY;INTERVAL=3;BYMONTH=2;BYMONTHDAY=29",
    "FREQ=YEARLY;BYMONTH=1,2;BYDAY=SU;BYHOUR=8,9;BYMINUTE=30;BYSETPOS=3,-2",
    "FREQ=DAILY;INTERVAL=3;BYHOUR=1,5,9;BYSETPOS=2",
    "FREQ=MONTHLY;INTERVAL=5;BYMONTHDAY=31,-31",
    "FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=TU,SU",
    "FREQ=WEEKLY;INTERVAL=3;WKST=TH;BYDAY=MO,FR;BYHOUR=6,18",
    "FREQ=MINUTELY;INTERVAL=17;BYHOUR=3,4;BYDAY=WE;BYSECOND=5,50",
    "FREQ=HOURLY;INTERVAL=5;BYMINUTE=0,20;BYSECOND=10",
)


@examples(120)
@given(st.sampled_from(POSITIONED), st.datetimes(wall_time("2000-01-01"), wall_time("2035-01-01")))
def test_positions_numbered_weekdays_and_weeks_are_as_dateutil_has_them(text: str, start: datetime) -> None:
    start = start.replace(microsecond=0)
    end = start + timedelta(days=5 * 366)
    expected: list[datetime] = []
    for wall in rrulestr(text, dtstart=start):
        if wall > end or len(expected) == 300:
            break
        expected.append(wall.replace(tzinfo=UTC))
    anchor = start.replace(tzinfo=UTC)
    last = expected[-1] if len(expected) == 300 else end.replace(tzinfo=UTC)
    check(compiled(RRuleTrigger(rule=text), anchor=anchor), expected, anchor, last)


def test_positions_within_weeks_hold_over_the_turn_of_the_year() -> None:
    """From a start at the beginning of a week, where dateutil has the whole first week too."""
    for weeks in range(60):
        start = wall_time("2024-12-02T07:00") + timedelta(weeks=weeks)
        text = "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE,FR,SU;BYHOUR=7,20;BYSETPOS=3,-1"
        expected = [wall.replace(tzinfo=UTC) for wall in rrulestr(text + ";COUNT=60", dtstart=start)]
        anchor = start.replace(tzinfo=UTC)
        check(compiled(RRuleTrigger(rule=text), anchor=anchor), expected, anchor, expected[-1])


# --- around them -----------------------------------------------------------------------------------


@examples(100)
@given(changes, policies, st.integers(-26 * 60, 26 * 60))
def test_a_wall_time_means_the_instants_at_which_a_clock_shows_it(
    change: tuple[str, datetime], dst: Dst, minutes: int
) -> None:
    zone, around = change
    walked = walker.walk(zone, around)
    wall = around.astimezone(ZoneInfo(zone)).replace(tzinfo=None) + timedelta(minutes=minutes)
    expected = walker.instants(wall.replace(fold=0), walked, dst.gap.value, dst.repeat.value)
    assert list(instants_of(wall, ZoneInfo(zone), dst)) == expected


@examples(60)
@given(
    changes,
    st.integers(-2000, 2000),
    st.sets(st.integers(1, 7), min_size=1),
    st.sets(st.integers(0, 23), min_size=1),
)
def test_a_window_is_what_the_wall_clock_shows(
    change: tuple[str, datetime], minutes: int, days: set[int], hours_of_day: set[int]
) -> None:
    zone, around = change
    instant = around + timedelta(minutes=minutes)
    wall = dict(walker.walk(zone, around).steps)[instant]
    window = Window(days_of_week=tuple(days), hours_of_day=tuple(hours_of_day), timezone=zone)
    assert is_inside(window, instant) == (wall.weekday() + 1 in days and wall.hour in hours_of_day)


@examples(100)
@given(st.uuids(), st.datetimes(timezones=st.just(UTC)), st.floats(1e-6, 86400))
def test_jitter_stays_below_its_most(schedule_id: UUID, fire_ts: datetime, max_s: float) -> None:
    assert 0 <= jitter_s(schedule_id, fire_ts, max_s) < max_s


@examples(150)
@given(expressions | rules.map(lambda rule: rule.text()))
def test_any_valid_trigger_can_be_told_in_words(text: str) -> None:
    trigger = RRuleTrigger(rule=text) if text.startswith("FREQ") else CronTrigger(expression=text)
    words = trigger.describe()
    assert words.endswith("(UTC)")
    assert "cron" not in words

"""The days of an iCalendar file."""

import pytest

from foliot.model.errors import InvalidError, Problem
from foliot.timing.calendar import MAX_ICAL_BYTES, MAX_RULES, parse_ical


def file_of(*events: str) -> str:
    """A calendar with these events, given as lines joined by `|`."""
    bodies = "".join(f"BEGIN:VEVENT|UID:one|{event}|END:VEVENT|" for event in events)
    return f"BEGIN:VCALENDAR|VERSION:2.0|PRODID:test|{bodies}END:VCALENDAR|".replace("|", "\r\n")


def days(*events: str) -> list[str]:
    return [
        f"{each.first}" if each.first == each.last else f"{each.first} {each.last}"
        for each in parse_ical(file_of(*events))
    ]


def refused(text: str) -> Problem:
    with pytest.raises(InvalidError) as told:
        parse_ical(text)
    [problem] = told.value.problems
    assert problem.pointer == "/ical"
    return problem


@pytest.mark.parametrize(
    ("event", "covered"),
    [
        ("DTSTART;VALUE=DATE:20261224", "2026-12-24"),
        ("DTSTART;VALUE=DATE:20261224|DTEND;VALUE=DATE:20261227", "2026-12-24 2026-12-26"),
        ("DTSTART;VALUE=DATE:20261224|DTEND;VALUE=DATE:20261224", "2026-12-24"),
        ("DTSTART;VALUE=DATE:20261224|DURATION:P1W", "2026-12-24 2026-12-30"),
        ("DTSTART:20261224T090000|DTEND:20261224T170000", "2026-12-24"),
        ("DTSTART:20261224T220000Z|DURATION:PT4H", "2026-12-24 2026-12-25"),
        ("DTSTART:20261224T220000Z|DTEND:20261225T000000Z", "2026-12-24"),
        ("DTSTART:20261224T000000", "2026-12-24"),
    ],
)
def test_an_event_covers_the_days_it_touches_without_its_end(event: str, covered: str) -> None:
    assert days(event) == [covered]


def test_the_days_of_a_timed_event_are_those_of_its_own_zone() -> None:
    event = "DTSTART;TZID=Asia/Tokyo:20261225T010000|DTEND:20261224T170000Z"
    assert days(event) == ["2026-12-25"]


def test_events_are_put_in_order_and_joined() -> None:
    assert days(
        "DTSTART;VALUE=DATE:20270101", "DTSTART;VALUE=DATE:20261225", "DTSTART;VALUE=DATE:20261224"
    ) == ["2026-12-24 2026-12-25", "2027-01-01"]


def test_an_event_that_was_called_off_covers_nothing() -> None:
    assert days("DTSTART;VALUE=DATE:20261224|STATUS:CANCELLED") == []


@pytest.mark.parametrize(
    ("rule", "covered"),
    [
        ("FREQ=YEARLY;COUNT=3", ["2020-05-01", "2021-05-01", "2022-05-01"]),
        ("FREQ=YEARLY;INTERVAL=4;UNTIL=20280501", ["2020-05-01", "2024-05-01", "2028-05-01"]),
        ("FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO;COUNT=2", ["2020-05-01", "2020-05-25", "2021-05-31"]),
        ("FREQ=YEARLY;BYMONTH=5;BYDAY=MO;BYSETPOS=2;COUNT=1", ["2020-05-01", "2020-05-11"]),
    ],
)
def test_an_event_of_every_year_is_written_out(rule: str, covered: list[str]) -> None:
    assert days(f"DTSTART;VALUE=DATE:20200501|RRULE:{rule}") == covered


def test_an_event_without_an_end_goes_on_to_2100() -> None:
    found = days("DTSTART;VALUE=DATE:19900501|RRULE:FREQ=YEARLY")
    assert (found[0], found[-1], len(found)) == ("1990-05-01", "2100-05-01", 111)


def test_the_end_of_a_rule_is_read_in_the_zone_of_the_event() -> None:
    event = "DTSTART;TZID=Asia/Tokyo:20200101T080000|RRULE:FREQ=YEARLY;UNTIL=20211231T230000Z"
    assert days(event) == ["2020-01-01", "2021-01-01", "2022-01-01"]


def test_a_recurring_event_keeps_its_length() -> None:
    event = "DTSTART;VALUE=DATE:20201230|DTEND;VALUE=DATE:20210103|RRULE:FREQ=YEARLY;COUNT=2"
    assert days(event) == ["2020-12-30 2021-01-02", "2021-12-30 2022-01-02"]


def test_days_are_taken_out_and_added_one_by_one() -> None:
    event = "DTSTART;VALUE=DATE:20200501|RRULE:FREQ=YEARLY;COUNT=3|EXDATE;VALUE=DATE:20210501|"
    assert days(event + "RDATE;VALUE=DATE:20300101,20310101") == [
        "2020-05-01",
        "2022-05-01",
        "2030-01-01",
        "2031-01-01",
    ]


def test_an_occurrence_that_was_moved_covers_only_where_it_went() -> None:
    assert days(
        "DTSTART;VALUE=DATE:20200501|RRULE:FREQ=YEARLY;COUNT=3",
        "RECURRENCE-ID;VALUE=DATE:20210501|DTSTART;VALUE=DATE:20210503",
    ) == ["2020-05-01", "2021-05-03", "2022-05-01"]


def test_a_calendar_without_events_has_no_days() -> None:
    assert days() == []


@pytest.mark.parametrize(
    ("event", "detail"),
    [
        ("SUMMARY:party", "DTSTART"),
        ("DTSTART:2026", "DTSTART"),
        ("DTSTART;VALUE=DATE:20260230", "DTSTART"),
        ("DTSTART;VALUE=DATE:20261224|DTSTART;VALUE=DATE:20261225", "DTSTART"),
        ("DTSTART;VALUE=DATE:20261224|DTEND:x", "DTEND"),
        ("DTSTART;VALUE=DATE:20261224|DTEND:20261225T000000Z", "DTEND"),
        ("DTSTART;VALUE=DATE:20261224|DTEND;VALUE=DATE:20261220", "ends before it starts"),
        ("DTSTART;VALUE=DATE:20261224|DURATION:-P2D", "ends before it starts"),
        ("DTSTART;VALUE=DATE:99991231|DURATION:P2D", "out of range"),
        ("DTSTART;VALUE=DATE:20261224|EXDATE:x", "EXDATE"),
        ("DTSTART;VALUE=DATE:20261224|RECURRENCE-ID:x", "RECURRENCE-ID"),
        ("DTSTART;VALUE=DATE:20261224|RRULE:FREQ=WEEKLY", "FREQ=YEARLY"),
        ("DTSTART;VALUE=DATE:20261224|RRULE:FREQ=YEARLY;INTERVAL=0", "INTERVAL"),
        ("DTSTART;VALUE=DATE:20261224|RRULE:FREQ=YEARLY;BYHOUR=1", "BYHOUR"),
        ("DTSTART;VALUE=DATE:20261224|RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "never"),
        ("DTSTART;VALUE=DATE:20261224|RRULE:nonsense", "NAME=value"),
    ],
)
def test_an_event_that_can_not_be_read_is_refused_by_its_number(event: str, detail: str) -> None:
    problem = refused(file_of("DTSTART;VALUE=DATE:20261224", event))
    assert "event 2" in problem.detail
    assert detail in problem.detail


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "\0",
        "\ud800",
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\n",
        "END:VCALENDAR",
        "BEGIN:VEVENT\nDTSTART;VALUE=DATE:20261224\nEND:VEVENT\n",
        '{"days": []}',
    ],
)
def test_what_is_no_calendar_is_refused(text: str) -> None:
    assert refused(text).code == "bad_ical"


def test_a_file_that_is_too_large_is_refused_unread() -> None:
    assert refused("x" * (MAX_ICAL_BYTES + 1)).code == "too_large"


def test_more_rules_than_can_be_written_out_are_refused() -> None:
    rules = "|RRULE:FREQ=YEARLY" * (MAX_RULES + 1)
    assert refused(file_of(f"DTSTART;VALUE=DATE:20200501{rules}")).code == "too_large"


def test_more_days_than_a_calendar_holds_are_refused() -> None:
    every_other = "DTSTART;VALUE=DATE:19700101|RRULE:FREQ=YEARLY;BYDAY=MO,WE,FR"
    assert refused(file_of(every_other)).code == "too_large"

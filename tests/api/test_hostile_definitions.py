"""Definitions that were made to take for ever, to reach inside, or to run what nobody registered."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from tests.api.answers import made, pointers, problem, walk
from tests.api.hosts import Host, unique, yearly
from tests.api.served import OPERATOR_KEY, SCHEDULES, V1, Served
from tests.api.valid_requests import ICAL
from tests.waiting import until

QUICKLY_S = 2.0
"""Milliseconds are meant; the rest is for a busy machine."""


@pytest.fixture(autouse=True)
def _nothing_unexpected(server: Served) -> Iterator[None]:
    """Whatever a test sends: no bug was met, and the server answers as before."""
    before = len(server.bugs)
    yield
    assert server.bugs[before:] == []
    assert server.by(OPERATOR_KEY).get(f"{V1}/me").status_code == 200


# --- times -----------------------------------------------------------------------------------------


NEVER: dict[str, dict[str, Any]] = {
    "a day that there is not": {"kind": "cron", "expression": "0 0 30 2 *"},
    "days that there are not": {"kind": "cron", "expression": "0 0 31 2,4,6,9,11 *"},
    "a weekday near a day that there is not": {"kind": "cron", "expression": "0 0 31W 2 *"},
    "seven fields": {"kind": "cron", "expression": "* * * * * * *"},
    "a step of nothing": {"kind": "cron", "expression": "*/0 * * * *"},
    "a range beyond all": {"kind": "cron", "expression": "0-99999999999999999999 * * * *"},
    "digits of another script": {"kind": "cron", "expression": "\u0660 * * * *"},
    "a long expression": {"kind": "cron", "expression": ("0-59/1," * 71) + "0 * * * *"},
    "a reboot": {"kind": "cron", "expression": "@reboot"},
    "no expression": {"kind": "cron", "expression": ""},
    "a zone that there is not": {"kind": "cron", "expression": "0 0 * * *", "timezone": "Mars/Base"},
    "a zone that is a path": {"kind": "cron", "expression": "0 0 * * *", "timezone": "../../etc/passwd"},
    "a zone that is a file": {"kind": "cron", "expression": "0 0 * * *", "timezone": "/etc/localtime"},
    "a zone of great length": {"kind": "cron", "expression": "0 0 * * *", "timezone": "x" * 100_000},
    "an interval of nothing": {"kind": "interval", "seconds": 0},
    "a negative interval": {"kind": "interval", "frequency_unit": "SECONDS", "frequency_time": -5},
    "an interval beyond all": {"kind": "interval", "frequency_unit": "WEEKS", "frequency_time": 2**62},
    "part of a second": {"kind": "interval", "frequency_unit": "SECONDS", "frequency_time": 0.5},
    "a unit that there is not": {"kind": "interval", "frequency_unit": "EONS", "frequency_time": 1},
    "a rule that never comes": {"kind": "rrule", "rule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"},
    "a rule that looks at every second": {"kind": "rrule", "rule": "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30"},
    "a rule of huge steps": {"kind": "rrule", "rule": "FREQ=YEARLY;INTERVAL=99999999999999999999"},
    "a rule that is over": {"kind": "rrule", "rule": "FREQ=DAILY;UNTIL=19700101T000000Z"},
    "a rule with a start of its own": {
        "kind": "rrule",
        "rule": "DTSTART:19700101T000000Z\nRRULE:FREQ=SECONDLY",
    },
    "two rules": {"kind": "rrule", "rule": "FREQ=DAILY\nRRULE:FREQ=SECONDLY"},
    "a rule for each second of a year": {"kind": "rrule", "rule": "FREQ=SECONDLY;COUNT=31536000"},
    "no delay": {"kind": "delay", "seconds": 0},
    "a delay of true": {"kind": "delay", "seconds": True},
    "an interval of true": {"kind": "interval", "seconds": True},
    "an interval of true minutes": {
        "kind": "interval",
        "frequency_unit": "MINUTES",
        "frequency_time": True,
    },
    "a delay beyond all": {"kind": "delay", "seconds": 1e300},
    "a time without a zone": {"kind": "once", "at": "2040-01-01T00:00:00"},
    "a time that there is not": {"kind": "once", "at": "2040-02-30T00:00:00Z"},
    "a kind that there is not": {"kind": "sundial"},
}


@pytest.mark.parametrize("trigger", NEVER.values(), ids=NEVER)
def test_a_trigger_that_means_nothing_is_refused_at_once(
    operator: httpx2.Client, trigger: dict[str, Any]
) -> None:
    for path, body in (
        (SCHEDULES, yearly(trigger=trigger)),
        (f"{SCHEDULES}/apply", {"schedules": [yearly(trigger=trigger)]}),
    ):
        begun = time.monotonic()
        document = problem(operator.post(path, json=body), 422)
        assert time.monotonic() - begun < QUICKLY_S
        assert all("/trigger" in pointer for pointer in pointers(document))
    begun = time.monotonic()
    shown = operator.post(f"{SCHEDULES}/preview", json={"trigger": trigger, "n": 1000})
    assert time.monotonic() - begun < QUICKLY_S
    # What is well formed and has no times may be shown as that.
    assert shown.status_code == 422 or (not shown.json()["fires"] and shown.json()["warnings"])


@pytest.mark.parametrize(
    "trigger",
    [
        {"kind": "cron", "expression": "* * * * * *"},
        {"kind": "rrule", "rule": "FREQ=SECONDLY"},
        {"kind": "rrule", "rule": "FREQ=DAILY;BYMONTHDAY=29;BYMONTH=2;BYDAY=MO"},
        {"kind": "cron", "expression": "0 0 29 2 1#5"},
        {"kind": "interval", "seconds": 1},
    ],
    ids=lambda trigger: str(trigger.get("expression") or trigger.get("rule") or trigger["kind"]),
)
def test_times_however_many_or_rare_are_told_at_once(
    operator: httpx2.Client, trigger: dict[str, Any]
) -> None:
    preview = {"trigger": trigger, "n": 1000, "window": {"hours_of_day": [3], "days_of_week": [7]}}
    location = operator.post(SCHEDULES, json=yearly(trigger=trigger)).headers["location"]
    asks: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", f"{SCHEDULES}/preview", {"json": preview}),
        ("GET", f"{location}/fires", {"params": {"n": 1000}}),
        ("GET", f"{location}/fires", {"params": {"n": 1000, "from": "8000-01-01T00:00:00Z"}}),
        ("GET", f"{location}/fires", {"params": {"n": 1000, "to": "8000-01-01T00:00:00Z"}}),
    ]
    for method, path, options in asks:
        begun = time.monotonic()
        assert operator.request(method, path, **options).status_code == 200
        assert time.monotonic() - begun < QUICKLY_S
    everything = {"from_ts": "1970-01-01T00:00:00Z", "to_ts": "2026-01-01T00:00:00Z"}
    begun = time.monotonic()
    assert operator.post(f"{location}/backfill", json=everything).status_code in (202, 422)
    assert time.monotonic() - begun < QUICKLY_S


BEYOND = ("9999-12-31T23:59:59.999999-23:59", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+23:59")
"""Times that have no date in UTC."""


@pytest.mark.parametrize("instant", BEYOND)
def test_a_time_that_no_calendar_holds_is_refused_and_nothing_of_it_is_stored(
    operator: httpx2.Client, path: str, instant: str
) -> None:
    def preview(trigger: dict[str, Any], **fields: Any) -> httpx2.Response:
        return operator.post(f"{SCHEDULES}/preview", json={"trigger": trigger, **fields})

    hourly = {"kind": "interval", "hours": 1}
    for answer in (
        operator.post(SCHEDULES, json=yearly(end_ts=instant)),
        operator.post(SCHEDULES, json=yearly(start_ts=instant)),
        operator.post(SCHEDULES, json=yearly(trigger={"kind": "once", "at": instant})),
        operator.patch(path, json={"end_ts": instant}),
        operator.post(f"{path}/pause", json={"until_ts": instant}),
        operator.post(f"{path}/backfill", json={"from_ts": instant, "to_ts": "2020-01-01T00:00:00Z"}),
        operator.post(f"{V1}/keys", json={"name": "k", "role": "viewer", "expires_ts": instant}),
        preview({"kind": "once", "at": instant}),
        preview(hourly, start_ts=instant),
        preview(hourly, end_ts=instant),
        preview(hourly, from_ts=instant),
        operator.get(f"{path}/fires", params={"from": instant}),
        operator.get(f"{V1}/executions", params={"fire_to": instant}),
        operator.get(f"{V1}/audit", params={"from_ts": instant}),
    ):
        assert pointers(problem(answer, 422)), "names the field"
    for where in (path, SCHEDULES, f"{V1}/keys"):
        assert operator.get(where).status_code == 200


def test_times_at_the_very_end_of_the_calendar_stop_nobody_from_firing(operator: httpx2.Client) -> None:
    """A row that can be written and not be read again would stop the loader, for all hosts."""
    last = "9999-12-31T23:59:59.999999Z"
    every_second = {"kind": "interval", "seconds": 1}
    operator.post(SCHEDULES, json=yearly(trigger=every_second, end_ts=last))
    paused = operator.post(SCHEDULES, json=yearly(trigger=every_second)).headers["location"]
    operator.post(f"{paused}/pause", json={"until_ts": last})
    assert operator.get(SCHEDULES).status_code == 200
    ticking = operator.post(SCHEDULES, json=yearly(trigger=every_second)).headers["location"]
    until(lambda: operator.get(ticking).json()["run_count"] > 0)
    for listed in walk(operator, SCHEDULES):
        assert operator.delete(f"{SCHEDULES}/{listed['schedule_id']}").status_code == 204


@pytest.mark.parametrize("number", ["1e20", "1e300", "123456789012345678901234567890.5"])
def test_a_large_number_comes_back_as_it_was_and_can_be_written_back(
    operator: httpx2.Client, number: str
) -> None:
    target = {"kind": "http", "url": "https://example.com/", "body": {"n": float(number)}}
    document = made(operator.post(SCHEDULES, json=yearly(target=target)))
    path = f"{SCHEDULES}/{document['schedule_id']}"
    read = operator.get(path)
    answer = operator.put(path, content=read.content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200, answer.text


# --- addresses -------------------------------------------------------------------------------------


INSIDE = (
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.0.1./",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://%31%32%37.0.0.1/",
    "http://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460/",
    "http://127\u30020\u30020\u30021/",
    "http://localhost/",
    "http://LOCALHOST:8700/",
    "http://localhost./",
    "http://any.localhost/",
    "http://0/",
    "http://0.0.0.0/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://3232235777/",
    "http://0300.0250.1.1/",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://metadata.google.internal/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://198.18.0.1/",
    "http://[::]/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[ff02::1]/",
)
NO_ADDRESS = (
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://example.com/",
    "javascript:alert(1)",
    "//example.com/",
    "http://",
    "http:///x",
    "http://[",
    "http://[::1",
    "http://example.com:0/",
    "http://example.com:99999/",
    "http://exa mple.com/",
    "http://example.com/\r\nX-Injected: yes",
    "http://user:password@example.com/",
    "http://example.com@127.0.0.1/",
    "http://127.0.0.1\\@example.com/",
    "http://127.0.0.1%2f@example.com/",
    "http://${secret:host}/",
    "http://example.com:${secret:port}/",
)


@pytest.mark.parametrize("url", [*INSIDE, *NO_ADDRESS])
def test_an_address_that_leads_inside_or_nowhere_is_refused_when_it_is_saved(
    operator: httpx2.Client, host: Host, url: str
) -> None:
    target = {"kind": "http", "url": url}
    path = f"{SCHEDULES}/{host.schedule()}"
    for answer in (
        operator.post(SCHEDULES, json=yearly(target=target)),
        operator.put(path, json=yearly(target=target)),
        operator.patch(path, json={"target": target}),
        operator.post(f"{SCHEDULES}/apply", json={"schedules": [yearly(target=target)], "dry_run": True}),
    ):
        assert all(
            pointer.endswith("/target/url") or "/target/http/url" in pointer
            for pointer in pointers(problem(answer, 422))
        )


@pytest.mark.parametrize(
    "headers",
    [
        {"X-A": "a\r\nX-Injected: yes"},
        {"X-A": "a\nb"},
        {"X-A\r\nX-Injected": "yes"},
        {"X A": "b"},
        {"": "b"},
        {"Host": "evil.example"},
        {"Content-Length": "0"},
        {"Transfer-Encoding": "chunked"},
        {"X-Foliot-Token": "forged"},
        {"Idempotency-Key": "forged"},
        {"X-A": "b", "x-a": "c"},
        {f"X-{number}": "x" for number in range(51)},
        {"X-A": "x" * 10_000},
    ],
    ids=lambda headers: next(iter(headers))[:20] or "empty",
)
def test_headers_that_would_say_something_else_are_refused_when_they_are_saved(
    operator: httpx2.Client, headers: dict[str, str]
) -> None:
    target = {"kind": "http", "url": "https://example.com/", "headers": headers}
    document = problem(operator.post(SCHEDULES, json=yearly(target=target)), 422)
    assert pointers(document).keys() == {"/target/headers"}


# --- code ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["os.system", "builtins.eval", "subprocess:run", "__import__", "noop.__globals__", "../noop", "NOOP"],
)
def test_only_what_a_worker_registered_can_be_run(operator: httpx2.Client, name: str) -> None:
    answer = operator.post(SCHEDULES, json=yearly(target={"kind": "function", "name": name}))
    assert pointers(problem(answer, 422)).keys() == {"/target/name"}


# --- calendars -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        "RRULE:FREQ=SECONDLY",
        "RRULE:FREQ=DAILY;COUNT=99999999",
        "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "DURATION:P999999999D",
        "DTEND:19690101T000000Z",
        "RRULE:nonsense",
        "EXDATE:nonsense",
    ],
)
def test_a_calendar_file_that_would_take_for_ever_is_refused_at_once(
    operator: httpx2.Client, rule: str
) -> None:
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:x",
        "BEGIN:VEVENT",
        "UID:1",
        "DTSTART:19700101T000000Z",
    ]
    ical = "\r\n".join([*lines, rule, "END:VEVENT", "END:VCALENDAR", ""])
    begun = time.monotonic()
    answer = operator.post(f"{V1}/calendars/import", json={"name": unique(), "ical": ical})
    assert time.monotonic() - begun < QUICKLY_S
    assert pointers(problem(answer, 422)).keys() == {"/ical"}


@pytest.mark.parametrize("name", ["Feiertage 日本", "été", "a/b", "a?b#c", "100%", "..", "a b"])
def test_a_calendar_of_any_name_is_found_at_its_location(operator: httpx2.Client, name: str) -> None:
    for path, body in (
        (f"{V1}/calendars", {"name": name, "days": ["2030-01-01"]}),
        (f"{V1}/calendars/import", {"name": name, "ical": ICAL}),
    ):
        answer = operator.post(path, json=body)
        if answer.status_code == 422:
            continue
        assert answer.status_code == 201, answer.text
        assert answer.headers["location"] == f"{V1}/calendars/{quote(name, safe='')}"
        assert operator.get(answer.headers["location"]).json()["name"] == name
        assert operator.delete(answer.headers["location"]).status_code == 204


@pytest.mark.parametrize("name", [" x", "a\nb", "\u202e"])
def test_an_imported_calendar_has_a_proper_name(operator: httpx2.Client, name: str) -> None:
    answer = operator.post(f"{V1}/calendars/import", json={"name": name, "ical": ICAL})
    assert pointers(problem(answer, 422)).keys() == {"/name"}


# --- what takes long -------------------------------------------------------------------------------


SOON_S = 3.0
"""A thousandth is meant. A leader that waits longer loses its lease."""


def longest_wait(server: Served, ask: Callable[[], httpx2.Response]) -> float:
    """How long others wait at most, meanwhile, for an answer that takes nothing."""
    waits, is_over = [0.0], threading.Event()

    def probe() -> None:
        with server.client() as client:
            while not is_over.is_set():
                begun = time.monotonic()
                client.get("/healthz")
                waits.append(time.monotonic() - begun)

    thread = threading.Thread(target=probe)
    thread.start()
    try:
        ask()
    finally:
        is_over.set()
        thread.join()
    return max(waits)


def test_many_wrong_zones_in_files_keep_nobody_waiting(server: Served, operator: httpx2.Client) -> None:
    trigger = {"kind": "cron", "expression": "0 0 * * *"}
    documents = [yearly(trigger={**trigger, "timezone": f"Europ/Berln{number}"}) for number in range(500)]
    body = {"schedules": documents}
    assert longest_wait(server, lambda: operator.post(f"{SCHEDULES}/apply", json=body)) < SOON_S


def test_a_preview_with_the_holidays_of_many_countries_keeps_nobody_waiting(
    server: Served, operator: httpx2.Client
) -> None:
    codes = ["AD", "AE", "AL", "AM", "AO", "AR", "AT", "AU", "AZ", "BA", "BB", "BE", "BG", "BR", "BY", "CA"]
    codes += ["CH", "CL", "CN", "CO", "CR", "CU", "CY", "CZ", "DE", "DK", "DO", "EE", "EG", "ES"]
    name = unique("calendar")
    countries = [{"country": code} for code in codes]
    made(operator.post(f"{V1}/calendars", json={"name": name, "countries": countries}))
    trigger = {"kind": "rrule", "rule": "FREQ=DAILY;BYDAY=FR;BYMONTHDAY=13"}
    body = {"trigger": trigger, "n": 150, "calendars": [name]}
    assert longest_wait(server, lambda: operator.post(f"{SCHEDULES}/preview", json=body)) < SOON_S

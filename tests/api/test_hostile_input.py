"""Bodies, addresses and parameters that were made to break something: a clear 4xx, and nothing happened."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from foliot.api.access.access_table import ACCESS, Open
from foliot.api.http.middleware import BODY_LIMIT
from tests.api.answers import pointers, problem
from tests.api.hosts import Host, unique, yearly
from tests.api.served import API_ALONE, OPERATOR_KEY, SCHEDULES, V1, Served
from tests.api.valid_requests import ROUTES, VALID, send

SERVER = {"roles": API_ALONE}


@pytest.fixture(autouse=True)
def _nothing_unexpected(server: Served) -> Iterator[None]:
    """Whatever a test sends: no bug was met, and the server answers as before."""
    before = len(server.bugs)
    yield
    assert server.bugs[before:] == []
    assert server.by(OPERATOR_KEY).get(f"{V1}/me").status_code == 200


def with_body() -> list[tuple[str, str]]:
    """Routes that read a body."""
    return [
        route
        for route in ROUTES
        if route[0] in ("POST", "PUT", "PATCH")
        and (ACCESS[route] is not Open.SIGNED_IN)
        and not route[1].endswith(("/rotate", "/sign-in-links", "/backfills/{backfill_id}/cancel"))
    ]


BODIES = with_body()
BODY_IDS = [f"{method} {path}" for method, path in BODIES]
each_route_with_a_body = pytest.mark.parametrize(("method", "path"), BODIES, ids=BODY_IDS)


def send_raw(operator: httpx2.Client, host: Host, method: str, path: str, **options: Any) -> httpx2.Response:
    """A request of a route with a body of our own."""
    ask = VALID[method, path](host)
    headers = {**ask.options.get("headers", {}), **options.pop("headers", {})}
    return operator.request(method, path.format(**ask.named), headers=headers, **options)


# --- bodies ----------------------------------------------------------------------------------------


NOT_JSON = {
    "no JSON": b"{",
    "two documents": b"{}{}",
    "a comment": b"{} // x",
    "single quotes": b"{'name': 'x'}",
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": "{}".encode("utf-16"),
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "an encoded half of a pair": b'{"name": "\xed\xa0\x80"}',
    "half of a pair": b'{"name": "\\ud800"}',
    "a NUL": b'{"name": "a\\u0000b"}',
    "a NUL in a name": b'{"na\\u0000me": "x"}',
    "a raw NUL": b'{"name": "a\x00b"}',
    "a raw line break": b'{"name": "a\nb"}',
    "deep objects": b'{"a":' * 100 + b"1" + b"}" * 100,
    "deep lists": b'{"a":' + b"[" * 100 + b"]" * 100 + b"}",
    "deeper than any stack": b"[" * 200_000,
    "deep and closed": b"[" * 100_000 + b"]" * 100_000,
    "NaN": b'{"name": NaN}',
    "infinity": b'{"name": Infinity}',
    "a number beyond floats": b'{"name": 1e400}',
    "a number beyond 64 bits": b'{"name": 123456789012345678901234567890}',
    "a number of many digits": b'{"name": ' + b"9" * 100_000 + b"}",
    "a list": b"[]",
    "a number": b"5",
    "text": b'"x"',
    "true": b"true",
}


@each_route_with_a_body
def test_a_body_that_is_no_proper_json_is_refused_everywhere(
    operator: httpx2.Client, host: Host, method: str, path: str
) -> None:
    ask = VALID[method, path](host)
    for what, body in NOT_JSON.items():
        headers = {"Content-Type": "application/json", **ask.options.get("headers", {})}
        answer = operator.request(method, path.format(**ask.named), content=body, headers=headers)
        assert (what, answer.status_code) == (what, 422), answer.text
        problem(answer, 422)


@each_route_with_a_body
def test_a_body_of_another_type_is_refused_everywhere(
    operator: httpx2.Client, host: Host, method: str, path: str
) -> None:
    if ACCESS[method, path] is Open.AGENT:
        pytest.skip("agents may be as simple as a line of shell")
    for media in ("text/plain", "application/x-www-form-urlencoded", "text/json", "application/xml", "x"):
        answer = send_raw(operator, host, method, path, content=b"{}", headers={"Content-Type": media})
        problem(answer, 415)


@each_route_with_a_body
def test_a_field_that_is_foliots_own_or_nobodys_is_refused_everywhere(
    operator: httpx2.Client, host: Host, method: str, path: str
) -> None:
    ask = VALID[method, path](host)
    own = ("host_id", "epoch", "shard", "slot", "deleted_ts", "is_operator", "secret_hash", "__proto__", "")
    for field in own:
        if (path, field) == (f"{V1}/keys", "host_id"):
            continue
        body = {**ask.options.get("json", {}), field: 1}
        options = {**ask.options, "json": body}
        answer = operator.request(method, path.format(**ask.named), **options)
        assert f"/{field}" in pointers(problem(answer, 422))


@pytest.mark.parametrize("size", [BODY_LIMIT + 1, 10 * 1024 * 1024])
@pytest.mark.parametrize("is_announced", [True, False], ids=["announced", "in chunks"])
def test_a_body_that_is_too_large_is_refused_before_it_is_read(
    server: Served, size: int, is_announced: bool
) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(0, size, 65536):
            yield b" " * 65536

    content = b" " * size if is_announced else chunks()
    with server.client(OPERATOR_KEY) as client:
        try:
            answer = client.post(SCHEDULES, content=content, headers={"Content-Type": "application/json"})
        except httpx2.WriteError:
            return  # it was refused while we were still sending
        assert problem(answer, 413)["code"] == "too_large"
        assert answer.headers["connection"] == "close"


def test_a_body_as_large_as_allowed_is_read(operator: httpx2.Client) -> None:
    body = json.dumps(yearly()).encode()
    padded = body + b" " * (BODY_LIMIT - len(body))
    answer = operator.post(SCHEDULES, content=padded, headers={"Content-Type": "application/json"})
    assert answer.status_code == 201


def test_a_definition_larger_than_is_kept_is_refused(operator: httpx2.Client) -> None:
    target = {"kind": "http", "url": "https://example.com/", "body": "x" * 300_000}
    problem(operator.post(SCHEDULES, json=yearly(target=target)), 422)
    labels = {f"{number}": "x" * 200 for number in range(2_000)}
    problem(operator.post(SCHEDULES, json=yearly(labels=labels)), 422)


def test_of_a_name_that_occurs_twice_the_last_value_counts_and_is_checked(operator: httpx2.Client) -> None:
    name = unique()
    rest = json.dumps(yearly(name))[:-1]
    headers = {"Content-Type": "application/json"}
    answer = operator.post(SCHEDULES, content=f'{rest}, "name": "{name}2"}}'.encode(), headers=headers)
    assert answer.json()["name"] == f"{name}2"
    answer = operator.post(SCHEDULES, content=f'{rest}, "priority": "urgent"}}'.encode(), headers=headers)
    problem(answer, 422)


# --- addresses and parameters ----------------------------------------------------------------------


NO_IDS = (
    "nonsense",
    "0",
    "-1",
    "null",
    "undefined",
    "%2e",
    "..%2f..%2fetc%2fpasswd",
    "%00",
    "%ff",
    "%c0%ae",
    "%0d%0aX-Injected:%20yes",
    "' OR '1'='1",
    "00000000-0000-0000-0000-00000000000g",
    "0" * 5000,
    "\U0001f600",
)


@pytest.mark.parametrize(
    ("method", "path"), [route for route in ROUTES if "{" in route[1]], ids=lambda value: str(value)
)
def test_what_is_no_id_is_the_id_of_nothing(
    operator: httpx2.Client, host: Host, method: str, path: str
) -> None:
    ask = VALID[method, path](host)
    is_named_freely = path.startswith((f"{V1}/queues/", f"{V1}/calendars/")) and method != "GET"
    for name in ask.named:
        for wrong in NO_IDS:
            url = path.format(**{**ask.named, name: wrong})
            answer = operator.request(method, url, **ask.options)
            if is_named_freely and answer.status_code in (200, 204, 422):
                continue
            problem(answer, 405 if answer.status_code == 405 else 404)
            assert "x-injected" not in answer.headers


@pytest.mark.parametrize("path", [path for method, path in ROUTES if method == "GET" and V1 in path])
def test_an_unknown_parameter_is_refused_everywhere(operator: httpx2.Client, host: Host, path: str) -> None:
    ask = VALID["GET", path](host)
    for name in ("unknown", "host_id", "q[]", "__proto__", "page-size", "PAGE_SIZE", "%00", ""):
        params = {**ask.options.get("params", {}), name: "1"}
        with operator.stream("GET", path.format(**ask.named), params=params) as answer:
            answer.read()
        document = problem(answer, 400)
        assert document["code"] == "unknown_parameter"


@pytest.mark.parametrize("path", [path for method, path in ROUTES if method == "GET" and V1 in path])
def test_parameters_of_any_value_break_nothing(
    server: Served, operator: httpx2.Client, host: Host, path: str
) -> None:
    ask = VALID["GET", path](host)
    document = server.by(None).get("/openapi.json").json()
    names = [
        each["name"] for each in document["paths"][path]["get"].get("parameters", []) if each["in"] == "query"
    ]
    values = ("", "\0", "x" * 20_000, "9" * 40, "-1", "1e9", "NaN", "%", "\ud7ff\U0001f600", "' OR 1=1 --")
    times = ("9999-12-31T23:59:59.999999-23:59", "0001-01-01T00:00:00+23:59", "2026-02-30T00:00:00Z", "0")
    for name in names:
        for value in (*values, *times):
            params = {**ask.options.get("params", {}), name: value}
            with operator.stream("GET", path.format(**ask.named), params=params) as answer:
                if answer.status_code == 200:
                    continue
                answer.read()
            assert (name, value[:40], answer.status_code) == (name, value[:40], 422), answer.text
            problem(answer, 422)


def test_one_parameter_a_thousand_times_is_refused(operator: httpx2.Client) -> None:
    for name, value in (("name", "x"), ("status", "failed"), ("label", "a:b")):
        path = f"{V1}/executions" if name == "status" else SCHEDULES
        problem(operator.get(f"{path}?{'&'.join([f'{name}={value}'] * 1000)}"), 422)


TOKENS = (
    "nonsense",
    "=",
    "%00",
    "W10",  # []
    "e30",  # {}
    "bnVsbA",  # null
    "WyJcdTAwMDAiXQ",  # ["\u0000"]
    "WzFd",  # [1]
    "Wy0xLC0xXQ",  # [-1,-1]
    "WzkyMjMzNzIwMzY4NTQ3NzU4MDhd",  # [9223372036854775808]
    "WyJuYW1lIiwieCIsIngiXQ",  # ["name","x","x"]
    "WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzIzOjU5IiwiMDAwMDAwMDAtMDAwMC0wMDAwLTAwMDAtMDAwMDAwMDAwMDAwIl0",
    "W" * 999,
    "W" * 1001,
)


@pytest.mark.parametrize("token", TOKENS)
def test_a_page_token_that_no_list_gave_breaks_none(
    server: Served, operator: httpx2.Client, host: Host, token: str
) -> None:
    paths = server.by(None).get("/openapi.json").json()["paths"]
    lists = [
        path
        for path, operations in paths.items()
        if any(each["name"] == "page_token" for each in operations.get("get", {}).get("parameters", []))
    ]
    assert len(lists) > 10
    for path in lists:
        ask = VALID["GET", path](host)
        answer = operator.get(f"{path.format(**ask.named)}?page_token={token}")
        if answer.status_code != 200:
            assert set(pointers(problem(answer, 422))) <= {"/page_token"}


# --- what is shown again ---------------------------------------------------------------------------


MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'`&lt;{{7*7}}${7*7}"


def test_markup_is_data_and_comes_back_as_it_was(operator: httpx2.Client, host: Host) -> None:
    name = f"{MARKUP} {unique()}"[:126]
    calendar = operator.post(
        f"{V1}/calendars", json={"name": unique(), "days": ["2030-01-01"], "description": MARKUP}
    ).json()
    document = yearly(
        name,
        description=MARKUP,
        labels={MARKUP: MARKUP},
        calendars=[calendar["name"]],
        target={"kind": "http", "url": "https://example.com/", "headers": {"X-A": MARKUP}, "body": MARKUP},
    )
    answer = operator.post(SCHEDULES, json=document)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert {field: made[field] for field in ("name", "description", "labels")} == {
        field: document[field] for field in ("name", "description", "labels")
    }
    path = f"{SCHEDULES}/{made['schedule_id']}"
    paused = operator.post(f"{path}/pause", json={"reason": MARKUP})
    assert paused.json()["pause_reason"] == MARKUP
    taken = operator.post(SCHEDULES, json=document)
    refused = operator.post(SCHEDULES, json={**document, MARKUP: MARKUP, "priority": MARKUP})
    lists = [
        operator.get(SCHEDULES, params={"name": name}),
        operator.get(f"{path}/versions"),
        operator.get(f"{V1}/audit"),
        operator.get(f"{V1}/calendars"),
        operator.get(SCHEDULES, params={MARKUP: MARKUP}),
        operator.get(f"{V1}/calendars/{MARKUP.replace('/', '')}"),
    ]
    for each in (answer, paused, taken, refused, *lists):
        assert each.headers["content-type"] in ("application/json", "application/problem+json")
        assert each.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in each.headers["content-security-policy"]
        assert each.headers["x-frame-options"] == "DENY"
        assert each.headers["cache-control"] == "no-store"


def test_every_answer_tells_browsers_to_do_nothing_with_it(server: Served, host: Host) -> None:
    for method, path in ROUTES:
        answer = send(server.by(None), method, path, VALID[method, path](host))
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "server" not in answer.headers


def test_a_name_in_a_header_begins_no_other_header(operator: httpx2.Client) -> None:
    for name in (
        "a\r\nX-Injected: yes",
        "a\nX-Injected: yes",
        "a\tb",
        "a\x7fb",
        " a",
        "a ",
        "\u2028",
        "\u202e",
    ):
        for path, body in (
            (SCHEDULES, yearly(name)),
            (f"{V1}/calendars", {"name": name, "days": ["2030-01-01"]}),
            (f"{V1}/hosts", {"name": name}),
            (f"{V1}/keys", {"name": name, "role": "viewer"}),
            (f"{V1}/secrets", {"name": name, "value": "x"}),
        ):
            answer = operator.post(path, json=body)
            assert pointers(problem(answer, 422)).keys() == {"/name"}
            assert "x-injected" not in answer.headers

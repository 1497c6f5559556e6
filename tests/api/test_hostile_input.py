"""Input that was made to break something: a clear 4xx, at once, and nothing behind it is touched."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2
import pytest

from foliot.api.access import ACCESS, Open
from foliot.api.front import BODY_LIMIT
from tests.api.answers import pointers, problem
from tests.api.hosts import Host, two_hosts, unique, yearly
from tests.api.served import API_ALONE, OPERATOR_KEY, V1, Served, served
from tests.api.valid_requests import ROUTES, VALID, send

SCHEDULES = f"{V1}/schedules"
QUICKLY_S = 2.0
"""Milliseconds are meant; the rest is for a busy machine."""


@pytest.fixture(scope="module")
def server(module_url: str) -> Iterator[Served]:
    with served(module_url, roles=API_ALONE) as made:
        yield made


@pytest.fixture(scope="module")
def host(server: Served) -> Host:
    return two_hosts(server)[0]


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
        and not route[1].endswith(("/rotate", "/backfills/{backfill_id}/cancel"))
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


# --- HTTP itself -----------------------------------------------------------------------------------


def talk(server: Served, request: bytes) -> bytes:
    """Send bytes as they are, and read what comes until the server closes or falls silent."""
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        received = b""
        # Who is refused in the middle of a request may be hung up on.
        with contextlib.suppress(ConnectionError, OSError):
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            while chunk := connection.recv(65536):
                received += chunk
        return received


BEARER = f"Authorization: Bearer {OPERATOR_KEY}\r\n".encode()
RAW = {
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "two lengths": b"POST /api/v1/schedules HTTP/1.1\r\nHost: x\r\n"
    + BEARER
    + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "a length and chunks": b"POST /api/v1/schedules HTTP/1.1\r\nHost: x\r\n"
    + BEARER
    + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api/v1/me HTTP/1.1\r\n\r\n",
    "a negative length": b"POST /api/v1/schedules HTTP/1.1\r\nHost: x\r\n"
    + BEARER
    + b"Content-Length: -1\r\n\r\n",
    "a length that is no number": b"POST /api/v1/schedules HTTP/1.1\r\nHost: x\r\n"
    + BEARER
    + b"Content-Length: 1e9\r\n\r\n",
    "a header with a NUL": b"GET /api/v1/me HTTP/1.1\r\nHost: x\r\nX-A: a\x00b\r\n\r\n",
    "a folded header": b"GET /api/v1/me HTTP/1.1\r\nHost: x\r\nX-A: a\r\n b\r\n\r\n",
    "a space before the colon": b"GET /api/v1/me HTTP/1.1\r\nHost: x\r\nAuthorization : Bearer x\r\n\r\n",
    "a giant header": b"GET /api/v1/me HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 1_000_000 + b"\r\n\r\n",
    "a giant query": b"GET /api/v1/schedules?q=" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "very many headers": b"GET /api/v1/me HTTP/1.1\r\nHost: x\r\n" + b"X-A: a\r\n" * 100_000 + b"\r\n",
    "no version": b"GET /api/v1/me\r\n\r\n",
    "a method that there is not": b"FROB /api/v1/me HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "an address of another host": b"GET http://evil.example/api/v1/me HTTP/1.1\r\nHost: x\r\n\r\n",
    "a connection to another host": b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
    "an upgrade": b"GET /api/v1/me HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "bytes beyond ASCII in the path": b"GET /api/v1/\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("request_", RAW.values(), ids=RAW)
def test_what_is_no_proper_http_is_refused_and_no_second_request_is_read_out_of_it(
    server: Served, request_: bytes
) -> None:
    received = talk(server, request_)
    answers = received.count(b"HTTP/1.1 ")
    assert answers <= 1
    assert not answers or received.startswith(b"HTTP/1.1 4"), received[:200]


def test_of_two_credentials_a_wrong_first_one_is_not_mended_by_the_second(server: Served) -> None:
    wrong = b"Authorization: Bearer nonsense\r\n"
    request = b"GET /api/v1/me HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    assert talk(server, request + wrong + BEARER + b"\r\n").startswith(b"HTTP/1.1 401 ")


NEARLY = (
    "",
    " ",
    "Bearer",
    "Bearer ",
    "Basic eDp5",
    OPERATOR_KEY,
    f"Bearer {OPERATOR_KEY} x",
    f"Bearer\t{OPERATOR_KEY}",
    f"Bearer {OPERATOR_KEY},Bearer x",
    f"Bearer {OPERATOR_KEY[:-1]}",
    "Bearer " + "x" * 20_000,
)


@pytest.mark.parametrize("authorization", NEARLY, ids=range(len(NEARLY)))
def test_what_is_nearly_a_credential_is_none(server: Served, authorization: str) -> None:
    request = (
        f"GET {V1}/me HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: {authorization}\r\n\r\n"
    )
    received = talk(server, request.encode())
    assert received.startswith(b"HTTP/1.1 401 ")
    assert b"\r\nwww-authenticate: Bearer\r\n" in received


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "PROPFIND", "DELETE", "PUT", "PATCH"])
def test_a_method_that_a_route_has_not_is_refused_whoever_asks(
    server: Served, operator: httpx2.Client, method: str
) -> None:
    for path in (
        f"{V1}/me",
        SCHEDULES,
        f"{V1}/keys",
        f"{V1}/executions",
        f"{V1}/schedules/{uuid4()}/trigger",
    ):
        for client in (operator, server.by(None)):
            answer = client.request(method, path)
            assert answer.status_code == 405
            allowed = {each.strip() for each in answer.headers["allow"].split(",")}
            assert allowed == {known for known, template in ACCESS if is_at(template, path)}
            if method == "TRACE":
                assert OPERATOR_KEY not in answer.text
            if method == "HEAD":
                assert answer.content == b""


def is_at(template: str, path: str) -> bool:
    parts, given = template.split("/"), path.split("/")
    return len(parts) == len(given) and all(
        part == each or part.startswith("{") for part, each in zip(parts, given, strict=True)
    )


def test_a_tunnel_to_elsewhere_is_refused(server: Served) -> None:
    for target in ("evil.example:443", "/healthz"):
        received = talk(server, f"CONNECT {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        assert received.startswith((b"HTTP/1.1 405 ", b"HTTP/1.1 404 ", b"HTTP/1.1 400 "))


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1",
        "/api/v1/",
        "/api/v1/schedules/",
        "//api/v1/schedules",
        "/api//v1/schedules",
        "/API/V1/schedules",
        "/api/v1/./schedules",
        "/api/v1/keys/../schedules",
        "/api/v1/%2e%2e/v1/schedules",
        "/api/v1/schedules%2f",
        "/api/v1/schedules;x=1",
        "/api/v1/schedules%00",
        "/api/v1/schedules%20",
        "/api/v2/schedules",
        "/docs",
        "/redoc",
        "/.env",
        "/static/../../etc/passwd",
        "/\\evil.example",
    ],
)
def test_another_spelling_of_an_address_is_another_address(server: Served, path: str) -> None:
    for credential in (b"", BEARER):
        request = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n".encode() + credential + b"\r\n"
        assert talk(server, request).startswith(b"HTTP/1.1 404 ")


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


# --- times that take for ever, addresses that lead inside ------------------------------------------

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
    "no delay": {"kind": "delay", "seconds": 0},
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

"""HTTP that is none, or says two things: refused, or hung up on."""

import contextlib
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit
from uuid import uuid4

import httpx2
import pytest

from foliot.api.access.access_table import ACCESS
from tests.api.served import API_ALONE, OPERATOR_KEY, SCHEDULES, V1, Served

DATABASES = ("sqlite",)
SERVER = {"roles": API_ALONE}


@pytest.fixture(autouse=True)
def _nothing_unexpected(server: Served) -> Iterator[None]:
    """Whatever a test sends: no bug was met, and the server answers as before."""
    before = len(server.bugs)
    yield
    assert server.bugs[before:] == []
    assert server.by(OPERATOR_KEY).get(f"{V1}/me").status_code == 200


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
    "a length and chunks": b"POST /api/v1/schedules HTTP/1.1\r\nHost: x\r\n"
    + BEARER
    + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "the same length twice": b"POST /api/v1/schedules HTTP/1.1\r\nHost: x\r\n"
    + BEARER
    + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "lines that end in LF alone": b"GET /healthz HTTP/1.1\nHost: x\n\n",
    "a header that ends in LF alone": b"GET /healthz HTTP/1.1\r\nHost: x\nX-A: b\r\n\r\n",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
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


def test_a_head_without_end_is_not_read_to_its_end(server: Served) -> None:
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: ")
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 100_000_000:
                sent += connection.send(b"a" * 65536)
        assert sent < 100_000_000


def test_a_long_body_is_no_long_head(server: Served) -> None:
    body = b"[" + b" " * 500_000 + b"]"
    request = (
        b"POST /api/v1/preview HTTP/1.1\r\nHost: x\r\n" + BEARER + b"Content-Length: %d\r\n\r\n" % len(body)
    )
    received = talk(server, (request + body) * 3)
    assert received.count(b"HTTP/1.1 4") == 3
    assert b"too large." not in received


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


def test_a_request_with_a_length_and_chunks_is_the_last_of_its_connection(server: Served) -> None:
    """Else what stands behind it is read as another request than the proxy in front has seen."""
    smuggled = b"GET /api/v1/me HTTP/1.1\r\nHost: x\r\n" + BEARER + b"\r\n"
    head = b"POST /api/v1/schedules HTTP/1.1\r\nHost: x\r\n" + BEARER
    lengths = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    received = talk(server, head + lengths + smuggled)
    assert received.count(b"HTTP/1.1 ") == 1
    assert b"operator" not in received

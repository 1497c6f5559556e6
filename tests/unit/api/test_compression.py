"""Large answers of the API are compressed, and only those where it is safe and worth it."""

import gzip
from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import FastAPI, Response
from starlette.responses import StreamingResponse

from foliot.api.http.compression import MIN_BYTES, accepts_gzip
from foliot.api.http.middleware import add_front

LARGE = b'{"items": [' + b'"schedule",' * 1_000 + b'""]}'
SMALL = b'{"items": []}'
JSON = "application/json"


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    app = FastAPI()

    def add(path: str, body: bytes, media_type: str = JSON) -> None:
        async def read() -> Response:
            return Response(body, headers={"ETag": '"7"'}, media_type=media_type)

        app.add_api_route(path, read, methods=["GET", "HEAD"])

    add("/api/v1/schedules", LARGE)
    add("/api/v1/schedules/problem", LARGE, "application/problem+json")
    add("/api/v1/schedules/small", SMALL)
    for path in ("/api/v1/keys", "/api/v1/secrets", "/api/v1/secrets/rotate", "/api/v1/me", "/sign-in"):
        add(path, LARGE)

    @app.get("/api/v1/stream")
    async def stream() -> Response:
        async def events() -> AsyncIterator[bytes]:
            yield b"data: " + LARGE + b"\n\n"
            yield b"data: more\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    add_front(app, lambda _error, _id: None, lambda _answer: None)
    transport = httpx2.ASGITransport(app=app)
    headers = {"Accept-Encoding": "gzip, deflate, br"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://foliot", headers=headers) as opened:
        yield opened


@pytest.mark.parametrize("path", ["/api/v1/schedules", "/api/v1/schedules/problem"])
async def test_a_large_answer_is_compressed(client: httpx2.AsyncClient, path: str) -> None:
    async with client.stream("GET", path) as answer:
        sent = b"".join([part async for part in answer.aiter_raw()])
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert int(answer.headers["content-length"]) == len(sent) < len(LARGE) / 10
    assert gzip.decompress(sent) == LARGE
    assert answer.headers["etag"] == '"7"', "the version of the schedule, for If-Match"


@pytest.mark.parametrize("encoding", ["identity", "br", "gzip;q=0", "*;q=0"])
async def test_who_does_not_take_gzip_gets_the_answer_as_it_is(
    client: httpx2.AsyncClient, encoding: str
) -> None:
    answer = await client.get("/api/v1/schedules", headers={"Accept-Encoding": encoding})
    assert "content-encoding" not in answer.headers
    assert (answer.headers["vary"], answer.content) == ("Accept-Encoding", LARGE)


async def test_a_small_answer_is_sent_as_it_is(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/api/v1/schedules/small")
    assert len(SMALL) < MIN_BYTES
    assert "content-encoding" not in answer.headers
    assert (answer.headers["vary"], answer.content) == ("Accept-Encoding", SMALL)


@pytest.mark.parametrize(
    "path", ["/api/v1/keys", "/api/v1/secrets", "/api/v1/secrets/rotate", "/api/v1/me", "/sign-in"]
)
async def test_what_may_hold_a_secret_is_never_compressed(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert "content-encoding" not in answer.headers
    assert answer.content == LARGE


async def test_a_stream_of_events_is_never_compressed(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/api/v1/stream")
    assert "content-encoding" not in answer.headers
    assert answer.content.endswith(b"data: more\n\n")


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("gzip", True),
        ("GZIP;q=0.5, br", True),
        ("*", True),
        ("", False),
        ("br, zstd", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("gzip;q=0, *", False),
        ("xgzip", False),
    ],
)
def test_what_a_client_takes_is_read_from_its_header(header: str, expected: bool) -> None:
    assert accepts_gzip(header) is expected

"""The server of a role's probes: what it serves, and that nobody can get more of it than a little."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest
from tests.engine import until

from foliot.api.probe_server import MAX_CONNECTIONS, MAX_HEAD_BYTES, ProbeServer
from foliot.instance.store import open_store
from foliot.model.errors import SettingError
from foliot.model.instance_events import WriteFenced
from foliot.telemetry.health.probes import Probes
from foliot.timing.clock import VirtualClock

WITHIN_S = 30.0
HOST = "127.0.0.1"


class Stage:
    """Probes of an instance that is whatever the test says, and their server."""

    def __init__(self, probes: Probes) -> None:
        self.probes = probes
        self.is_running = True
        self.stuck: dict[str, float] = {}
        self.port = 0

    async def send(self, raw: bytes) -> bytes:
        """The whole answer to these bytes, up to the end of the connection."""
        async with asyncio.timeout(WITHIN_S):
            reader, writer = await asyncio.open_connection(HOST, self.port)
            try:
                writer.write(raw)
                return await reader.read()
            finally:
                writer.close()

    async def ask(self, path: str, method: str = "GET", *headers: str) -> tuple[int, dict[str, str], str]:
        raw = "\r\n".join([f"{method} {path} HTTP/1.1", "Host: here", *headers, "", ""])
        head, _, body = (await self.send(raw.encode())).decode().partition("\r\n\r\n")
        status, *fields = head.split("\r\n")
        return int(status.split()[1]), dict(field.lower().split(": ", 1) for field in fields), body


@pytest.fixture
async def stage(sqlite_url: str) -> AsyncIterator[Stage]:
    clock = VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))
    store = open_store(sqlite_url, clock=clock)
    stage = Stage(Probes(clock))
    stage.probes.watch(
        store.database,
        is_running=lambda: stage.is_running,
        limit_s=10,
        stuck=lambda _limit_s: stage.stuck,
        replica=None,
    )
    async with ProbeServer(stage.probes).listening(HOST, 0) as url:
        stage.port = urlsplit(url).port or 0
        yield stage
    await store.close()


async def test_a_process_is_alive_and_says_whether_it_is_ready(stage: Stage) -> None:
    status, fields, body = await stage.ask("/healthz")
    assert (status, json.loads(body)) == (200, {"status": "ok"})
    assert fields["content-type"] == "application/json"
    assert fields["connection"] == "close"
    status, _, body = await stage.ask("/readyz")
    assert (status, json.loads(body)) == (200, {"status": "ready", "problems": []})

    stage.stuck = {"relay": 11.0}
    status, _, body = await stage.ask("/readyz?verbose")
    problems = ["service relay has not come to a good end for 11.0 s"]
    assert (status, json.loads(body)) == (503, {"status": "not ready", "problems": problems})
    stage.is_running = False
    status, _, body = await stage.ask("/readyz")
    assert (status, json.loads(body)["problems"]) == (503, ["the instance is starting or stopping"])
    assert (await stage.ask("/healthz"))[0] == 200


async def test_metrics_come_in_the_format_that_is_asked_for(stage: Stage) -> None:
    for observer in stage.probes.observers:
        observer.notify(WriteFenced(0, 1))
    status, fields, body = await stage.ask("/metrics")
    assert status == 200
    assert fields["content-type"].startswith("text/plain; version=0.0.4")
    lines = body.splitlines()
    assert "foliot_scheduler_fenced_writes_total 1.0" in lines
    assert 'foliot_db_pool_in_use{pool="firing"} 0.0' in lines
    assert 'foliot_db_pool_size{pool="lease"} 2.0' in lines
    assert len(body.encode()) == int(fields["content-length"])

    _, fields, body = await stage.ask("/metrics", "GET", "Accept: application/openmetrics-text;version=1.0.0")
    assert fields["content-type"].startswith("application/openmetrics-text")
    assert body.endswith("# EOF\n")


async def test_a_head_is_answered_without_a_body(stage: Stage) -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        status, fields, body = await stage.ask(path, "HEAD")
        assert (status, body) == (200, "")
        assert int(fields["content-length"]) > 0


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"GET //metrics HTTP/1.1\r\n\r\n", 404),
        (b"GET /metrics/ HTTP/1.1\r\n\r\n", 404),
        (b"OPTIONS * HTTP/1.1\r\n\r\n", 404),
        (b"GET http://here HTTP/1.1\r\n\r\n", 400),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 405),
        (b"DELETE /healthz HTTP/1.1\r\n\r\n", 405),
        (b"GARBAGE\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\n\r\n", 400),
        (b"GET /metrics HTTP/9.9\r\n\r\n", 400),
        (b"CONNECT here:443 HTTP/1.1\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", 200),
        (b"GET /metrics HTTP/1.1\r\nA: " + b"a" * 2 * MAX_HEAD_BYTES, 431),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET /metrics\r\n\r\n", 200),
        (b"GET /metrics HTTP/1.0\r\n\r\n", 200),
        (b"GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text;version=abc\r\n\r\n", 200),
        (b"GET /metrics HTTP/1.1\r\nAccept: text/plain;version=\xb2.\xb2;escaping=\xff\r\n\r\n", 200),
        (b"GET /metrics HTTP/1.1\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n", 200),
    ],
)
async def test_whatever_comes_gets_one_answer_and_an_end(stage: Stage, raw: bytes, status: int) -> None:
    reader, writer = await asyncio.open_connection(HOST, stage.port)
    async with asyncio.timeout(WITHIN_S):
        writer.write(raw)
        answer = await reader.read()
        writer.close()
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert answer.count(b"HTTP/1.1 ") == 1
    assert (await stage.ask("/healthz"))[0] == 200


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """What still comes; a reset is an end like any other."""
    try:
        async with asyncio.timeout(WITHIN_S):
            return await reader.read()
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_whoever_offers_another_protocol_is_answered_in_this_one(stage: Stage, method: str) -> None:
    headers = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAA")
    status, fields, _ = await stage.ask("/healthz", method, *headers)
    assert status == 200
    assert "upgrade" not in fields


async def test_whoever_sends_without_end_is_cut_off(stage: Stage) -> None:
    """Reading on would take the loop from the work, for as long as somebody likes."""
    much = bytes(2**20)
    async with ProbeServer(stage.probes, limit_s=3600).listening(HOST, 0) as url:
        _reader, writer = await asyncio.open_connection(HOST, urlsplit(url).port)
        writer.write(b"POST /metrics HTTP/1.1\r\n\r\n")

        async def send() -> None:
            # More than the kernel's buffers can hold.
            for _ in range(256):
                writer.write(much)
                await writer.drain()

        with pytest.raises(ConnectionError):
            await asyncio.wait_for(send(), WITHIN_S)
        writer.close()


async def test_whoever_takes_too_long_is_left(stage: Stage) -> None:
    async with ProbeServer(stage.probes, limit_s=0.2).listening(HOST, 0) as url:
        reader, writer = await asyncio.open_connection(HOST, urlsplit(url).port)
        writer.write(b"GET /metrics HTTP/1.1\r\n")
        assert await rest_of(reader) == b""
        writer.close()


async def test_too_many_at_once_are_turned_away_and_later_ones_are_served(stage: Stage) -> None:
    async def is_served() -> bool:
        reader, writer = await asyncio.open_connection(HOST, stage.port)
        writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
        answer = await rest_of(reader)
        writer.close()
        return answer.startswith(b"HTTP/1.1 200 ")

    async def is_turned_away() -> bool:
        return not await is_served()

    async with AsyncExitStack() as stack:
        for _ in range(MAX_CONNECTIONS):
            _reader, writer = await asyncio.open_connection(HOST, stage.port)
            stack.callback(writer.close)
            writer.write(b"GET ")
        await until(is_turned_away)
    await until(is_served)


async def test_a_server_that_ends_waits_for_nobody(stage: Stage) -> None:
    async with asyncio.timeout(WITHIN_S):
        async with ProbeServer(stage.probes, limit_s=3600).listening(HOST, 0) as url:
            reader, writer = await asyncio.open_connection(HOST, urlsplit(url).port)
            writer.write(b"GET /metrics")
        assert await rest_of(reader) == b""
        writer.close()


async def test_a_port_that_is_taken_is_refused_with_what_to_do(stage: Stage) -> None:
    with pytest.raises(SettingError) as refused:
        async with ProbeServer(stage.probes).listening(HOST, stage.port):
            pass
    told = str(refused.value)
    assert f"can't serve metrics on {HOST}:{stage.port}: address already in use" in told
    assert "--metrics-port" in told
    with pytest.raises(SettingError, match="FOLIOT_METRICS_HOST"):
        async with ProbeServer(stage.probes).listening("192.0.2.1", 0):
            pass

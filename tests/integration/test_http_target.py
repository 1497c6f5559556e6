"""The HTTP target against real sockets: agents that are slow, endless, hostile, or simply elsewhere."""

import asyncio
import gzip
import json
import logging
import ssl
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from foliot.access.address_guard import AddressGuard, HttpAllow
from foliot.access.callback_tokens import CallbackTokens
from foliot.access.secrets import SecretResolver
from foliot.kinds.http_answer import BODY_BYTES
from foliot.kinds.http_connections import guarded_pool
from foliot.kinds.http_request import Callback
from foliot.kinds.http_runner import HttpRunner
from foliot.kinds.target_protocol import AcceptedByAgent, Assignment, AttemptFailedError, Fire
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.schedule import ScheduleSpec
from foliot.timing.clock import VirtualClock

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
EXECUTION_ID = UUID("01890000-0000-7000-8000-000000000001")
SECRET = "s3cret/väl ue"
TOKENS = CallbackTokens(b"k" * 32)
SENT: dict[tuple[UUID, int], str] = {}
"""What attempts stored before they sent their secrets."""


async def keep_sent(execution_id: UUID, attempt: int, sealed: str) -> None:
    SENT[execution_id, attempt] = sealed


CALLBACK = Callback("https://foliot.example/", TOKENS, keep_sent)
WAIT_S = 10.0
"""How long a test waits for what should be there at once."""

Answering = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Agent:
    """An HTTP server of a few lines, that answers as it is told and remembers what it was asked."""

    answering: Answering
    port: int = 0
    connections: int = 0
    requests: list["Request"] = field(default_factory=list)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """A client has hung up."""

    def url(self, path: str = "/run", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while request := await _read_request(reader):
                self.requests.append(request)
                await self.answering(reader, writer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.closed.set()
            writer.close()


@dataclass
class Request:
    line: str
    headers: dict[str, str]
    body: bytes


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    line, *rest = head.decode().rstrip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in rest)}
    return Request(line, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


def saying(status: str, body: bytes = b"", *headers: str) -> Answering:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    return answer


def sending(*pieces: bytes) -> Answering:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return answer


@asynccontextmanager
async def agent_that(answering: Answering, ssl_context: ssl.SSLContext | None = None) -> AsyncIterator[Agent]:
    agent = Agent(answering)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(agent.serve(reader, writer))
        tasks.add(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=ssl_context)
    agent.port = server.sockets[0].getsockname()[1]
    try:
        yield agent
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True)
class Certificate:
    """A certificate of agent.example that vouches for itself."""

    path: Path

    def of_server(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path)
        return context

    def trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.path))


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "agent.example")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("agent.example")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "agent.pem"
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + made.public_bytes(Encoding.PEM)
    )
    return Certificate(path)


class Stored:
    async def values(self, host_id: UUID, names: Iterable[str]) -> dict[str, str]:
        known = {"token": SECRET, "broken": "line\r\nX-Evil: 1", "host": "@evil.example/"}
        return {name: known[name] for name in names if name in known and host_id == DEFAULT_HOST_ID}


@asynccontextmanager
async def runner_with(
    allow: str = "127.0.0.0/8", callback: Callback | None = None, **options: Any
) -> AsyncIterator[HttpRunner]:
    guard = AddressGuard(HttpAllow.parse(allow))
    pool = guarded_pool(guard, **options)
    runner = HttpRunner(guard, SecretResolver(Stored(), {}), VirtualClock(NOW), callback=callback, pool=pool)
    try:
        yield runner
    finally:
        await runner.close()


def assignment_for(
    url: str, args: dict[str, Any] | None = None, name: str = "nightly", **target: Any
) -> Assignment:
    spec = ScheduleSpec.parse(
        {
            "name": name,
            "trigger": {"kind": "delay", "seconds": 30},
            "target": {"kind": "http", "url": url, **target},
        }
    )
    fire = Fire(EXECUTION_ID, UUID(int=7), name, NOW, 2)
    return Assignment(fire, spec, args or {}, DEFAULT_HOST_ID)


async def run(runner: HttpRunner, url: str, **target: Any) -> Any:
    async with asyncio.timeout(WAIT_S):
        return await runner.run(assignment_for(url, **target))


async def failure_of(runner: HttpRunner, url: str, **target: Any) -> AttemptFailedError:
    with pytest.raises(AttemptFailedError) as caught:
        await run(runner, url, **target)
    # What a traceback would show: nothing of the library's own errors, which may hold what was sent.
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value


@pytest.fixture
async def runner() -> AsyncIterator[HttpRunner]:
    async with runner_with() as made:
        yield made


class TestRequest:
    async def test_it_says_which_execution_it_belongs_to(self) -> None:
        async with agent_that(saying("200 OK")) as agent, runner_with(callback=CALLBACK) as runner:
            await run(runner, agent.url("/run?a=1#part"), name="Nächte 100%", body={"report": "daily"})
        [request] = agent.requests
        assert request.line == "POST /run?a=1 HTTP/1.1"
        assert request.headers["host"] == f"127.0.0.1:{agent.port}"
        assert request.headers["idempotency-key"] == str(EXECUTION_ID)
        assert request.headers["x-foliot-schedule"] == "N%C3%A4chte 100%25"
        assert request.headers["x-foliot-fire-time"] == "2026-03-01T12:00:00Z"
        assert request.headers["x-foliot-attempt"] == "2"
        assert (
            request.headers["x-foliot-callback"] == f"https://foliot.example/api/v1/executions/{EXECUTION_ID}"
        )
        assert TOKENS.is_valid(request.headers["x-foliot-token"], EXECUTION_ID, 2)
        assert request.headers["user-agent"].startswith("Foliot/")
        assert request.headers["accept-encoding"] == "identity"
        assert request.headers["content-type"] == "application/json"
        assert json.loads(request.body) == {"report": "daily"}

    async def test_without_a_public_url_no_callback_is_offered(self, runner: HttpRunner) -> None:
        async with agent_that(saying("200 OK")) as agent:
            await run(runner, agent.url(), method="GET")
        [request] = agent.requests
        assert not {"x-foliot-callback", "x-foliot-token", "content-type", "content-length"} & set(
            request.headers
        )

    async def test_text_is_sent_as_text_and_users_may_name_its_type(self, runner: HttpRunner) -> None:
        async with agent_that(saying("200 OK")) as agent:
            await run(runner, agent.url(), body="größe")
            await run(
                runner, agent.url(), body="<a/>", headers={"content-TYPE": "text/xml", "User-Agent": "mine"}
            )
        plain, typed = agent.requests
        assert (plain.body.decode(), plain.headers["content-type"]) == ("größe", "text/plain; charset=utf-8")
        assert (typed.headers["content-type"], typed.headers["user-agent"]) == ("text/xml", "mine")

    async def test_arguments_are_laid_over_the_body_without_resolving_secrets_in_them(
        self, runner: HttpRunner
    ) -> None:
        async with agent_that(saying("200 OK")) as agent:
            body = {"a": 1, "b": "${secret:token}"}
            await run(runner, agent.url(), body=body, args={"a": 10**30, "c": "${secret:token}"})
            await run(runner, agent.url(), args={"a": 2})
            failure = await failure_of(runner, agent.url(), body=[1], args={"a": 2})
        assert json.loads(agent.requests[0].body) == {"a": 10**30, "b": SECRET, "c": "${secret:token}"}
        assert json.loads(agent.requests[1].body) == {"a": 2}
        assert failure.is_permanent

    async def test_one_connection_serves_several_requests(self, runner: HttpRunner) -> None:
        async with agent_that(saying("200 OK", b"x")) as agent:
            for _ in range(3):
                await run(runner, agent.url())
        assert (len(agent.requests), agent.connections) == (3, 1)


class TestAnswer:
    async def test_json_is_kept_as_what_it_says(self, runner: HttpRunner) -> None:
        body = b'{"ok": [1, null, "x"]}'
        headers = (
            "Content-Type: application/problem+json; charset=utf-8",
            "Set-Cookie: a=b",
            "X-Request-Id: 7",
        )
        async with agent_that(saying("201 Created", body, *headers)) as agent:
            assert await run(runner, agent.url()) == {
                "status_code": 201,
                "headers": {"content-type": "application/problem+json; charset=utf-8", "x-request-id": "7"},
                "body": {"ok": [1, None, "x"]},
            }

    @pytest.mark.parametrize("body", [b'{"a": ', b"NaN", b"[" * 20_000, b'"\\ud800"', b'"\xff"'])
    async def test_what_is_not_json_is_kept_as_text(self, runner: HttpRunner, body: bytes) -> None:
        async with agent_that(saying("200 OK", body, "Content-Type: application/json")) as agent:
            result = await run(runner, agent.url())
        assert result["body"] == body.decode("utf-8", "replace")

    async def test_nothing_is_none(self, runner: HttpRunner) -> None:
        async with agent_that(saying("204 No Content")) as agent:
            assert await run(runner, agent.url()) == {"status_code": 204, "headers": {}, "body": None}

    @pytest.mark.parametrize(
        ("expected", "status", "is_success"),
        [(None, 200, True), (None, 299, True), ([404], 404, True), ([302], 302, True), ([201], 200, False)],
    )
    async def test_the_definition_says_what_success_is(
        self, runner: HttpRunner, expected: list[int] | None, status: int, is_success: bool
    ) -> None:
        async with agent_that(saying(f"{status} Whatever")) as agent:
            if is_success:
                assert (await run(runner, agent.url(), expected_status=expected))["status_code"] == status
            else:
                assert (await failure_of(runner, agent.url(), expected_status=expected)).is_permanent

    @pytest.mark.parametrize("status", [500, 502, 503, 504, 599, 408, 425, 429])
    async def test_some_answers_ask_for_another_attempt(self, runner: HttpRunner, status: int) -> None:
        async with agent_that(saying(f"{status} Whatever", b"why")) as agent:
            failure = await failure_of(runner, agent.url())
        assert not failure.is_permanent
        assert failure.retry_after_s is None
        assert failure.result == {"status_code": status, "headers": {}, "body": "why"}
        assert str(status) in str(failure)

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 422, 451])
    async def test_others_are_final(self, runner: HttpRunner, status: int) -> None:
        async with agent_that(saying(f"{status} Whatever", b"why", "Retry-After: 7")) as agent:
            failure = await failure_of(runner, agent.url())
        assert failure.is_permanent
        assert failure.retry_after_s is None
        assert failure.result["body"] == "why"

    @pytest.mark.parametrize(
        ("headers", "seconds"),
        [
            (("Retry-After: 7",), 7),
            (("Retry-After: 0",), 0),
            (("Retry-After: 86400",), 3600),
            (("Retry-After: " + "9" * 500,), 3600),
            (("Retry-After: -1",), None),
            (("Retry-After: soon",), None),
            (("Retry-After: ²",), None),
            ((f"Retry-After: {format_datetime(NOW + timedelta(seconds=90), usegmt=True)}",), 90),
            ((f"Retry-After: {format_datetime(NOW - timedelta(seconds=90), usegmt=True)}",), 0),
            ((f"Retry-After: {format_datetime(NOW + timedelta(days=9), usegmt=True)}",), 3600),
            (("Retry-After: Sun, 01 Mar 2020 12:00:30 GMT", "Date: Sun, 01 Mar 2020 12:00:00 GMT"), 30),
        ],
    )
    async def test_an_agent_can_say_when_to_try_again(
        self, runner: HttpRunner, headers: Sequence[str], seconds: float | None
    ) -> None:
        async with agent_that(saying("429 Too Many Requests", b"", *headers)) as agent:
            assert (await failure_of(runner, agent.url())).retry_after_s == seconds


class TestTakenOver:
    @pytest.mark.parametrize(
        ("body", "external_id"),
        [
            (b'{"id": "job-7"}', "job-7"),
            (b'{"external_id": 42, "id": "other"}', "42"),
            (b'{"id": {"deep": 1}}', None),
            (b'{"id": true}', None),
            (b"[1]", None),
            (b"", None),
        ],
    )
    async def test_a_202_hands_the_work_over_when_the_agent_can_call_back(
        self, body: bytes, external_id: str | None
    ) -> None:
        answering = saying("202 Accepted", body, "Content-Type: application/json")
        async with agent_that(answering) as agent, runner_with(callback=CALLBACK) as runner:
            assert await run(runner, agent.url()) == AcceptedByAgent(external_id)
            assert await run(runner, agent.url(), expected_status=[200]) == AcceptedByAgent(external_id)

    async def test_a_202_that_was_expected_is_a_success(self) -> None:
        async with agent_that(saying("202 Accepted")) as agent, runner_with(callback=CALLBACK) as runner:
            assert (await run(runner, agent.url(), expected_status=[202]))["status_code"] == 202

    async def test_without_a_callback_a_202_is_a_success(self, runner: HttpRunner) -> None:
        async with agent_that(saying("202 Accepted")) as agent:
            assert (await run(runner, agent.url()))["status_code"] == 202


class TestHostileAgents:
    async def test_an_endless_body_is_cut_and_its_connection_closed(self, runner: HttpRunner) -> None:
        async def endless(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                writer.write(b"x" * 8192)
                await writer.drain()

        async with agent_that(endless) as agent:
            result = await run(runner, agent.url())
            await asyncio.wait_for(agent.closed.wait(), WAIT_S)
        assert result["truncated"] is True
        assert BODY_BYTES * 0.7 < len(result["body"]) <= BODY_BYTES
        assert len(json.dumps(result)) <= BODY_BYTES

    async def test_a_result_never_outgrows_what_is_kept(self, runner: HttpRunner) -> None:
        async with agent_that(saying("200 OK", b"\x01" * (BODY_BYTES - 1))) as agent:
            result = await run(runner, agent.url())
        assert result["truncated"] is True
        assert len(json.dumps(result)) <= BODY_BYTES

    @pytest.mark.parametrize("is_chunked", [True, False])
    async def test_a_decompression_bomb_stays_small(self, runner: HttpRunner, is_chunked: bool) -> None:
        bomb = gzip.compress(b"\0" * 30_000_000)
        head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
        if is_chunked:
            pieces = [head + b"Transfer-Encoding: chunked\r\n\r\n"]
            pieces += [b"%x\r\n%s\r\n" % (len(bomb), bomb), b"0\r\n\r\n"]
        else:
            pieces = [head + b"Content-Length: %d\r\n\r\n" % len(bomb), bomb]
        tracemalloc.start()
        try:
            async with agent_that(sending(*pieces)) as agent:
                result = await run(runner, agent.url())
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 5_000_000
        assert result["truncated"] is True
        assert len(result["body"]) <= BODY_BYTES

    async def test_what_was_compressed_unasked_is_read_all_the_same(self, runner: HttpRunner) -> None:
        body = gzip.compress(b'{"a": 1}')
        headers = ("Content-Encoding: gzip", "Content-Type: application/json")
        async with agent_that(saying("200 OK", body, *headers)) as agent:
            assert (await run(runner, agent.url()))["body"] == {"a": 1}

    @pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "deflate", "gzip"])
    async def test_what_can_not_be_decompressed_is_left_out(self, runner: HttpRunner, encoding: str) -> None:
        async with agent_that(saying("200 OK", b"not compressed", f"Content-Encoding: {encoding}")) as agent:
            result = await run(runner, agent.url())
        assert result == {"status_code": 200, "headers": {"content-encoding": encoding}, "body": None}

    async def test_a_slow_drip_ends_with_the_attempt_and_nobody_else_waits_for_it(self) -> None:
        started = asyncio.Event()

        async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx")
            started.set()
            await reader.read()
            raise ConnectionError

        async with (
            agent_that(drip) as slow,
            agent_that(saying("200 OK")) as quick,
            runner_with(connections=2) as runner,
        ):
            attempt = asyncio.create_task(runner.run(assignment_for(slow.url())))
            await asyncio.wait_for(started.wait(), WAIT_S)
            for _ in range(3):
                assert (await run(runner, quick.url()))["status_code"] == 200
            attempt.cancel()
            with pytest.raises(asyncio.CancelledError):
                await attempt
            await asyncio.wait_for(slow.closed.wait(), WAIT_S)

    async def test_a_cancelled_attempt_gives_its_connection_back(self) -> None:
        arrived = asyncio.Semaphore(0)

        async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
            arrived.release()
            await reader.read()
            raise ConnectionError

        async with agent_that(silent) as agent, runner_with(connections=1) as runner:
            for _ in range(3):
                attempt = asyncio.create_task(runner.run(assignment_for(agent.url())))
                await asyncio.wait_for(arrived.acquire(), WAIT_S)
                attempt.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await attempt

    @pytest.mark.parametrize(
        "sent",
        [
            b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
            b"HTTP/1.1 200",
            b"",
            b"SSH-2.0-OpenSSH\r\n",
            b"HTTP/1.1 200 OK\r\n" + b"X: " + b"x" * 200_000,
        ],
    )
    async def test_a_connection_that_breaks_is_tried_again(self, runner: HttpRunner, sent: bytes) -> None:
        async def breaking(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(sent)
            await writer.drain()
            raise ConnectionResetError

        async with agent_that(breaking) as agent:
            failure = await failure_of(runner, agent.url())
        assert not failure.is_permanent

    async def test_a_reset_in_the_middle_of_a_body_is_tried_again(self, runner: HttpRunner) -> None:
        async def reset(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx")
            await writer.drain()
            writer.transport.abort()
            raise ConnectionResetError

        async with agent_that(reset) as agent:
            assert not (await failure_of(runner, agent.url())).is_permanent

    async def test_a_port_that_nobody_listens_on_is_tried_again(self, runner: HttpRunner) -> None:
        async with agent_that(saying("200 OK")) as agent:
            url = agent.url()
        failure = await failure_of(runner, url)
        assert not failure.is_permanent
        assert "can't be reached" in str(failure)

    async def test_what_does_not_speak_tls_is_tried_again(self, runner: HttpRunner) -> None:
        async def plain(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            failure = await failure_of(runner, f"https://127.0.0.1:{port}/")
        assert not failure.is_permanent


class TestTls:
    async def test_a_certificate_has_to_be_the_names_although_an_address_is_connected_to(
        self, certificate: Certificate
    ) -> None:
        async def inside(_host: str, _port: int) -> list[str]:
            return ["127.0.0.1"]

        async with (
            agent_that(saying("200 OK"), certificate.of_server()) as agent,
            runner_with(lookup=inside, ssl_context=certificate.trusted()) as runner,
        ):
            named = await run(runner, f"https://agent.example:{agent.port}/")
            failure = await failure_of(runner, f"https://other.example:{agent.port}/")
        assert named["status_code"] == 200
        assert not failure.is_permanent
        assert len(agent.requests) == 1

    async def test_a_certificate_that_nobody_trusts_sends_nothing(self, certificate: Certificate) -> None:
        async def inside(_host: str, _port: int) -> list[str]:
            return ["127.0.0.1"]

        async with (
            agent_that(saying("200 OK"), certificate.of_server()) as agent,
            runner_with(lookup=inside) as runner,
        ):
            failure = await failure_of(runner, f"https://agent.example:{agent.port}/")
        assert not failure.is_permanent
        assert "certificate" in str(failure).lower()
        assert agent.requests == []


class TestRedirects:
    async def test_a_redirect_is_not_followed_and_credentials_go_nowhere(self, runner: HttpRunner) -> None:
        async with agent_that(saying("200 OK")) as inside:
            redirect = saying("302 Found", b"", f"Location: {inside.url('/metadata')}")
            async with agent_that(redirect) as agent:
                failure = await failure_of(
                    runner, agent.url(), headers={"Authorization": "Bearer ${secret:token}"}
                )
        assert failure.is_permanent
        assert "redirects are not followed" in str(failure)
        assert inside.url("/metadata") in str(failure)
        assert failure.result["status_code"] == 302
        assert (len(agent.requests), inside.connections) == (1, 0)


class TestAddresses:
    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
    async def test_an_internal_address_is_refused_at_save_and_when_it_runs(self, host: str) -> None:
        async with agent_that(saying("200 OK")) as agent, runner_with(allow="") as runner:
            [problem] = runner.check(assignment_for(agent.url(host=host)).spec)
            failure = await failure_of(runner, agent.url(host=host))
        assert (problem.pointer, problem.code) == ("/target/url", "internal_address")
        assert failure.is_permanent
        assert "FOLIOT_HTTP_ALLOW" in str(failure)
        assert agent.connections == 0

    async def test_a_name_that_resolves_to_an_internal_address_is_refused(self) -> None:
        async def inside(_host: str, _port: int) -> list[str]:
            return ["8.8.8.8", "127.0.0.1"]

        async with agent_that(saying("200 OK")) as agent, runner_with(allow="", lookup=inside) as runner:
            assert runner.check(assignment_for(agent.url(host="agent.example")).spec) == []
            failure = await failure_of(runner, agent.url(host="agent.example"))
        assert failure.is_permanent
        assert agent.connections == 0

    async def test_a_name_that_changes_its_answer_is_asked_once_and_held_to_it(self) -> None:
        """127.0.0.1 plays the public address here: it is allowed, 127.0.0.2 is not."""
        asked: list[str] = []

        async def rebinding(host: str, _port: int) -> list[str]:
            asked.append(host)
            return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

        async with (
            agent_that(saying("200 OK", b"", "Connection: close")) as agent,
            runner_with(allow="127.0.0.1", lookup=rebinding) as runner,
        ):
            url = agent.url(host="agent.example")
            assert (await run(runner, url))["status_code"] == 200
            assert asked == ["agent.example"]
            failure = await failure_of(runner, url)
        assert failure.is_permanent
        assert asked == ["agent.example"] * 2
        assert agent.requests[0].headers["host"] == f"agent.example:{agent.port}"
        assert agent.connections == 1

    async def test_a_host_that_is_refused_as_written_is_not_even_looked_up(self) -> None:
        async def public(_host: str, _port: int) -> list[str]:
            raise AssertionError("looked up")

        async with runner_with(allow="", lookup=public) as runner:
            failure = await failure_of(runner, "http://metadata.google.internal/")
        assert failure.is_permanent

    async def test_an_allowed_name_may_lead_inside(self) -> None:
        async def inside(_host: str, _port: int) -> list[str]:
            return ["127.0.0.1"]

        async with (
            agent_that(saying("200 OK")) as agent,
            runner_with(allow="agent.internal", lookup=inside) as runner,
        ):
            assert (await run(runner, agent.url(host="Agent.Internal")))["status_code"] == 200
            assert (await failure_of(runner, agent.url(host="other.example"))).is_permanent

    async def test_the_next_address_is_tried_when_one_does_not_answer(self) -> None:
        async def both(_host: str, _port: int) -> list[str]:
            return ["127.0.0.2", "127.0.0.1"]

        async with agent_that(saying("200 OK")) as agent, runner_with(lookup=both) as runner:
            assert (await run(runner, agent.url(host="agent.example")))["status_code"] == 200

    @pytest.mark.parametrize("error", [OSError("no such name"), UnicodeError("label too long")])
    async def test_a_name_that_can_not_be_resolved_is_tried_again(self, error: Exception) -> None:
        async def failing(_host: str, _port: int) -> list[str]:
            raise error

        async with runner_with(lookup=failing) as runner:
            failure = await failure_of(runner, "http://agent.example/")
        assert not failure.is_permanent
        assert "agent.example can't be resolved" in str(failure)

    async def test_proxies_of_the_environment_are_not_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async with agent_that(saying("200 OK")) as proxy, agent_that(saying("200 OK")) as agent:
            for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
                monkeypatch.setenv(name, proxy.url(""))
            async with runner_with() as runner:
                await run(runner, agent.url())
        assert (proxy.connections, agent.connections) == (0, 1)


class TestSecrets:
    async def test_a_secret_arrives_and_is_hidden_wherever_it_comes_back(
        self, runner: HttpRunner, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        echo = json.dumps({"you said": SECRET, SECRET: [f"x{SECRET}x"]}).encode()
        headers = ("Content-Type: application/json", f"Location: /{SECRET}", f"X-Request-Id: {SECRET}")
        async with agent_that(saying("500 Oops", echo, *headers)) as agent:
            failure = await failure_of(
                runner,
                agent.url("/${secret:token}?t=${secret:token}"),
                headers={"Authorization": "Bearer ${secret:token}"},
                body={"deep": ["${secret:token}", "$${secret:token}"]},
            )
        [request] = agent.requests
        assert request.line == "POST /s3cret/v%C3%A4l%20ue?t=s3cret/v%C3%A4l%20ue HTTP/1.1"
        assert request.headers["authorization"] == f"Bearer {SECRET}"
        assert json.loads(request.body) == {"deep": [SECRET, "${secret:token}"]}
        assert failure.result["body"] == {"you said": "***", "***": ["x***x"]}
        kept = json.dumps(failure.result, ensure_ascii=False) + str(failure) + caplog.text
        assert "s3cret" not in kept

    async def test_a_secret_that_was_cut_in_half_is_hidden_too(self, runner: HttpRunner) -> None:
        echo = b"x" * (BODY_BYTES - 8) + SECRET.encode()
        async with agent_that(saying("200 OK", echo)) as agent:
            result = await run(runner, agent.url(), headers={"A": "${secret:token}"})
        assert "s3cret" not in result["body"]

    async def test_a_redirect_that_repeats_a_secret_does_not_show_it(self, runner: HttpRunner) -> None:
        async with agent_that(saying("302 Found", b"", f"Location: /x?{SECRET}")) as agent:
            failure = await failure_of(runner, agent.url("/${secret:token}"))
        assert "s3cret" not in str(failure) + str(failure.result)

    async def test_a_missing_secret_ends_the_execution_and_is_named(self, runner: HttpRunner) -> None:
        async with agent_that(saying("200 OK")) as agent:
            failure = await failure_of(runner, agent.url(), headers={"A": "${secret:absent}"})
        assert failure.is_permanent
        assert '"absent"' in str(failure)
        assert agent.connections == 0

    async def test_a_secret_can_not_begin_another_header(self, runner: HttpRunner) -> None:
        async with agent_that(saying("200 OK")) as agent:
            failure = await failure_of(runner, agent.url(), headers={"A": "${secret:broken}"})
        assert failure.is_permanent
        assert "X-Evil" not in str(failure)
        assert agent.connections == 0

    async def test_a_secret_can_not_change_where_a_url_leads(self, runner: HttpRunner) -> None:
        async with agent_that(saying("200 OK")) as agent:
            await run(runner, agent.url("/${secret:host}"))
        assert agent.requests[0].line == "POST /%40evil.example/ HTTP/1.1"

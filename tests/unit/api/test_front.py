"""What every request passes before the application sees it, and every answer on its way out."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from foliot.api.http import error_responses
from foliot.api.http.http_server import listen, serving, url_of
from foliot.api.http.middleware import API_POLICY, BodyLimit, Overload, UnhandledErrors, add_front
from foliot.model.instance_events import RequestAnswered

LIMIT = 1000
MAX_UNDER_WAY = 2


class Heard(list[tuple[Exception, str]]):
    """What was told of unhandled exceptions."""

    def __call__(self, error: Exception, request_id: str) -> None:
        self.append((error, request_id))


@pytest.fixture
def heard() -> Heard:
    return Heard()


class Doors:
    """Requests that stay under way until they are let out."""

    def __init__(self) -> None:
        self.inside = 0
        self.changed = asyncio.Condition()
        self.open = asyncio.Event()

    async def pass_through(self) -> None:
        async with self.changed:
            self.inside += 1
            self.changed.notify_all()
        await self.open.wait()

    async def entered(self, count: int) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: self.inside >= count)


@pytest.fixture
def answers() -> list[RequestAnswered]:
    return []


@pytest.fixture
def doors() -> Doors:
    return Doors()


@pytest.fixture
def app(heard: Heard, answers: list[RequestAnswered], doors: Doors) -> FastAPI:
    made = FastAPI()
    error_responses.install(made)
    add_front(made, heard, answers.append, body_limit=LIMIT, max_under_way=MAX_UNDER_WAY)

    @made.get("/api/v1/me")
    async def me(request: Request) -> dict[str, str]:
        return {"request_id": error_responses.request_id_of(request)}

    @made.get("/api/v1/cached")
    async def cached() -> JSONResponse:
        return JSONResponse({}, headers={"Cache-Control": "private, max-age=60"})

    @made.get("/page")
    async def page() -> HTMLResponse:
        return HTMLResponse("<p>", headers={"Content-Security-Policy": "default-src 'self'"})

    @made.get("/bare-page")
    async def bare_page() -> HTMLResponse:
        return HTMLResponse("<p>")

    @made.get("/api/v1/broken")
    async def broken() -> None:
        raise RuntimeError("the password is swordfish")

    @made.get("/api/v1/breaking")
    async def breaking() -> StreamingResponse:
        async def part() -> AsyncIterator[str]:
            yield "first"
            raise RuntimeError("half way")

        return StreamingResponse(part())

    @made.get("/api/v1/slow")
    async def slow() -> str:
        await doors.pass_through()
        return "done"

    @made.get("/healthz")
    async def healthz() -> str:
        return "ok"

    @made.get("/api/v1/stream")
    async def stream() -> StreamingResponse:
        async def events() -> AsyncIterator[str]:
            yield "data: 1\n\n"
            await doors.pass_through()

        return StreamingResponse(events(), media_type="text/event-stream")

    @made.post("/api/v1/echo")
    async def echo(document: dict[str, Any]) -> dict[str, Any]:
        return document

    return made


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://foliot") as opened:
        yield opened


# --- request ids ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["a", "Az09._-", "x" * 64])
async def test_a_clients_request_id_is_taken_over_and_said_back(
    client: httpx2.AsyncClient, given: str
) -> None:
    answer = await client.get("/api/v1/me", headers={"X-Request-ID": given})
    assert (answer.headers["x-request-id"], answer.json()["request_id"]) == (given, given)


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a/b", "a;b", "ü"])
async def test_an_id_that_could_be_anything_is_replaced(client: httpx2.AsyncClient, given: str) -> None:
    answer = await client.get("/api/v1/me", headers={b"X-Request-ID": given.encode("latin-1")})
    made = answer.headers["x-request-id"]
    assert re.fullmatch("[0-9a-f]{16}", made)
    assert answer.json()["request_id"] == made


async def test_each_request_gets_an_id_of_its_own(client: httpx2.AsyncClient) -> None:
    made = [(await client.get("/api/v1/me")).headers["x-request-id"] for _ in range(2)]
    assert made[0] != made[1]


# --- headers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "status"), [("/api/v1/me", 200), ("/api/v1/nothing", 404), ("/api/v1/broken", 500)]
)
async def test_every_answer_of_the_api_says_what_browsers_may_do_with_it(
    client: httpx2.AsyncClient, path: str, status: int
) -> None:
    answer = await client.get(path)
    assert answer.status_code == status
    assert {
        name: answer.headers.get(name)
        for name in (
            "x-content-type-options",
            "x-frame-options",
            "referrer-policy",
            "cross-origin-resource-policy",
            "content-security-policy",
            "cache-control",
        )
    } == {
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "content-security-policy": API_POLICY,
        "cache-control": "no-store",
    }


async def test_a_page_keeps_its_own_policy_and_tells_its_own_site_where_it_came_from(
    client: httpx2.AsyncClient,
) -> None:
    answer = await client.get("/page")
    assert answer.headers.get_list("content-security-policy") == ["default-src 'self'"]
    assert answer.headers["referrer-policy"] == "same-origin"
    assert "cache-control" not in answer.headers


async def test_a_page_without_a_policy_may_load_nothing(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/bare-page")).headers["content-security-policy"] == API_POLICY


async def test_an_answer_that_may_be_cached_says_so_itself(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/api/v1/cached")
    assert answer.headers.get_list("cache-control") == ["private, max-age=60"]


# --- exceptions ----------------------------------------------------------------------------------------


async def test_an_unhandled_exception_is_a_500_without_details_and_told_once(
    client: httpx2.AsyncClient, heard: Heard
) -> None:
    answer = await client.get("/api/v1/broken", headers={"X-Request-ID": "mine"})
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "swordfish" not in answer.text
    assert (answer.json()["code"], answer.json()["request_id"]) == ("internal", "mine")
    [(error, request_id)] = heard
    assert (str(error), request_id) == ("the password is swordfish", "mine")


async def test_an_answer_that_breaks_half_way_is_not_taken_for_a_whole_one(
    app: FastAPI, heard: Heard
) -> None:
    async with _served(app) as url, httpx2.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx2.RemoteProtocolError):
            await client.get(f"{url}/api/v1/breaking")
    assert [str(error) for error, _ in heard] == ["half way"]


async def test_an_answer_that_has_begun_is_not_begun_anew(heard: Heard) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("half way")

    sent = Sent()
    await UnhandledErrors(app, heard)(_scope("/"), _never, sent)
    assert [message["type"] for message in sent] == ["http.response.start"]
    assert len(heard) == 1


async def test_a_client_that_has_gone_is_no_error(heard: Heard) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    sent = Sent()
    await UnhandledErrors(app, heard)(_scope("/"), gone, sent)
    assert (sent, heard) == ([], [])


# --- overload ------------------------------------------------------------------------------------------


@pytest.fixture
def begin(client: httpx2.AsyncClient) -> Iterator[Callable[[str], asyncio.Task[httpx2.Response]]]:
    tasks: list[asyncio.Task[httpx2.Response]] = []

    def begin_one(path: str) -> asyncio.Task[httpx2.Response]:
        tasks.append(asyncio.create_task(client.get(path)))
        return tasks[-1]

    yield begin_one
    for task in tasks:
        task.cancel()


Begin = Callable[[str], asyncio.Task[httpx2.Response]]


async def test_beyond_the_most_requests_the_next_is_refused_at_once(
    client: httpx2.AsyncClient, doors: Doors, begin: Begin
) -> None:
    under_way = [begin("/api/v1/slow") for _ in range(MAX_UNDER_WAY)]
    await doors.entered(MAX_UNDER_WAY)
    answer = await client.get("/api/v1/me")
    assert (answer.status_code, answer.json()["code"]) == (503, "overloaded")
    assert answer.headers["retry-after"] == "1"
    assert answer.headers["content-type"] == "application/problem+json"
    assert "x-request-id" in answer.headers
    doors.open.set()
    assert [(await task).status_code for task in under_way] == [200] * MAX_UNDER_WAY
    assert (await client.get("/api/v1/me")).status_code == 200


async def test_probes_are_answered_under_any_load(
    client: httpx2.AsyncClient, doors: Doors, begin: Begin
) -> None:
    for _ in range(MAX_UNDER_WAY):
        begin("/api/v1/slow")
    await doors.entered(MAX_UNDER_WAY)
    assert (await client.get("/healthz")).status_code == 200


async def test_streams_of_events_do_not_keep_requests_out(
    client: httpx2.AsyncClient, doors: Doors, begin: Begin
) -> None:
    for count in range(1, MAX_UNDER_WAY + 2):
        begin("/api/v1/stream")
        await doors.entered(count)
    assert (await client.get("/api/v1/me")).status_code == 200
    # What is let in is counted again as if there were no streams.
    for _ in range(MAX_UNDER_WAY):
        begin("/api/v1/slow")
    await doors.entered(2 * MAX_UNDER_WAY + 1)
    assert (await client.get("/api/v1/me")).status_code == 503


async def test_a_stream_that_ends_is_not_taken_off_twice(doors: Doors) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await doors.pass_through()

    overload = Overload(app, limit=1)
    streams = [asyncio.ensure_future(overload(_scope("/"), _never, _ignore)) for _ in range(3)]
    await doors.entered(3)
    doors.open.set()
    await asyncio.gather(*streams)
    assert overload.under_way == 0


async def test_what_fails_or_is_cancelled_is_no_longer_under_way(doors: Doors) -> None:
    async def fail_or_wait(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/fail":
            raise RuntimeError
        await doors.pass_through()

    overload = Overload(fail_or_wait, limit=2)
    with pytest.raises(RuntimeError):
        await overload(_scope("/fail"), _never, _ignore)
    waiting = asyncio.ensure_future(overload(_scope("/wait"), _never, _ignore))
    await doors.entered(1)
    assert overload.under_way == 1
    waiting.cancel()
    await asyncio.wait({waiting})
    assert overload.under_way == 0


# --- bodies --------------------------------------------------------------------------------------------


async def test_a_body_up_to_the_limit_reaches_the_application(client: httpx2.AsyncClient) -> None:
    body = b'{"a": "' + b"x" * (LIMIT - 9) + b'"}'
    assert len(body) == LIMIT
    answer = await client.post("/api/v1/echo", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200
    assert len(answer.json()["a"]) == LIMIT - 9


async def test_a_body_announced_too_large_is_refused_before_any_of_it_is_taken() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("the application must not see it")

    scope = _scope("/", headers=[(b"content-length", str(LIMIT + 1).encode())])
    sent = Sent()
    await BodyLimit(app, limit=LIMIT)(scope, _never, sent)
    assert sent.status == 413


async def test_a_body_without_a_length_is_refused_as_soon_as_it_is_too_large(
    client: httpx2.AsyncClient,
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(LIMIT // 100):
            yield b" " * 100
        yield b"1"

    answer = await client.post("/api/v1/echo", content=chunks(), headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert answer.headers["content-type"] == "application/problem+json"
    assert "x-request-id" in answer.headers


async def test_the_application_sees_no_more_of_a_body_that_was_refused() -> None:
    seen: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend([await receive() for _ in range(4)])
        await JSONResponse({"all": "well"})(scope, receive, send)

    sent = Sent()
    await BodyLimit(app, limit=LIMIT)(_scope("/"), _chunks(LIMIT, 1, 1), sent)
    assert [len(message.get("body", b"")) for message in seen] == [LIMIT, 0, 0, 0]
    assert [message["type"] for message in seen[1:]] == ["http.disconnect"] * 3
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent.status == 413


async def test_a_body_that_drips_in_is_given_up() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["type"] == "http.disconnect"

    sent = Sent()
    await BodyLimit(app, limit=LIMIT, seconds=0)(_scope("/"), _never, sent)
    assert sent.status == 408


async def test_a_client_may_be_watched_for_longer_than_its_body_may_take() -> None:
    """Streams wait for the end of the connection by the same means."""
    is_gone = asyncio.Event()
    messages = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Message:
        if (message := next(messages, None)) is not None:
            return message
        await is_gone.wait()
        return {"type": "http.disconnect"}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        watching = asyncio.ensure_future(receive())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not watching.done()
        is_gone.set()
        assert (await watching)["type"] == "http.disconnect"

    sent = Sent()
    await BodyLimit(app, limit=LIMIT, seconds=0)(_scope("/"), receive, sent)
    assert sent == []


@pytest.mark.parametrize("length", [b"-1", b"1e3", b"\xb2", b"9" * 5000, b""])
async def test_a_length_that_is_none_breaks_nothing(length: bytes) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await JSONResponse({})(scope, receive, send)

    sent = Sent()
    await BodyLimit(app, limit=LIMIT)(_scope("/", headers=[(b"content-length", length)]), _never, sent)
    assert sent.status == (413 if length.startswith(b"9") else 200)


async def test_a_real_client_is_told_while_it_still_sends_and_can_not_go_on_with_the_connection(
    app: FastAPI,
) -> None:
    async with _served(app) as url:
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST /api/v1/echo HTTP/1.1\r\nHost: foliot\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        # The last chunk never comes.
        writer.write(b"400\r\n" + b" " * 0x400 + b"\r\n")
        told = await reader.read()
        writer.close()
    assert told.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in told
    assert b'"code":"too_large"' in told
    assert told.count(b"HTTP/1.1") == 1


# --- what the tests speak ASGI with --------------------------------------------------------------------


class Sent(list[Message]):
    async def __call__(self, message: Message) -> None:
        self.append(message)

    @property
    def status(self) -> int:
        status: int = self[0]["status"]
        return status


def _scope(path: str, headers: list[tuple[bytes, bytes]] | None = None) -> Scope:
    return {"type": "http", "method": "POST", "path": path, "headers": headers or []}


async def _never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


async def _ignore(message: Message) -> None:
    """Nobody listens."""


def _chunks(*sizes: int) -> Receive:
    messages = iter([{"type": "http.request", "body": b" " * size, "more_body": True} for size in sizes])

    async def receive() -> Message:
        return next(messages)

    return receive


@asynccontextmanager
async def _served(app: FastAPI) -> AsyncIterator[str]:
    listener = listen("127.0.0.1", 0)
    async with serving(app, listener):
        yield url_of(listener)


# --- what is told of answers ---------------------------------------------------------------------------


async def test_every_answer_is_told_of_with_how_long_it_took(
    client: httpx2.AsyncClient, answers: list[RequestAnswered]
) -> None:
    await client.get("/api/v1/me", headers={"X-Request-ID": "mine"})
    await client.get("/no/such/page")
    await client.post("/api/v1/echo", content=b"x" * (LIMIT + 1))
    assert [(each.method, each.path, each.status_code) for each in answers] == [
        ("GET", "/api/v1/me", 200),
        ("GET", "/no/such/page", 404),
        ("POST", "/api/v1/echo", 413),
    ]
    assert answers[0].request_id == "mine"
    assert all(each.duration_s >= 0 for each in answers)

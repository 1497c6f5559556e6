"""The stream over a real server, on both databases: what happens is heard by those who may hear it."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest
from fastapi import FastAPI, Request, Response
from sqlalchemy import insert

from foliot.access.principal import CredentialKind, Principal, Role
from foliot.api import change_feed as feed_module
from foliot.api.change_feed import MAX_KEPT, MAX_SENT, POLL_S, ChangeSource, Feed
from foliot.api.http import error_responses
from foliot.api.http.http_server import listen, serving, url_of
from foliot.api.routes import stream as stream_module
from foliot.api.routes.stream import stream_routes
from foliot.db.dialect import Pool
from foliot.db.hints import Hint, LocalHints
from foliot.db.tables.access import host_t
from foliot.instance.store import SqlStore
from foliot.model.attempt import Settlement
from foliot.model.event import Observers
from foliot.model.execution import Status, TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.schedule import Schedule
from foliot.planning.change import create, pause
from foliot.queries.changes import ChangeBatch, ChangeFeed, Mark, ScheduleChange
from foliot.service import Loop
from foliot.timing.clock import Clock, SystemClock, VirtualClock
from tests.engine import AUTHOR, spec, until

LATER = {"kind": "interval", "seconds": 3600}
HOST = "X-Host"
NOW = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass
class Served:
    """A stream that is served, without the gate: a header says whose request it is."""

    feed: Feed
    hints: LocalHints
    url: str
    revoked: set[UUID] = field(default_factory=set)

    @asynccontextmanager
    async def stream(
        self, host_id: UUID = DEFAULT_HOST_ID, *, last_event_id: str | None = None, **parameters: Any
    ) -> AsyncIterator["Heard"]:
        headers = {HOST: str(host_id)} | ({"Last-Event-ID": last_event_id} if last_event_id else {})
        async with (
            httpx2.AsyncClient(base_url=self.url, timeout=30) as client,
            client.stream("GET", "/api/v1/stream", headers=headers, params=parameters) as response,
        ):
            yield Heard(response)

    async def get(self, **parameters: Any) -> httpx2.Response:
        """For a request that is refused."""
        async with httpx2.AsyncClient(base_url=self.url, timeout=30) as client:
            headers = {HOST: str(DEFAULT_HOST_ID)}
            return await client.get("/api/v1/stream", headers=headers, params=parameters)


class Heard:
    """What a client has heard."""

    def __init__(self, response: httpx2.Response) -> None:
        assert response.status_code == 200
        self.headers = response.headers
        self.last_event_id = ""
        self._lines = response.aiter_lines()

    async def next(self) -> dict[str, Any]:
        """The next event, as a browser would give it."""
        fields: dict[str, Any] = {}
        async with asyncio.timeout(30):
            async for line in self._lines:
                name, _, value = line.partition(": ")
                if name == "id":
                    self.last_event_id = value
                if line:
                    fields[name] = value
                elif "data" in fields:
                    return {**fields, "data": json.loads(fields["data"])}
                else:
                    fields = {}
        raise EOFError

    async def begin(self) -> None:
        """Wait until there is an id to come back with."""
        async with asyncio.timeout(30):
            while not self.last_event_id:
                line = await anext(self._lines)
                if line.startswith("id: "):
                    self.last_event_id = line.removeprefix("id: ")

    async def end(self) -> None:
        """Wait until the server has ended the stream."""
        async with asyncio.timeout(30):
            async for _line in self._lines:
                pass

    async def until(self, status: str) -> list[str]:
        """The statuses of executions up to this one."""
        found: list[str] = []
        while status not in found:
            found.append((await self.next())["data"]["status"])
        return found


@asynccontextmanager
async def served(
    source: ChangeSource,
    *,
    clock: Clock | None = None,
    is_stepped: bool = True,
    listener: socket.socket | None = None,
) -> AsyncIterator[Served]:
    clock, hints = clock or SystemClock(), LocalHints()
    feed = Feed(source, clock, hints)
    listener = listener or listen("127.0.0.1", 0)
    told = Served(feed, hints, url_of(listener))

    async def is_still_valid(request: Request) -> bool:
        return request.state.principal.host_id not in told.revoked

    app = FastAPI()
    error_responses.install(app)
    app.include_router(stream_routes(feed, clock, is_still_valid))

    @app.middleware("http")
    async def admit(request: Request, handle: Any) -> Response:
        request.state.principal = Principal(
            credential="key:1",
            kind=CredentialKind.KEY,
            name="test",
            role=Role.VIEWER,
            host_id=UUID(request.headers[HOST]),
        )
        answer: Response = await handle(request)
        return answer

    loop = Loop(feed, Observers())
    stepping = asyncio.create_task(loop.run()) if is_stepped else None
    async with serving(app, listener):
        try:
            yield told
        finally:
            feed.close()
            loop.stop()
            if stepping is not None:
                await stepping


@pytest.fixture
async def api(store: SqlStore) -> AsyncIterator[Served]:
    async with served(ChangeFeed(store.database)) as told:
        yield told


@pytest.fixture
async def other_host(store: SqlStore) -> UUID:
    host_id = uuid4()
    values = {"host_id": host_id, "host_name": "other", "created_ts": await store.now()}
    await store.database.write(Pool.API, lambda connection: connection.execute(insert(host_t).values(values)))
    return host_id


async def add(store: SqlStore, name: str, host_id: UUID = DEFAULT_HOST_ID) -> Schedule:
    return await store.schedules.create(
        lambda now: create(spec(name, LATER), host_id=host_id, now=now, author=AUTHOR), AUTHOR
    )


async def trigger(store: SqlStore, schedule: Schedule) -> UUID:
    return await store.schedules.trigger(schedule.schedule_id, by=TriggeredBy.API, author=AUTHOR)


async def run(store: SqlStore, host_id: UUID = DEFAULT_HOST_ID) -> None:
    [claim] = await store.work.claim("worker", [(host_id, "default")], limit=1, lease_s=60)
    await store.work.settle("worker", [Settlement(claim, Status.SUCCESS, Status.SUCCESS)])


# --- hearing -------------------------------------------------------------------------------------------


async def test_a_client_hears_of_schedules_and_of_executions_from_beginning_to_end(
    store: SqlStore, api: Served
) -> None:
    async with api.stream(kinds="schedule,execution") as heard:
        assert heard.headers["content-type"].startswith("text/event-stream")
        assert heard.headers["cache-control"] == "no-store"
        await heard.begin()
        schedule = await add(store, "report")
        api.hints.send(Hint.SCHEDULES, (schedule.schedule_id,))
        created = await heard.next()
        assert (created["event"], created["data"]["change"]) == ("schedule", "created")
        execution_id = await trigger(store, schedule)
        api.hints.send(Hint.READY)
        pending = (await heard.next())["data"]
        assert (pending["execution_id"], pending["status"]) == (str(execution_id), "pending")
        assert (pending["schedule_name"], pending["attempt"]) == ("report", 0)
        await run(store)
        api.hints.send(Hint.ENDED)
        assert (await heard.until("success"))[-1] == "success"


async def test_a_client_hears_without_a_hint_as_well(store: SqlStore, api: Served) -> None:
    schedule = await add(store, "report")
    async with api.stream(kinds="execution") as heard:
        await heard.begin()
        await trigger(store, schedule)
        await heard.until("pending")
        await run(store)
        await heard.until("success")


async def test_what_happens_as_soon_as_a_stream_is_open_is_heard(store: SqlStore, api: Served) -> None:
    schedule = await add(store, "report")
    async with api.stream(kinds="execution") as heard:
        await trigger(store, schedule)
        api.hints.send(Hint.READY)
        assert await heard.until("pending") == ["pending"]


async def test_clients_hear_the_figures(store: SqlStore, api: Served) -> None:
    await trigger(store, await add(store, "report"))
    async with api.stream(kinds="status") as heard:
        event = await heard.next()
        assert event["data"]["counts"] == {"pending": 1, "retrying": 0, "running": 0}


async def test_foreign_hosts_hear_nothing(store: SqlStore, api: Served, other_host: UUID) -> None:
    async with api.stream(kinds="schedule,execution") as ours, api.stream(other_host) as theirs:
        await ours.begin()
        await theirs.begin()
        await trigger(store, await add(store, "ours"))
        api.hints.send(Hint.READY)
        await ours.next()
        await ours.until("pending")
        await add(store, "theirs", other_host)
        api.hints.send(Hint.SCHEDULES)
        heard = await theirs.next()
        while heard["event"] == "status":
            assert heard["data"]["counts"]["pending"] == 0
            heard = await theirs.next()
        assert heard["data"]["name"] == "theirs"
        # Nor do they when they come back with an id from before it all.
    async with api.stream(other_host, last_event_id=first_id(theirs), kinds="schedule,execution") as again:
        assert (await again.next())["data"]["name"] == "theirs"


def first_id(heard: Heard) -> str:
    return f"{heard.last_event_id.split('-')[0]}-0"


async def test_a_client_hears_of_the_schedule_it_asked_for(store: SqlStore, api: Served) -> None:
    first, second, third = [await add(store, name) for name in ("one", "two", "three")]
    wanted = [str(first.schedule_id), str(third.schedule_id)]
    async with api.stream(schedule_id=wanted, kinds="schedule") as heard:
        for schedule in (second, first, third):
            await store.schedules.change(
                schedule.schedule_id, lambda known, now: pause(known, now=now, author=AUTHOR), AUTHOR
            )
        api.hints.send(Hint.SCHEDULES)
        assert [(await heard.next())["data"]["name"] for _ in range(2)] == ["one", "three"]


# --- coming back ---------------------------------------------------------------------------------------


async def test_who_comes_back_hears_what_it_has_missed(store: SqlStore, api: Served) -> None:
    async with api.stream(kinds="schedule") as heard:
        await heard.begin()
        await add(store, "one")
        api.hints.send(Hint.SCHEDULES)
        assert (await heard.next())["data"]["name"] == "one"
    await until(lambda: not api.feed.listeners)
    await add(store, "two")
    await add(store, "three")
    api.hints.send(Hint.SCHEDULES)
    async with api.stream(kinds="schedule", last_event_id=heard.last_event_id) as again:
        assert [(await again.next())["data"]["name"] for _ in range(2)] == ["two", "three"]


async def test_who_heard_nothing_yet_can_come_back_as_well(store: SqlStore, api: Served) -> None:
    async with api.stream(kinds="schedule") as heard:
        await heard.begin()
    await add(store, "one")
    api.hints.send(Hint.SCHEDULES)
    async with api.stream(kinds="schedule", last_event_id=heard.last_event_id) as again:
        assert (await again.next())["data"]["name"] == "one"


async def test_who_comes_back_to_another_process_is_told_to_read_again(store: SqlStore, api: Served) -> None:
    async with api.stream() as heard:
        await heard.begin()
    async with (
        served(ChangeFeed(store.database)) as other,
        other.stream(last_event_id=heard.last_event_id) as again,
    ):
        event = await again.next()
        assert (event["event"], event["data"]) == ("reset", {"reason": "unknown_event_id"})


# --- the ends of streams -------------------------------------------------------------------------------


async def test_a_stream_ends_with_its_credential(
    store: SqlStore, api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "CHECK_EVERY_S", 0.01)
    async with api.stream() as heard:
        await heard.begin()
        api.revoked.add(DEFAULT_HOST_ID)
        await heard.end()
    await until(lambda: not api.feed.listeners)


async def test_a_client_that_goes_away_gives_its_place_back(
    store: SqlStore, api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "MAX_LISTENERS", 1)
    async with api.stream() as heard:
        await heard.begin()
        refused = await api.get()
        assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
        assert int(refused.headers["retry-after"]) >= 1
    await until(lambda: not api.feed.listeners)
    async with api.stream() as heard:
        await heard.begin()


async def test_a_server_that_stops_ends_its_streams_at_once(store: SqlStore) -> None:
    async with served(ChangeFeed(store.database)) as api:
        streaming = api.stream()
        heard = await streaming.__aenter__()
        await heard.begin()
    await heard.end()
    await streaming.__aexit__(None, None, None)


async def test_a_stream_that_can_not_begin_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "BEGINNING_LIMIT_S", 0.01)
    async with served(Flood(), is_stepped=False) as api:
        refused = await api.get()
        assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
        assert api.feed.listeners == 0


# --- parameters ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [{"kinds": "execution,fire"}, {"kinds": ""}, {"schedule_id": "x"}, {"schedule_id": ["x", "y"]}],
)
async def test_parameters_that_mean_nothing_are_refused(parameters: dict[str, Any]) -> None:
    async with served(Flood()) as api:
        refused = await api.get(**parameters)
        assert refused.status_code == 422
        [name] = parameters
        assert refused.json()["errors"][0]["pointer"].startswith(f"/{name}")


async def test_the_stream_is_described_with_an_example_of_each_kind() -> None:
    app = FastAPI()

    async def always(_request: Request) -> bool:
        return True

    app.include_router(stream_routes(Feed(Flood(), SystemClock(), LocalHints()), SystemClock(), always))
    operation = app.openapi()["paths"]["/api/v1/stream"]["get"]
    content = operation["responses"]["200"]["content"]
    assert list(content) == ["text/event-stream"]
    examples = content["text/event-stream"]["examples"]
    assert set(examples) == {"schedule", "execution", "status", "reset"}
    for kind, example in examples.items():
        assert f"event: {kind}\n" in example["value"]
        assert f"| `{kind}` |" in operation["description"]


# --- a client that does not read -----------------------------------------------------------------------


class Flood:
    """A source that has as many changes in every look as can be told one by one."""

    def __init__(self) -> None:
        self.version = 0

    async def begin(self) -> ChangeBatch:
        return ChangeBatch(Mark(NOW), (), ())

    async def read_changes(self, mark: Mark, followed: Collection[UUID]) -> ChangeBatch:
        self.version += 1
        changes = [
            ScheduleChange(DEFAULT_HOST_ID, UUID(int=number), "x" * 126, "edited", self.version)
            for number in range(MAX_SENT)
        ]
        return ChangeBatch(mark, changes, ())

    async def leaders(self) -> tuple[str, ...]:
        return ()


class Reluctant:
    """A client with next to no buffers, so that what it does not read stays with the server."""

    def __init__(self, url: str) -> None:
        self._address = ("127.0.0.1", int(url.rsplit(":", 1)[1]))
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.setblocking(False)

    async def ask(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_connect(self._socket, self._address)
        request = f"GET /api/v1/stream HTTP/1.1\r\nHost: test\r\n{HOST}: {DEFAULT_HOST_ID}\r\n\r\n"
        await loop.sock_sendall(self._socket, request.encode())

    async def read_until(self, wanted: str) -> str:
        text = ""
        async with asyncio.timeout(30):
            while wanted not in text:
                text += (await asyncio.get_running_loop().sock_recv(self._socket, 65536)).decode()
        return text

    def close(self) -> None:
        self._socket.close()


async def test_a_client_that_does_not_read_is_told_to_read_again_and_goes_on() -> None:
    clock, source = VirtualClock(NOW), Flood()
    listener = listen("127.0.0.1", 0)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with closing(Reluctant(url_of(listener))) as client:
        async with served(source, clock=clock, is_stepped=False, listener=listener) as api:

            async def look() -> None:
                clock.advance(POLL_S)
                await api.feed.step()

            await client.ask()
            await until(lambda: api.feed.listeners == 1)
            await look()
            await client.read_until("heartbeat")
            await look()
            await client.read_until('"aggregate_version":1}')
            for _ in range(2 * MAX_KEPT // MAX_SENT):
                await look()
            heard = await client.read_until("too_slow")
            assert f'"aggregate_version":{source.version}}}' not in heard
            await look()
            await client.read_until(f'"aggregate_version":{source.version}}}')

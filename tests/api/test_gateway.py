"""What the API does for all of its routes: rates, overload, ids of requests, and a database that is away."""

import asyncio
import contextlib
import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import httpx2
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.access.hosts import Hosts
from foliot.access.principal import Role
from foliot.api.http.http_server import listen
from foliot.api.http.middleware import MAX_UNDER_WAY
from foliot.db.dialect import Pool
from foliot.model.errors import SettingError
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.model.instance_events import RequestFailed
from foliot.planning.change import Author
from tests.api.answers import made, problem
from tests.api.hosts import unique, yearly
from tests.api.served import ALL, API_ALONE, OPERATOR_KEY, SCHEDULES, V1, WITHIN_S, Served, served
from tests.engine import seen
from tests.servers import PostgresServer
from tests.waiting import until

RATE, RATE_OF_STRANGERS = 30, 12


@pytest.fixture(scope="module")
def limited(module_url: str) -> Iterator[Served]:
    """With rates that a test can use up, in windows that it does not outlast."""
    rates: dict[str, Any] = {
        "rate_limit": f"{RATE}/hour",
        "rate_limit_anonymous": f"{RATE_OF_STRANGERS}/hour",
    }
    with served(module_url, roles=API_ALONE, **rates) as made_:
        yield made_


def new_key(server: Served, role: str = "viewer") -> str:
    """Made behind the API's back, so that nobody's rate pays for it."""
    keys = server.instance.store.keys
    return server.run(keys.create(DEFAULT_HOST_ID, unique("key"), Role(role), None, Author("test"))).text


def assert_is_rate_limited(answer: httpx2.Response) -> None:
    assert problem(answer, 429)["code"] == "rate_limited"
    assert 1 <= int(answer.headers["retry-after"]) <= 2 * 3600


# --- rates -----------------------------------------------------------------------------------------


def test_a_credential_has_its_rate_and_others_have_theirs(limited: Served) -> None:
    client, other = limited.by(new_key(limited)), limited.by(new_key(limited))
    answers = [client.get(f"{V1}/me") for _ in range(RATE + 5)]
    assert [answer.status_code for answer in answers] == [200] * RATE + [429] * 5
    assert_is_rate_limited(answers[-1])
    assert_is_rate_limited(client.get(SCHEDULES))
    assert other.get(f"{V1}/me").status_code == 200


def test_what_was_asked_wrongly_counts_as_well(limited: Served) -> None:
    client = limited.by(new_key(limited))
    for _ in range(RATE // 3):
        assert client.get(f"{SCHEDULES}?unknown=1").status_code == 400
        assert client.get(f"{SCHEDULES}/{uuid4()}").status_code == 404
        assert client.get(f"{SCHEDULES}?sort=size").status_code == 422
    assert_is_rate_limited(client.get(f"{V1}/me"))


def test_requests_without_a_credential_are_counted_by_address_and_keep_nobody_from_signing_in(
    limited: Served,
) -> None:
    stranger, known = limited.by(None), new_key(limited)
    answers = [stranger.get(SCHEDULES) for _ in range(RATE_OF_STRANGERS)]
    assert {answer.status_code for answer in answers} == {401}
    assert_is_rate_limited(stranger.get(SCHEDULES))
    assert_is_rate_limited(stranger.get(SCHEDULES, headers={"X-Forwarded-For": "198.51.100.9"}))
    assert stranger.get(f"{V1}/me").status_code == 401, "how the UI finds out that somebody has to sign in"
    with limited.client() as browser:
        assert browser.post("/sign-in", json={"key": known}).status_code == 204
        assert browser.get(f"{V1}/me").status_code == 200
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/"):
        assert stranger.get(path).status_code == 200, "machines ask these every few seconds"


def test_credentials_that_fail_are_counted_by_address_and_spoil_nothing_for_others(limited: Served) -> None:
    client, known = limited.by(new_key(limited)), new_key(limited)
    stranger = limited.by(None)
    answers = [limited.by("nonsense").get(f"{V1}/me") for _ in range(4)]
    answers += [limited.by(f"{known[:-1]}_").get(f"{V1}/me") for _ in range(3)]
    answers += [stranger.post("/sign-in", json={"key": "nonsense"}) for _ in range(2)]
    answers += [stranger.get("/sign-in?token=nonsense")]
    agent = f"{V1}/executions/{uuid4()}/complete"
    guess: dict[str, Any] = {"json": {"status": "success"}, "headers": {"X-Foliot-Token": "x"}}
    answers += [stranger.post(agent, **guess) for _ in range(2)]
    assert {answer.status_code for answer in answers} == {401, 404, 303}
    assert len(answers) == RATE_OF_STRANGERS
    assert_is_rate_limited(limited.by("nonsense").get(f"{V1}/me"))
    assert_is_rate_limited(stranger.post("/sign-in", json={"key": "nonsense"}))
    assert_is_rate_limited(stranger.get("/sign-in?token=nonsense"))
    assert_is_rate_limited(stranger.post(agent, **guess))
    assert client.get(f"{V1}/me").status_code == 200
    with limited.client() as browser:
        assert browser.post("/sign-in", json={"key": known}).status_code == 204
        assert browser.get(f"{V1}/me").status_code == 200


def test_a_key_signs_in_only_so_often(limited: Served) -> None:
    """Each sign-in writes rows, and a viewer must not be able to fill the database."""
    known, other = new_key(limited), new_key(limited)
    with limited.client() as browser:
        answers = [browser.post("/sign-in", json={"key": known}) for _ in range(RATE_OF_STRANGERS + 1)]
        assert {answer.status_code for answer in answers[:-1]} == {204}
        assert_is_rate_limited(answers[-1])
        assert browser.post("/sign-in", json={"key": other}).status_code == 204


def test_what_is_forbidden_counts_as_well(limited: Served) -> None:
    client = limited.by(new_key(limited))
    answers = [client.post(SCHEDULES, json=yearly()) for _ in range(RATE + 1)]
    assert {answer.status_code for answer in answers[:-1]} == {403}
    assert_is_rate_limited(answers[-1])


# --- who it is -------------------------------------------------------------------------------------


@pytest.mark.parametrize("forged", ["198.51.100.7", "x" * 300, "<script>", "127.0.0.1, 198.51.100.7"])
def test_an_address_is_what_it_is_and_not_what_a_header_says(operator: httpx2.Client, forged: str) -> None:
    headers = {"X-Forwarded-For": forged, "Forwarded": f"for={forged}", "X-Real-IP": forged}
    schedule_id = made(operator.post(SCHEDULES, json=yearly(), headers=headers))["schedule_id"]
    [record] = operator.get(f"{V1}/audit?resource_id={schedule_id}").json()["items"]
    assert record["address"] == "127.0.0.1"


def test_a_trusted_proxy_says_whom_it_speaks_for(module_url: str) -> None:
    with served(module_url, roles=API_ALONE, trusted_proxies="127.0.0.1") as server:
        operator = server.by(OPERATOR_KEY)
        for told, expected in (("198.51.100.7", "198.51.100.7"), ("x" * 300, "x" * 64)):
            headers = {"X-Forwarded-For": told}
            schedule_id = made(operator.post(SCHEDULES, json=yearly(), headers=headers))["schedule_id"]
            [record] = operator.get(f"{V1}/audit?resource_id={schedule_id}").json()["items"]
            assert record["address"] == expected


# --- ids of requests -------------------------------------------------------------------------------


def test_every_answer_has_an_id_and_a_client_may_choose_it(server: Served, operator: httpx2.Client) -> None:
    ids = {operator.get(path).headers["x-request-id"] for path in (f"{V1}/me", "/healthz", "/nowhere")}
    assert len(ids) == 3
    assert all(re.fullmatch(r"[0-9a-f]{16}", each) for each in ids)
    for chosen in ("a", "A.b_c-9", "x" * 64):
        answer = operator.get(f"{V1}/me", headers={"X-Request-ID": chosen})
        assert answer.headers["x-request-id"] == chosen
    refused = operator.get(f"{SCHEDULES}?unknown=1", headers={"X-Request-ID": "mine"})
    assert problem(refused, 400)["request_id"] == "mine"


@pytest.mark.parametrize("hostile", ["", "x" * 65, "a b", "<script>", "a;b", "ü", "../x", "${x}", "a\tb"])
def test_an_id_that_could_do_harm_is_replaced(operator: httpx2.Client, hostile: str) -> None:
    answer = operator.get(f"{V1}/me", headers={b"X-Request-ID": hostile.encode()})
    assert re.fullmatch(r"[0-9a-f]{16}", answer.headers["x-request-id"])


def test_the_audit_says_by_which_request(operator: httpx2.Client) -> None:
    chosen = unique("request")
    document = made(operator.post(SCHEDULES, json=yearly(), headers={"X-Request-ID": chosen}))
    path = f"{V1}/audit?resource_id={document['schedule_id']}"
    assert [each["request_id"] for each in operator.get(path).json()["items"]] == [chosen]


# --- overload --------------------------------------------------------------------------------------


class Locked:
    """The database, held by somebody who is in no hurry."""

    def __init__(self, server: Served) -> None:
        self._server = server

    async def _hold(self, begun: threading.Event) -> None:
        database = self._server.instance.store.database
        self._release = asyncio.Event()

        async def work(connection: AsyncConnection) -> None:
            if database.dialect.name == "postgresql":
                await connection.execute(text("LOCK TABLE audit_t IN ACCESS EXCLUSIVE MODE"))
            begun.set()
            while not self._release.is_set():
                # Who says nothing for ten seconds would lose it.
                await connection.execute(text("SELECT 1"))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._release.wait(), 1)

        await database.write(Pool.WORK, work)

    def __enter__(self) -> None:
        begun = threading.Event()
        self._held = self._server.begin(self._hold(begun))
        assert begun.wait(WITHIN_S)

    def __exit__(self, *_: object) -> None:
        async def release() -> None:
            self._release.set()

        self._server.run(release())
        self._held.result(WITHIN_S)


def test_beyond_so_many_requests_under_way_others_are_asked_to_come_back(
    server: Served, operator: httpx2.Client
) -> None:
    parts = urlsplit(server.url)
    request = (
        f"POST {V1}/queues/{unique('queue')}/pause HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"Authorization: Bearer {OPERATOR_KEY}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    ).encode()
    with ExitStack() as stack:
        with Locked(server):
            asking = [
                stack.enter_context(socket.create_connection((parts.hostname, parts.port)))
                for _ in range(MAX_UNDER_WAY)
            ]
            for each in asking:
                each.sendall(request)
            until(lambda: operator.get(f"{V1}/me").status_code == 503)
            answer = operator.get(f"{V1}/me")
            assert problem(answer, 503)["code"] == "overloaded"
            assert int(answer.headers["retry-after"]) >= 1
            assert operator.get("/healthz").status_code == 200
        lines = [each.makefile("rb").readline() for each in asking]
    # On a slow machine some have waited for the lock for longer than a request may.
    assert b"HTTP/1.1 200 OK\r\n" in lines, "who was let in is served"
    assert {*lines} <= {b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 503 Service Unavailable\r\n"}
    assert operator.get(f"{V1}/me").status_code == 200


@pytest.mark.parametrize("path", [f"{V1}/executions/{UUID(int=7)}/complete", "/sign-in"])
def test_strangers_who_send_slowly_keep_nobody_else_out(
    server: Served, operator: httpx2.Client, path: str
) -> None:
    parts = urlsplit(server.url)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nX-Foliot-Token: x\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    ).encode()
    with ExitStack() as stack:
        for _ in range(MAX_UNDER_WAY + 20):
            slow = stack.enter_context(socket.create_connection((parts.hostname, parts.port)))
            slow.sendall(head)
        for _ in range(20):  # by the last of these all of those have come in
            assert operator.get(f"{V1}/me").status_code == 200
    assert server.bugs == []


def test_a_client_that_goes_in_the_middle_leaves_nothing_behind(
    server: Served, operator: httpx2.Client
) -> None:
    parts, name = urlsplit(server.url), unique("gone")
    body = json.dumps(yearly(name)).encode()
    for cut in (1, len(body) // 2, len(body) - 1):
        head = (
            f"POST {SCHEDULES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {OPERATOR_KEY}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        with socket.create_connection((parts.hostname, parts.port)) as connection:
            connection.sendall(head + body[:cut])
    assert operator.get(SCHEDULES, params={"name": name}).json()["items"] == []
    assert server.bugs == []


# --- starting and stopping -------------------------------------------------------------------------


def test_while_it_starts_and_stops_it_is_alive_and_asks_to_come_back(module_url: str) -> None:
    with served(module_url, roles=API_ALONE, is_started=False) as server:
        operator = server.by(OPERATOR_KEY)

        def assert_asks_to_come_back() -> None:
            for answer in (operator.get(f"{V1}/me"), operator.post(SCHEDULES, json=yearly())):
                assert problem(answer, 503)["code"] == "overloaded"
                assert int(answer.headers["retry-after"]) >= 1
            assert operator.get("/healthz").status_code == 200
            assert operator.get("/readyz").status_code == 503

        assert_asks_to_come_back()
        server.start()
        assert operator.get(f"{V1}/me").status_code == 200
        assert operator.get("/readyz").status_code == 200
        server.stop()
        assert_asks_to_come_back()


def test_a_stream_ends_when_the_instance_stops(module_url: str) -> None:
    with (
        served(module_url, roles=API_ALONE) as server,
        server.client(OPERATOR_KEY) as client,
        client.stream("GET", f"{V1}/stream") as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines).startswith("retry:")
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        for _ in lines:
            pass
        stopping.join()


def test_without_a_key_that_anybody_could_use_it_does_not_start(sqlite_url: str) -> None:
    with served(sqlite_url, roles=API_ALONE, is_started=False, admin_key=None) as server:
        with pytest.raises(SettingError, match="FOLIOT_ADMIN_KEY"):
            server.start()
        assert server.by(None).get("/readyz").status_code == 503
    with served(sqlite_url, roles=API_ALONE) as server:
        key = new_key(server)
    with served(sqlite_url, roles=API_ALONE, admin_key=None) as server:
        assert server.by(key).get(f"{V1}/me").status_code == 200
        assert server.by(OPERATOR_KEY).get(f"{V1}/me").status_code == 401


# --- the database ----------------------------------------------------------------------------------


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """One that a test may stop."""
    server = PostgresServer()
    try:
        yield server
    finally:
        server.remove()


def test_while_the_database_is_away_everything_says_so_and_goes_on_by_itself_afterwards(
    own_postgres: PostgresServer,
) -> None:
    with served(own_postgres.url("postgres"), roles=ALL) as server:
        operator = server.by(OPERATOR_KEY)
        key = made(operator.post(f"{V1}/keys", json={"name": "k", "role": "admin"}))["key"]
        document = made(operator.post(SCHEDULES, json=yearly()))
        path = f"{SCHEDULES}/{document['schedule_id']}"
        kept: dict[str, Any] = {"json": yearly(), "headers": {"Idempotency-Key": unique()}}
        own_postgres.stop()
        asks: list[tuple[str, str, dict[str, Any]]] = [
            ("GET", SCHEDULES, {}),
            ("GET", path, {}),
            ("GET", f"{V1}/status", {}),
            ("POST", SCHEDULES, {"json": yearly()}),
            ("POST", SCHEDULES, kept),
            ("PATCH", path, {"json": {"description": "x"}}),
            ("POST", f"{path}/trigger", {}),
            ("DELETE", path, {}),
            ("POST", "/sign-in", {"json": {"key": key}}),
        ]
        for client in (operator, server.by(key)):
            for method, where, options in asks:
                answer = client.request(method, where, **options)
                assert problem(answer, 503)["code"] == "database_unreachable"
                assert int(answer.headers["retry-after"]) >= 1
                assert str(own_postgres.port) not in answer.text, "where the database is stays inside"
        assert operator.get("/healthz").status_code == 200
        ready = operator.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (503, "not ready")
        assert str(own_postgres.port) not in ready.text
        own_postgres.start()
        until(lambda: server.by(key).get(path).status_code == 200)
        until(lambda: operator.get("/readyz").status_code == 200)
        assert operator.get(path).json() == document, "nothing that was refused was done"
        assert made(operator.post(SCHEDULES, **kept))["name"] == kept["json"]["name"]
        location = operator.post(f"{path}/trigger").headers["location"]
        until(lambda: operator.get(location).json()["status"] == "success")
        assert server.bugs == []


async def _break(*_: object, **__: object) -> None:
    raise RuntimeError("a defect")


def test_a_defect_is_a_500_without_details_and_is_told_of_with_the_id_of_its_request(
    server: Served, operator: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hosts, "page", _break)
    answer = operator.get(f"{V1}/hosts")
    assert "a defect" not in answer.text
    request_id = problem(answer, 500)["request_id"]
    told = [each for each in seen(server.recorder, RequestFailed) if each.request_id == request_id]
    assert [str(each.error) for each in told] == ["a defect"]
    server.recorder.events.remove(told[0])  # everything else that is there would be one


def test_answers_are_sent_at_once() -> None:
    """Without this the body of every answer waits 40 ms for the client to have acknowledged its head."""
    with listen("127.0.0.1", 0) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

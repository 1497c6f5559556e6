"""Reading from a replica: a real primary, a real standby, and an instance with HTTP over both."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import pytest
from sqlalchemy import event, text

from foliot.api.replica_reads import AT_PRIMARY, AT_REPLICA, LISTED, LISTS, ReadServer, ways
from foliot.cli.process.checks import examine
from foliot.db.dialect import Pool
from foliot.db.migrate import upgrade
from foliot.db.replica import ReplicaState
from foliot.instance.runtime import Instance
from foliot.instance.spec import InstanceRole, InstanceSpec
from foliot.instance.store import open_store
from foliot.model.errors import DatabaseUnreachableError, SettingError
from foliot.model.event import BatchFired
from foliot.model.instance_events import ServiceFailed
from foliot.timing.clock import SystemClock
from tests.api.served import OPERATOR_KEY, SCHEDULES, V1, Served, served
from tests.engine import quick_settings, seen, until
from tests.replica import ReplicaServer
from tests.servers import PostgresServer

WITHIN_S = 60.0
DATABASE = "foliot"
STALE = "X-Foliot-Stale"


class Pair:
    """A primary and the replica that follows it."""

    def __init__(self) -> None:
        self.primary = PostgresServer()
        try:
            asyncio.run(_make(self.primary))
            self.replica = ReplicaServer(self.primary)
        except BaseException:
            self.primary.remove()
            raise

    def remove(self) -> None:
        self.replica.remove()
        self.primary.remove()


async def _make(server: PostgresServer) -> None:
    await _say(server, f'CREATE DATABASE "{DATABASE}"')
    store = open_store(server.url(DATABASE), clock=SystemClock())
    await upgrade(store.database)
    await store.close()


async def _say(server: PostgresServer, statement: str) -> None:
    connection = await asyncpg.connect(server.url("postgres"))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    made = Pair()
    try:
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module")
def server(pair: Pair) -> Iterator[Served]:
    """One for all tests: each leaves it with both servers there."""
    replica = pair.replica.url(DATABASE)
    with served(
        pair.primary.url(DATABASE), database_read_url=replica, database_read_lag_seconds=3600
    ) as made:
        yield made


@pytest.fixture(autouse=True)
async def _whole(server: Served) -> None:
    """Wait for what the test before has put right again."""
    await _stands(server, is_primary_away=False, is_replica_away=False)


async def _stands(server: Served, **wanted: bool) -> None:
    watch = server.instance.replica_watch
    assert watch is not None
    await until(
        lambda: all(getattr(watch.standing, name) is value for name, value in wanted.items()),
        within_s=WITHIN_S,
    )


def _define(name: str, **fields: Any) -> dict[str, Any]:
    never = {"kind": "cron", "expression": "0 0 29 2 *"}
    return {"name": name, "trigger": never, "target": {"kind": "function", "name": "noop"}, **fields}


def _names(server: Served) -> set[str]:
    answer = server.by(OPERATOR_KEY).get(SCHEDULES)
    assert answer.status_code == 200, answer.text
    return {each["name"] for each in answer.json()["items"]}


def _made(server: Served, name: str, **fields: Any) -> str:
    answer = server.by(OPERATOR_KEY).post(SCHEDULES, json=_define(name, **fields))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["schedule_id"])


@contextmanager
def _touched(server: Served) -> Iterator[set[str]]:
    """Which of the two servers the API reads from meanwhile."""
    database = server.instance.store.database
    assert database.replica is not None
    found: set[str] = set()
    listeners = []
    for name, each in (("primary", database), ("replica", database.replica)):
        engine = each.engine(Pool.API).sync_engine

        def note(*_: object, name: str = name) -> None:
            found.add(name)

        event.listen(engine, "before_cursor_execute", note)
        listeners.append((engine, note))
    try:
        yield found
    finally:
        for engine, note in listeners:
            event.remove(engine, "before_cursor_execute", note)


# --- both there -----------------------------------------------------------------------------------------


async def test_lists_lag_behind_with_the_replica_and_single_reads_do_not(pair: Pair, server: Served) -> None:
    by = server.by(OPERATOR_KEY)
    await pair.replica.pause_replay()
    try:
        schedule_id = _made(server, "just-made")
        assert by.get(f"{SCHEDULES}/{schedule_id}").json()["name"] == "just-made"
        assert "just-made" not in _names(server)
        # Lists of something that the replica has not heard of are no reason to say that it does not exist.
        assert by.get(f"{SCHEDULES}/{schedule_id}/executions").json()["items"] == []
        assert by.get(f"{SCHEDULES}/{schedule_id}/versions").json()["items"][0]["aggregate_version"] == 1

        def has_lag() -> bool:
            replica = by.get(f"{V1}/status").json()["replica"]
            return not replica["is_away"] and (replica["lag_seconds"] or 0) > 0

        await until(has_lag, within_s=WITHIN_S)
        watch = server.instance.replica_watch
        assert watch is not None
        watch.max_lag_s = 0
        assert "just-made" in _names(server), "one that is too far behind is passed over"
        watch.max_lag_s = 3600
    finally:
        await pair.replica.resume_replay()
    await until(lambda: "just-made" in _names(server), within_s=WITHIN_S)
    assert by.get(SCHEDULES).headers.get(STALE) is None


async def test_lists_and_history_are_read_from_the_replica_and_the_rest_from_the_primary(
    server: Served,
) -> None:
    schedule_id = _made(server, "looked-at")
    by = server.by(OPERATOR_KEY)
    execution_id = by.post(f"{SCHEDULES}/{schedule_id}/trigger").json()["execution_id"]
    paths = {path.format(schedule_id=schedule_id): {"replica"} for path in LISTS}
    of_one = (f"schedules/{schedule_id}", f"executions/{execution_id}", f"executions/{execution_id}/attempts")
    paths |= {f"{V1}/{path}": {"primary"} for path in (*of_one, "keys", "calendars", "secrets")}
    watch = server.instance.replica_watch
    assert watch is not None
    await until(lambda: schedule_id in by.get(SCHEDULES).text, within_s=WITHIN_S)
    for path, expected in paths.items():

        def is_as_expected(path: str = path, expected: set[str] = expected) -> bool:
            parameters = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
            with _touched(server) as found:
                answer = by.get(path, params=parameters if path.endswith("/timeline") else None)
            assert answer.status_code == 200, (path, answer.text)
            # What runs in the instance beside the request reads from the primary.
            return expected <= found and ("replica" in found) == ("replica" in expected)

        # Behind by a little for a moment, `status` comes from the primary.
        await until(is_as_expected, within_s=WITHIN_S)


async def test_a_credential_is_looked_up_at_the_primary(pair: Pair, server: Served) -> None:
    by = server.by(OPERATOR_KEY)
    await pair.replica.pause_replay()
    try:
        made = by.post(f"{V1}/keys", json={"name": "fresh", "role": "viewer"}).json()
        assert server.by(made["key"]).get(SCHEDULES).status_code == 200
        assert by.delete(f"{V1}/keys/{made['key_id']}").status_code == 204
        assert server.by(made["key"]).get(SCHEDULES).status_code == 401
    finally:
        await pair.replica.resume_replay()


# --- one of them away -----------------------------------------------------------------------------------


async def test_with_the_replica_away_everything_is_read_from_the_primary(pair: Pair, server: Served) -> None:
    schedule_id = _made(server, "while-the-replica-is-away")
    by = server.by(OPERATOR_KEY)
    pair.replica.stop(signal.SIGQUIT)
    try:
        # At once, and not only when somebody has noticed.
        for path in (SCHEDULES, f"{SCHEDULES}/{schedule_id}", f"{SCHEDULES}/{schedule_id}/executions"):
            answer = by.get(path)
            assert answer.status_code == 200, answer.text
            assert STALE not in answer.headers
        await _stands(server, is_replica_away=True)
        status = by.get(f"{V1}/status").json()
        assert (status["stale"], status["replica"]["is_away"]) == (False, True)
    finally:
        pair.replica.start()


async def test_with_the_primary_away_reading_goes_on_and_writing_is_told_to_come_back(
    pair: Pair, server: Served
) -> None:
    by = server.by(OPERATOR_KEY)
    schedule_id = _made(server, "while-the-primary-is-away", trigger={"kind": "interval", "seconds": 1})
    key = by.post(f"{V1}/keys", json={"name": "reader", "role": "viewer"}).json()["key"]
    await until(lambda: "while-the-primary-is-away" in _names(server), within_s=WITHIN_S)

    def is_known() -> bool:
        return any(each["name"] == "reader" for each in by.get(f"{V1}/keys").json()["items"])

    await until(is_known, within_s=WITHIN_S)
    pair.primary.stop(signal.SIGQUIT)
    try:
        # Whoever asks, whatever for, and from the first request on.
        for client in (by, server.by(key)):
            for path in (f"{SCHEDULES}/{schedule_id}", SCHEDULES, f"{V1}/status", f"{V1}/me"):
                answer = client.get(path)
                assert answer.status_code == 200, (path, answer.text)
                assert answer.headers[STALE] == "true", path
        assert by.get(f"{V1}/status").json()["stale"] is True
        for answer in (
            by.post(SCHEDULES, json=_define("too-late")),
            by.post(f"{SCHEDULES}/{schedule_id}/trigger"),
            by.delete(f"{SCHEDULES}/{schedule_id}"),
        ):
            assert (answer.status_code, answer.json()["code"]) == (503, "database_unreachable")
            assert int(answer.headers["Retry-After"]) >= 1
        ready = by.get("/readyz")
        assert ready.status_code == 200, ready.text
    finally:
        pair.primary.start()
    before = len(seen(server.recorder, BatchFired))
    await _stands(server, is_primary_away=False)
    answer = by.get(SCHEDULES)
    assert (answer.status_code, answer.headers.get(STALE)) == (200, None)
    await until(lambda: len(seen(server.recorder, BatchFired)) > before, within_s=WITHIN_S)
    assert by.post(f"{SCHEDULES}/{schedule_id}/trigger").status_code == 202
    assert by.delete(f"{SCHEDULES}/{schedule_id}").status_code == 204


# --- only on the primary --------------------------------------------------------------------------------


async def test_a_server_that_stops_taking_writes_makes_services_pause_until_it_takes_them_again(
    pair: Pair, server: Served
) -> None:
    by = server.by(OPERATOR_KEY)
    schedule_id = _made(server, "while-read-only", trigger={"kind": "interval", "seconds": 1})
    failed = len(seen(server.recorder, ServiceFailed))
    try:
        await _say(pair.primary, "ALTER SYSTEM SET default_transaction_read_only = on")
        await _say(pair.primary, "SELECT pg_reload_conf()")
        await until(lambda: len(seen(server.recorder, ServiceFailed)) > failed, within_s=WITHIN_S)

        def is_refused() -> bool:
            return by.post(f"{SCHEDULES}/{schedule_id}/trigger").status_code == 503

        await until(is_refused, within_s=WITHIN_S)
        assert by.get(f"{SCHEDULES}/{schedule_id}").status_code == 200
    finally:
        await _allow_writes(pair)
    before = len(seen(server.recorder, BatchFired))
    await until(lambda: len(seen(server.recorder, BatchFired)) > before, within_s=WITHIN_S)
    await until(lambda: by.delete(f"{SCHEDULES}/{schedule_id}").status_code == 204, within_s=WITHIN_S)


async def _allow_writes(pair: Pair) -> None:
    connection = await asyncpg.connect(pair.primary.url("postgres"))
    try:
        await connection.execute("SET default_transaction_read_only = off")
        await connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
        await connection.execute("SELECT pg_reload_conf()")
    finally:
        await connection.close()


async def test_a_connection_that_takes_no_writes_is_given_up(pair: Pair) -> None:
    store = open_store(pair.primary.url(DATABASE), clock=SystemClock(), pools={Pool.API: 1})
    try:
        async with store.database.read(Pool.API) as connection:
            await connection.execute(text("SET default_transaction_read_only = on"))
        with pytest.raises(DatabaseUnreachableError, match="read-only"):
            await upgrade(store.database)
        await upgrade(store.database)
    finally:
        await store.close()


@pytest.mark.parametrize(
    "roles", [{InstanceRole.SCHEDULER}, {InstanceRole.WORKER}, {InstanceRole.API}, set(InstanceRole)]
)
async def test_a_replica_is_refused_as_the_database(pair: Pair, roles: set[InstanceRole]) -> None:
    settings = quick_settings(pair.replica.url(DATABASE), admin_key=OPERATOR_KEY)
    instance = Instance(
        InstanceSpec(settings=settings, roles=frozenset(roles), upgrades_schema=True, isolates=False)
    )
    with pytest.raises(SettingError, match="is a replica: FOLIOT_DATABASE_URL must be the primary"):
        await instance.start()


async def test_doctor_tells_a_replica_and_a_database_that_takes_no_writes(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "reluctant"
    await _say(pair.primary, f'CREATE DATABASE "{name}"')
    await _say(pair.primary, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    for url, told in (
        (pair.replica.url(DATABASE), "is a replica"),
        (pair.primary.url(name), "takes no writes"),
    ):
        monkeypatch.setenv("FOLIOT_DATABASE_URL", url)
        [finding] = [each async for each in examine(SystemClock()) if each.check == "database"]
        assert (finding.level, told in finding.detail) == ("fail", True), finding


async def test_doctor_looks_at_the_replica(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLIOT_DATABASE_URL", pair.primary.url(DATABASE))
    for url, level, told in (
        (pair.replica.url(DATABASE), "ok", "is reachable"),
        (pair.primary.url(DATABASE), "warn", "is no streaming replica"),
        ("postgresql://foliot@127.0.0.1:1/foliot", "warn", "FOLIOT_DATABASE_READ_URL is right"),
    ):
        monkeypatch.setenv("FOLIOT_DATABASE_READ_URL", url)
        [finding] = [each async for each in examine(SystemClock()) if each.check == "replica"]
        assert (finding.level, told in finding.detail) == (level, True), finding


# --- choosing -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("standing", "is_list", "expected"),
    [
        (ReplicaState(), True, [AT_PRIMARY]),
        (ReplicaState(is_primary_away=True), True, [AT_PRIMARY]),
        (ReplicaState(False, False, 0.0), True, [LISTED, AT_PRIMARY, AT_REPLICA]),
        (ReplicaState(False, False, None), True, [LISTED, AT_PRIMARY, AT_REPLICA]),
        (ReplicaState(False, False, 5.1), True, [AT_PRIMARY, AT_REPLICA]),
        (ReplicaState(False, False, 0.0), False, [AT_PRIMARY, AT_REPLICA]),
        (ReplicaState(True, False, 90.0), True, [AT_REPLICA, AT_PRIMARY]),
        (ReplicaState(True, False, 90.0), False, [AT_REPLICA, AT_PRIMARY]),
    ],
)
def test_where_a_request_is_answered_from(
    standing: ReplicaState, is_list: bool, expected: list[ReadServer]
) -> None:
    assert list(ways(standing, 5.0, is_list=is_list)) == expected

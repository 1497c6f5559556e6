"""Everything behind a proxy that pools transactions, with hints off: no session is anybody's own."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import pytest
from sqlalchemy import text

from foliot.cli.process.checks import examine
from foliot.db.dialect import Pool
from foliot.instance.store import open_store
from foliot.model.execution import Status
from foliot.model.instance_events import ServiceFailed
from foliot.timing.clock import SystemClock
from tests.api.served import OPERATOR_KEY, SCHEDULES, V1, Served, served
from tests.conftest import OpenStore
from tests.engine import SCHEDULER, WORKER, add_all, all_schedules, every_second, running, seen, until
from tests.pgbouncer import PgBouncer
from tests.servers import PostgresServer

WITHIN_S = 60.0
PATIENT: dict[str, Any] = {"lease_ttl_seconds": 30}
"""Every error of a service is counted here, and none is to come from a machine that is slow."""
AT_ONCE = 8
"""Fewer than the API has connections: nobody is to be told that there is none."""


@pytest.fixture(scope="module")
def proxy(postgres_server: PostgresServer) -> Iterator[PgBouncer]:
    made = PgBouncer(postgres_server)
    try:
        yield made
    finally:
        made.remove()


@pytest.fixture
def proxied_url(proxy: PgBouncer, postgres_url: str) -> str:
    return proxy.url(urlsplit(postgres_url).path.removeprefix("/"))


async def test_schedules_fire_and_run_exactly_once_behind_the_proxy(
    proxied_url: str, postgres_url: str, open_test_store: OpenStore
) -> None:
    direct = await open_test_store(postgres_url)
    schedules = await add_all(direct, [every_second(f"each-{number}") for number in range(20)])
    async with (
        running(proxied_url, roles=SCHEDULER, hints="off", **PATIENT) as (_, first),
        running(proxied_url, roles=SCHEDULER, hints="off", **PATIENT) as (_, second),
        running(proxied_url, roles=WORKER, hints="off", **PATIENT) as (_, worker),
    ):

        async def have_run() -> bool:
            rows = [await direct.schedules.executions(each.schedule_id) for each in schedules]
            return all(sum(row.status is Status.SUCCESS for row in some) >= 3 for some in rows)

        await until(have_run, within_s=WITHIN_S, every_s=0.2)
    assert [
        each.error for recorder in (first, second, worker) for each in seen(recorder, ServiceFailed)
    ] == []
    for each in schedules:
        rows = sorted(await direct.schedules.executions(each.schedule_id), key=lambda row: row.fire_ts)
        for before, after in pairwise(rows):
            decided = after.fire_ts - timedelta(seconds=after.missed_count)
            assert decided - before.fire_ts == timedelta(seconds=1), (before, after)


def test_the_api_answers_many_at_once_behind_the_proxy(proxied_url: str) -> None:
    with served(proxied_url, hints="off", **PATIENT) as server:
        by = server.by(OPERATOR_KEY)
        made = [
            by.post(
                SCHEDULES,
                json={
                    "name": f"proxied-{number}",
                    "trigger": {"kind": "cron", "expression": "0 0 29 2 *"},
                    "target": {"kind": "function", "name": "noop"},
                },
            ).json()["schedule_id"]
            for number in range(10)
        ]
        server.run(_ask(server, made))
        assert by.post(f"{SCHEDULES}/{made[0]}/pause", json={"reason": "proxied"}).status_code == 200
        assert by.get(f"{SCHEDULES}/{made[0]}").json()["paused"] is True
        assert [each.error for each in seen(server.recorder, ServiceFailed)] == []


async def _ask(server: Served, schedule_ids: list[str]) -> None:
    """Different questions side by side: an answer to another's would be seen."""
    async with server.async_client(OPERATOR_KEY) as client:

        async def ask(number: int) -> None:
            schedule_id = schedule_ids[number % len(schedule_ids)]
            got = await client.get(f"{SCHEDULES}/{schedule_id}")
            assert (got.status_code, got.json()["schedule_id"]) == (200, schedule_id), got.text
            triggered = await client.post(f"{SCHEDULES}/{schedule_id}/trigger")
            assert triggered.status_code == 202, triggered.text
            for path in ("schedules", "executions", "status", "queues", "instances", "audit"):
                listed = await client.get(f"{V1}/{path}")
                assert listed.status_code == 200, (path, listed.text)

        for _ in range(3):
            await asyncio.gather(*[ask(number) for number in range(AT_ONCE)])


async def test_reading_side_by_side_never_gets_the_answer_to_anothers_question(proxied_url: str) -> None:
    store = open_store(proxied_url, clock=SystemClock(), uses_hints=False)

    async def ask(number: int) -> None:
        for _ in range(20):
            async with store.database.read(Pool.API) as connection:
                # The same parameters for all: only the text tells them apart.
                told = await connection.execute(text(f"SELECT CAST(:same AS int) + {number}"), {"same": 1})
                assert told.scalar_one() == number + 1

    try:
        await asyncio.gather(*[ask(number) for number in range(10)])
        assert await all_schedules(store) == []
    finally:
        await store.close()


async def test_doctor_finds_nothing_wrong_behind_the_proxy(
    proxied_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLIOT_DATABASE_URL", proxied_url)
    monkeypatch.setenv("FOLIOT_HINTS", "off")
    found = [each async for each in examine(SystemClock())]
    assert [each for each in found if each.level == "fail"] == []

"""Several processes on one machine share a SQLite file: they wait for each other, and nobody hears of it."""

import asyncio
from pathlib import Path

import httpx2
import pytest

from foliot.db.migrate import upgrade
from foliot.instance.store import open_store
from foliot.model.execution import Status
from foliot.timing.clock import SystemClock
from tests.cluster.processes import Nodes
from tests.cluster.scene import SECOND, WITHIN_S, told
from tests.engine import add_all, all_schedules, every_second, until
from tests.ledger import assert_exact
from tests.servers import free_port

pytestmark = pytest.mark.cluster

KEY = "the-operators-own-key-0123456789abcdef"
SCHEDULES = 5
CLIENTS, EACH = 8, 10


async def test_many_processes_write_to_one_file_and_no_lock_reaches_a_user(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'foliot.db'}"
    store = open_store(url, clock=SystemClock())
    await upgrade(store.database)
    policies = {"overlap": {"policy": "allow"}, "misfire": {"policy": "fire_all"}}
    target = {"kind": "function", "name": "note"}
    schedules = await add_all(
        store, [every_second(f"each-{number}", target=target, **policies) for number in range(SCHEDULES)]
    )
    port = free_port()
    quick = {"FOLIOT_POLL_SECONDS": "0.2", "FOLIOT_API_PORT": str(port), "FOLIOT_ADMIN_KEY": KEY}
    nodes = Nodes(url, tmp_path, FOLIOT_LEASE_TTL_SECONDS="10", FOLIOT_RATE_LIMIT="off", **quick)
    tasks = ("--tasks", "tests.cluster.tasks")
    try:
        roles = [("scheduler",), ("scheduler",), ("worker", *tasks), ("worker", *tasks), ("api", *tasks)]
        started = [nodes.start(*role) for role in roles]

        async with httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{port}/api/v1/",
            headers={"Authorization": f"Bearer {KEY}"},
            timeout=WITHIN_S,
            trust_env=False,
        ) as client:

            async def is_up() -> bool:
                try:
                    return (await client.get("schedules")).status_code == 200
                except httpx2.TransportError:
                    return False

            await until(is_up, within_s=WITHIN_S)

            async def write(name: str) -> None:
                for number in range(EACH):
                    document = {
                        "name": f"{name}-{number}",
                        "trigger": {"kind": "cron", "expression": "0 0 29 2 *"},
                        "target": {"kind": "http", "url": "https://agent.example/run"},
                    }
                    made = await client.post("schedules", json=document)
                    assert made.status_code == 201, made.text
                    paused = await client.post(f"schedules/{made.json()['schedule_id']}/pause", json={})
                    assert paused.status_code == 200, paused.text

            await asyncio.gather(*[write(f"client-{number}") for number in range(CLIENTS)])

        async def have_run() -> bool:
            rows = [await store.schedules.executions(each.schedule_id) for each in schedules]
            return all(sum(row.status is Status.SUCCESS for row in some) >= 5 for some in rows)

        await until(have_run, within_s=WITHIN_S)
        for node in started:
            assert node.stop() == 0, node.told()[-2000:]
            assert told(node, "service_failed") == []
            assert "locked" not in node.told()
        for each in schedules:
            assert each.next_fire_ts is not None
            assert_exact(
                await store.schedules.executions(each.schedule_id, limit=10_000), SECOND, each.next_fire_ts
            )
        assert len(await all_schedules(store)) == SCHEDULES + CLIENTS * EACH
    finally:
        nodes.end()
        await store.close()

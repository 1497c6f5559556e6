"""What agents do wrong is counted by their status code, wherever in an attempt it shows."""

import asyncio

from prometheus_client import CollectorRegistry

from foliot.instance.spec import InstanceRole
from foliot.model.event import AgentFailed
from foliot.model.execution import FINAL, TriggeredBy
from foliot.planning.change import Author
from foliot.telemetry.metrics import MetricsObserver
from tests.engine import add, running, seen, spec, until
from tests.servers import free_port

NEVER = {"kind": "cron", "expression": "0 0 29 2 *"}
ONCE = {"max_attempts": 1}


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """With the status that is asked for by the path, or never."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    status = head.split()[1].removeprefix("/")
    if status == "never":
        await reader.read()
    else:
        writer.write(f"HTTP/1.1 {status} Told\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
    writer.close()


async def test_errors_of_agents_are_counted_by_status_code(sqlite_url: str) -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    urls = {
        "200": f"http://127.0.0.1:{port}/200",
        "404": f"http://127.0.0.1:{port}/404",
        "503": f"http://127.0.0.1:{port}/503",
        "799": f"http://127.0.0.1:{port}/799",
        "none": f"http://127.0.0.1:{free_port()}/nobody",
        "timeout": f"http://127.0.0.1:{port}/never",
    }
    roles = frozenset({InstanceRole.SCHEDULER, InstanceRole.WORKER})
    async with server, running(sqlite_url, roles=roles, http_allow="127.0.0.0/8") as (instance, recorder):
        registry = CollectorRegistry()
        instance.observer.add(MetricsObserver(registry))
        execution_ids = []
        for name, url in urls.items():
            target = {"kind": "http", "method": "GET", "url": url}
            limit_s = 1 if name == "timeout" else 60
            schedule = await add(
                instance.store, spec(name, NEVER, target=target, retry=ONCE, timeout_seconds=limit_s)
            )
            execution_ids.append(
                await instance.store.schedules.trigger(
                    schedule.schedule_id, by=TriggeredBy.API, author=Author()
                )
            )

        async def have_ended() -> bool:
            rows = [await instance.store.executions.get(each) for each in execution_ids]
            return all(row.status in FINAL for row in rows)

        await until(have_ended)
        assert sorted(event.status_code for event in seen(recorder, AgentFailed)) == sorted(
            urls.keys() - {"200"}
        )
        counts = {
            code: registry.get_sample_value("foliot_agent_http_errors_total", {"status_code": code})
            for code in ("404", "503", "other", "none", "timeout", "200")
        }
        assert counts == {"404": 1, "503": 1, "other": 1, "none": 1, "timeout": 1, "200": None}

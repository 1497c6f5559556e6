"""`foliot api` in several processes that serve one address."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import psutil
import pytest

from foliot.store.migrate import upgrade
from foliot.store.sql import open_store
from foliot.timing.clock import SystemClock
from tests.api.waiting import until
from tests.cluster.processes import Node
from tests.exposition import read_exposition
from tests.servers import free_port

KEY = "a key for these processes, long enough"


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def api(tmp_path: Path, port: int) -> Iterator[Node]:
    url = f"sqlite:///{tmp_path / 'foliot.db'}"
    asyncio.run(_prepare(url))
    settings = {"FOLIOT_ADMIN_KEY": KEY, "FOLIOT_API_PORT": str(port), "FOLIOT_API_PROCESSES": "2"}
    node = Node("api", url, tmp_path, "api", **settings)
    try:
        until(lambda: len(serving(node, port)) == 2)
        yield node
    finally:
        node.stop()


async def _prepare(url: str) -> None:
    store = open_store(url, clock=SystemClock())
    await upgrade(store.database)
    await store.close()


def serving(node: Node, port: int) -> set[int]:
    """The processes that answer as ready; each is asked over a connection of its own, as chance has it."""
    if not is_ready(port):
        return set()
    return {each.pid for each in psutil.Process(node.pid).children()}


def is_ready(port: int) -> bool:
    with suppress(httpx2.HTTPError):
        return httpx2.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    return False


def answered(port: int) -> dict[str, float]:
    """How many requests each process has answered well, as one of them says."""
    page = httpx2.get(f"http://127.0.0.1:{port}/metrics").text
    samples = read_exposition(page)["foliot_api_requests_total"].samples
    return {process: count for (_method, process, code), count in samples.items() if code == "200"}


def test_all_of_them_answer_at_one_address(api: Node, port: int) -> None:
    bearer = {"Authorization": f"Bearer {KEY}"}
    for _ in range(20):
        assert httpx2.get(f"http://127.0.0.1:{port}/api/v1/me", headers=bearer).status_code == 200
    until(lambda: api.told().count('"instance_started"') == 2)


def test_whichever_answers_tells_the_metrics_of_all(api: Node, port: int) -> None:
    bearer = {"Authorization": f"Bearer {KEY}"}
    for _ in range(20):
        assert httpx2.get(f"http://127.0.0.1:{port}/api/v1/me", headers=bearer).status_code == 200
    # Whoever is asked knows of the others what is up to a second old.
    until(lambda: all(sum(answered(port).values()) >= 20 for _ in range(10)))
    assert all(set(answered(port)) == {"1", "2"} for _ in range(10))


def test_one_that_is_killed_is_started_again_and_the_others_go_on(api: Node, port: int) -> None:
    until(lambda: len(serving(api, port)) == 2)
    before = {each.pid for each in psutil.Process(api.pid).children()}
    # Only one that has lived for a while is taken for healthy.
    until(lambda: all(psutil.Process(pid).create_time() + 6 < time.time() for pid in before))
    killed = min(before)
    os.kill(killed, signal.SIGKILL)
    until(lambda: killed not in serving(api, port) and len(serving(api, port)) == 2)
    until(lambda: before - {killed} < serving(api, port))
    until(lambda: set(answered(port)) == {"1", "2"})


def test_asked_to_stop_all_of_them_stop(api: Node, port: int) -> None:
    processes = serving(api, port)
    assert api.stop() == 0
    assert not any(psutil.pid_exists(pid) for pid in processes)


def test_killed_it_leaves_none_of_them_behind(api: Node, port: int) -> None:
    processes = serving(api, port)
    api.kill()
    until(lambda: not any(psutil.pid_exists(pid) for pid in processes))


def test_what_keeps_them_from_starting_is_told_once_for_all(tmp_path: Path, port: int) -> None:
    url = f"sqlite:///{tmp_path / 'foliot.db'}"
    settings = {"FOLIOT_ADMIN_KEY": KEY, "FOLIOT_API_PORT": str(port), "FOLIOT_API_PROCESSES": "2"}
    node = Node("api", url, tmp_path, "api", **settings)
    assert node.ended() != 0
    assert "foliot db upgrade" in node.told()
    assert "Traceback" not in node.told()

"""The HTTP application and the server that carries it."""

import asyncio
import signal
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Counter

from foliot.api.access.gate import Gate
from foliot.api.app import make_app
from foliot.api.http.http_server import CannotListenError, listen, serving, url_of
from foliot.telemetry.health.metrics_page import MetricsPage


class _Probe:
    def __init__(self) -> None:
        self.found: list[str] = []

    async def problems(self) -> list[str]:
        return self.found


def make(probe: _Probe, registry: CollectorRegistry) -> FastAPI:
    nobody: Any = None  # probes are let through before anybody is asked
    gate = Gate(nobody, nobody, nobody, nobody, lambda: True)
    return make_app(
        probe.problems,
        MetricsPage(registry),
        gate,
        (),
        lambda _error, _request_id: None,
        lambda _answer: None,
    )


@pytest.fixture
def probe() -> _Probe:
    return _Probe()


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
async def client(probe: _Probe, registry: CollectorRegistry) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=make(probe, registry))
    async with httpx2.AsyncClient(transport=transport, base_url="http://foliot") as opened:
        yield opened


async def test_a_live_process_says_so_even_when_it_is_not_ready(
    client: httpx2.AsyncClient, probe: _Probe
) -> None:
    probe.found = ["the database can't be reached"]
    assert (await client.get("/healthz")).status_code == 200


async def test_a_ready_instance_answers_200(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "problems": []})


async def test_an_unready_instance_answers_503_and_says_why(
    client: httpx2.AsyncClient, probe: _Probe
) -> None:
    probe.found = ["the database can't be reached"]
    answer = await client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "not ready", "problems": ["the database can't be reached"]}


async def test_metrics_are_those_of_the_registry_it_was_given(
    client: httpx2.AsyncClient, registry: CollectorRegistry
) -> None:
    Counter("foliot_things", "Things", registry=registry).inc(3)
    answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert "foliot_things_total 3.0" in answer.text


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_whoever_wants_the_head_alone_gets_it(client: httpx2.AsyncClient, path: str) -> None:
    full, head = await client.get(path), await client.head(path)
    assert head.status_code == full.status_code == 200
    assert head.headers["content-type"] == full.headers["content-type"]


async def test_the_first_page_says_what_this_is(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text.startswith("Foliot ")


async def test_the_routes_are_described(client: httpx2.AsyncClient) -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    assert {"/healthz", "/readyz", "/metrics"} <= set(paths)


async def test_the_server_serves_for_as_long_as_its_context_lasts_and_leaves_signals_alone(
    probe: _Probe, registry: CollectorRegistry
) -> None:
    listener = listen("127.0.0.1", 0)
    url = url_of(listener)
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    async with serving(make(probe, registry), listener):
        async with httpx2.AsyncClient(trust_env=False) as client:
            assert (await client.get(f"{url}/healthz")).status_code == 200
        assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
    host, port = url.removeprefix("http://").split(":")
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(host, int(port))


def test_a_taken_port_is_refused_with_what_to_do() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListenError, match=rf"can't listen on 127\.0\.0\.1:{port}: address already"):
            listen("127.0.0.1", port)


def test_a_host_that_does_not_exist_is_refused() -> None:
    with pytest.raises(CannotListenError, match=r"can't listen on no\.such\.host\.invalid:8700"):
        listen("no.such.host.invalid", 8700)

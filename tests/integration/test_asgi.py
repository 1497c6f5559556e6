"""The API beside an application of the user's own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from foliot import Foliot, every
from foliot.access.hosts import Hosts

KEY = "a key of the operator, long enough for anybody"
BEARER = {"Authorization": f"Bearer {KEY}"}


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Foliot:
    monkeypatch.setenv("FOLIOT_ADMIN_KEY", KEY)
    made = Foliot(f"sqlite:///{tmp_path / 'foliot.db'}")

    @made.task
    async def clean() -> None:
        """Sweep."""

    made.schedule("sweep", clean, when=every(hours=1))
    return made


@asynccontextmanager
async def client(application: Any) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=application)
    async with httpx2.AsyncClient(transport=transport, base_url="http://foliot") as made:
        yield made


async def test_mounted_in_an_application_it_serves_what_its_lifespan_started(app: Foliot) -> None:
    api = FastAPI(lifespan=app.lifespan())
    api.mount("/foliot", app.asgi())
    async with api.router.lifespan_context(api), client(api) as http:
        assert (await http.get("/foliot/readyz")).json() == {"status": "ready", "problems": []}
        assert (await http.get("/foliot/api/v1/schedules")).status_code == 401
        found = (await http.get("/foliot/api/v1/schedules", headers=BEARER)).json()
        assert [each["name"] for each in found["items"]] == ["sweep"]


async def test_a_defect_is_in_the_log_of_the_application(
    app: Foliot, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(Hosts, "page", fail)
    api = FastAPI(lifespan=app.lifespan())
    api.mount("/foliot", app.asgi())
    async with api.router.lifespan_context(api), client(api) as http:
        answer = await http.get("/foliot/api/v1/hosts", headers=BEARER)
    [record] = [each for each in caplog.records if each.getMessage().startswith("request_failed ")]
    assert (record.name, record.levelname) == ("foliot", "ERROR")
    assert answer.json()["request_id"] in record.getMessage()
    assert record.getMessage().endswith("RuntimeError: a defect")


async def test_mounted_without_the_lifespan_it_says_what_is_missing(app: Foliot) -> None:
    api = FastAPI()
    api.mount("/foliot", app.asgi())
    async with client(api) as http:
        answer = await http.get("/foliot/api/v1/schedules", headers=BEARER)
    assert answer.status_code == 503
    assert "lifespan=app.lifespan()" in answer.json()["detail"]


async def test_by_itself_it_starts_and_stops_as_its_server_says(app: Foliot) -> None:
    asgi = app.asgi()
    said: list[str] = []
    asks = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> dict[str, str]:
        kind = next(asks)
        if kind == "lifespan.shutdown":
            async with client(asgi) as http:
                assert (await http.get("/api/v1/me", headers=BEARER)).json()["role"] == "admin"
        return {"type": kind}

    async def send(message: Any) -> None:
        said.append(message["type"])

    await asgi({"type": "lifespan"}, receive, send)
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_without_any_key_it_refuses_to_start(app: Foliot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FOLIOT_ADMIN_KEY")
    said: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        said.append(message)

    with pytest.raises(Exception, match="FOLIOT_ADMIN_KEY"):
        await app.asgi()({"type": "lifespan"}, receive, send)
    assert said[0]["type"] == "lifespan.startup.failed"
    assert "FOLIOT_ADMIN_KEY" in said[0]["message"]

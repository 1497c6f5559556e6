"""The application under a path: mounted, or behind a proxy that strips the path or passes it on."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from foliot import Foliot
from foliot.api import ui
from tests.unit.api.test_ui import build

KEY = "a key of the operator, long enough for anybody"
V1 = "/foliot/api/v1"


class Stripping:
    """A proxy that takes the path off before it passes a request on."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            assert scope["path"].startswith("/foliot")
            scope = {**scope, "path": scope["path"].removeprefix("/foliot") or "/"}
        await self._app(scope, receive, send)


@pytest.fixture
def page_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small build: a page as Vite writes it, and its files."""
    folder = tmp_path / "web_dist"
    build(folder)
    (folder / "mark.svg").write_text("<svg/>")
    (folder / "index.html").write_text(
        '<!doctype html><head><meta name="foliot-base" content="" /><link rel="icon" href="./mark.svg" />'
        '<script src="./theme.js"></script>'
        '<script type="module" src="./assets/index-BxEtMqfq.js"></script></head>'
    )
    monkeypatch.setattr(ui, "WEB_DIST", folder)
    monkeypatch.setattr(ui.ui_routes, "__defaults__", (folder,))
    return folder


@pytest.fixture(params=["mounted", "stripped", "passed on"])
async def http(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page_folder: Path
) -> AsyncIterator[httpx2.AsyncClient]:
    monkeypatch.setenv("FOLIOT_ADMIN_KEY", KEY)
    if request.param != "mounted":
        monkeypatch.setenv("FOLIOT_PUBLIC_URL", "https://jobs.example/foliot/")
    app = Foliot(f"sqlite:///{tmp_path / 'foliot.db'}")

    @app.task
    async def clean() -> None:
        """Sweep."""

    outer: Any = FastAPI(lifespan=app.lifespan())
    context = outer.router.lifespan_context(outer)
    served: Any = app.asgi()
    if request.param == "mounted":
        outer.mount("/foliot", served)
        served = outer
    elif request.param == "stripped":
        served = Stripping(served)
    headers = {"Authorization": f"Bearer {KEY}", "Host": "jobs.example"}
    async with (
        context,
        httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=served), base_url="https://jobs.example", headers=headers
        ) as made,
    ):
        yield made


def definition(**fields: Any) -> dict[str, Any]:
    return {
        "name": "yearly",
        "trigger": {"kind": "cron", "expression": "0 0 1 1 *"},
        "target": {"kind": "function", "name": "clean"},
        **fields,
    }


async def test_the_location_of_what_was_made_leads_to_it(http: httpx2.AsyncClient) -> None:
    answer = await http.post(f"{V1}/schedules", json=definition(), headers={"Idempotency-Key": "one"})
    assert answer.status_code == 201, answer.text
    location = answer.headers["location"]
    assert location.startswith(f"{V1}/schedules/")
    assert (await http.get(location)).json()["name"] == "yearly"
    again = await http.post(f"{V1}/schedules", json=definition(), headers={"Idempotency-Key": "one"})
    assert (again.headers["location"], again.headers["idempotency-replayed"]) == (location, "true")


async def test_answers_of_the_api_are_kept_by_no_cache(http: httpx2.AsyncClient) -> None:
    answer = await http.get(f"{V1}/schedules")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")


async def test_a_large_set_of_files_can_be_applied(http: httpx2.AsyncClient) -> None:
    many = [definition(name=f"s{number}", description="x" * 1_500) for number in range(900)]
    answer = await http.post(
        f"{V1}/schedules/apply", json={"schedules": many, "source": "x", "dry_run": True}
    )
    assert len(answer.request.content) > 1_400_000
    assert answer.status_code == 200, answer.text[:500]
    large = await http.post(f"{V1}/schedules", json=definition(description="x" * 1_400_000))
    assert large.status_code == 413, "only there"


async def test_a_method_that_is_not_allowed_is_answered_with_those_that_are(http: httpx2.AsyncClient) -> None:
    answer = await http.request("DELETE", f"{V1}/schedules")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")


@pytest.mark.parametrize("address", ["/foliot/", "/foliot/schedules", "/foliot/schedules/0199?tab=runs"])
async def test_every_file_that_the_page_names_loads(http: httpx2.AsyncClient, address: str) -> None:
    page = await http.get(address, headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert '<meta name="foliot-base" content="/foliot" />' in page.text
    files = re.findall(r'(?:src|href)="([^"]*)"', page.text)
    assert len(files) == 3
    for file in files:
        assert file.startswith("/foliot/")
        assert (await http.get(file)).status_code == 200, file
    headers = {"Accept": "text/html", "If-None-Match": page.headers["etag"]}
    assert (await http.get(address, headers=headers)).status_code == 304


async def test_an_address_of_the_api_that_is_not_there_is_no_page(http: httpx2.AsyncClient) -> None:
    answer = await http.get(f"{V1}/nothing", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_signing_in_leads_to_the_page(http: httpx2.AsyncClient) -> None:
    answer = await http.get("/foliot/sign-in", params={"token": "spent"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/foliot/?link=spent")


async def test_health_is_asked_under_the_path_too(http: httpx2.AsyncClient) -> None:
    assert (await http.get("/foliot/healthz")).json() == {"status": "ok"}
    assert (await http.get("/foliot/readyz")).json()["status"] == "ready"

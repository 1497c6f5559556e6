"""The web interface as it is served, and what its sources promise the server."""

import gzip
import json
import os
import re
import runpy
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from foliot.access.audit import Action
from foliot.api.http import error_responses
from foliot.api.http.middleware import add_front
from foliot.api.ui import POLICY, ui_routes

WEB = Path(__file__).parents[3] / "web"
PAGE = "<!doctype html><title>Foliot</title>"
SCRIPT = "console.log('built')"
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a build goes, and nothing is yet."""
    return tmp_path / "web_dist"


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[httpx2.AsyncClient]:
    app = FastAPI()
    error_responses.install(app)
    add_front(app, lambda _error, _request_id: None, lambda _answer: None)

    @app.get("/api/v1/things")
    async def things() -> list[str]:
        return ["a thing"]

    @app.post("/api/v1/things/count")
    async def count() -> int:
        return 1

    app.router.routes.extend(ui_routes(folder))
    transport = httpx2.ASGITransport(app=app)
    # Compression is asked for by name where it matters.
    headers = {"Accept-Encoding": "identity"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://foliot", headers=headers) as opened:
        yield opened


def build(folder: Path) -> None:
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "theme.js").write_text("")
    (folder / ".stamp").write_text("")
    (folder / "assets" / "index-BxEtMqfq.js").write_text(SCRIPT)
    (folder / "assets" / "index-BxEtMqfq.js.gz").write_bytes(gzip.compress(SCRIPT.encode()))
    (folder / "assets" / "letters-DC_KSUi6.woff2").write_bytes(b"letters")


def mark(folder: Path, text: str) -> None:
    folder.with_name("web_dist.building").write_text(text)


# --- the page ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/", "/schedules", "/schedules/0199", "/executions?status=failed", "/apiary"]
)
async def test_a_browser_gets_the_page_at_every_address_of_its_own(
    client: httpx2.AsyncClient, folder: Path, path: str
) -> None:
    build(folder)
    answer = await client.get(path, headers=HTML)
    assert (answer.status_code, answer.text) == (200, PAGE)
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/api", "/api/"])
async def test_an_address_of_the_api_that_does_not_exist_is_an_error_and_no_page(
    client: httpx2.AsyncClient, folder: Path, path: str
) -> None:
    build(folder)
    answer = await client.get(path, headers=HTML)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


async def test_routes_of_the_api_answer_as_before(client: httpx2.AsyncClient, folder: Path) -> None:
    build(folder)
    assert (await client.get("/api/v1/things", headers=HTML)).json() == ["a thing"]
    assert (await client.get("/api/v1/things/count", headers=HTML)).status_code == 405
    assert (await client.post("/api/v1/nothing", headers=HTML)).status_code == 404
    assert (await client.post("/schedules", headers=HTML)).status_code == 404


async def test_programs_get_a_short_text_at_the_root_and_nothing_elsewhere(
    client: httpx2.AsyncClient, folder: Path
) -> None:
    build(folder)
    answer = await client.get("/", headers={"Accept": "*/*"})
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text.startswith("Foliot ")
    assert (await client.get("/schedules", headers={"Accept": "*/*"})).status_code == 404


# --- its files --------------------------------------------------------------------------------------------


async def test_files_with_their_hash_in_their_name_are_kept_for_ever(
    client: httpx2.AsyncClient, folder: Path
) -> None:
    build(folder)
    answer = await client.get("/assets/index-BxEtMqfq.js")
    assert answer.text == SCRIPT
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert (await client.get("/theme.js")).headers["cache-control"] == "no-cache"


async def test_who_takes_compressed_files_gets_them(client: httpx2.AsyncClient, folder: Path) -> None:
    build(folder)
    compressed = await client.get("/assets/index-BxEtMqfq.js", headers={"Accept-Encoding": "gzip, br"})
    assert compressed.headers["content-encoding"] == "gzip"
    assert compressed.headers["content-type"].startswith("text/javascript")
    assert compressed.text == SCRIPT
    plain = await client.get("/assets/index-BxEtMqfq.js")
    assert "content-encoding" not in plain.headers
    assert {compressed.headers["vary"], plain.headers["vary"]} == {"Accept-Encoding"}


async def test_a_file_without_a_compressed_copy_is_served_as_it_is(
    client: httpx2.AsyncClient, folder: Path
) -> None:
    build(folder)
    answer = await client.get("/assets/letters-DC_KSUi6.woff2", headers={"Accept-Encoding": "gzip"})
    assert (answer.content, answer.headers["content-type"]) == (b"letters", "font/woff2")


@pytest.mark.parametrize(
    "path",
    [
        "/assets/gone-12345678.js",
        "/assets/../index.html",
        "/assets/..%2findex.html",
        "/assets/%2e%2e/index.html",
        "/assets/.stamp",
        "/.stamp",
        "/assets/index-BxEtMqfq.js.gz",
        "/assets/",
        "/mark.svg",
    ],
)
async def test_nothing_but_the_files_of_the_page_can_be_had(
    client: httpx2.AsyncClient, folder: Path, path: str
) -> None:
    build(folder)
    assert (await client.get(path)).status_code == 404


@pytest.mark.parametrize("path", ["/", "/schedules", "/assets/index-BxEtMqfq.js", "/theme.js"])
async def test_everything_comes_with_a_strict_policy(
    client: httpx2.AsyncClient, folder: Path, path: str
) -> None:
    build(folder)
    answer = await client.get(path, headers=HTML)
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_policy_allows_nothing_inline_and_nobody_else() -> None:
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    assert (
        rules["default-src"] == rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    )
    assert rules["frame-ancestors"] == rules["base-uri"] == rules["object-src"] == "'none'"
    assert not re.search(r"unsafe|https?:|\*", POLICY)


# --- without a build --------------------------------------------------------------------------------------


async def test_without_a_build_the_page_says_how_to_make_one(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/schedules", headers=HTML)
    assert "scripts/build-web" in answer.text
    assert "http-equiv" not in answer.text


async def test_while_somebody_builds_the_page_says_so_and_looks_again(
    client: httpx2.AsyncClient, folder: Path
) -> None:
    mark(folder, f"{os.getpid()}\n")
    answer = await client.get("/", headers=HTML)
    assert "is being built" in answer.text
    assert '<meta http-equiv="refresh"' in answer.text
    assert answer.headers["cache-control"] == "no-store"


def _number_of_an_ended_process() -> int:
    with subprocess.Popen(["true"]) as ended:
        return ended.pid


async def test_a_builder_that_died_is_not_waited_for(client: httpx2.AsyncClient, folder: Path) -> None:
    for text in (str(_number_of_an_ended_process()), "", "what", "-1", "0", "9" * 30):
        mark(folder, text)
        assert "is not built" in (await client.get("/", headers=HTML)).text


async def test_a_build_that_ends_while_the_server_runs_is_served_at_once(
    client: httpx2.AsyncClient, folder: Path
) -> None:
    assert "is not built" in (await client.get("/", headers=HTML)).text
    build(folder)
    assert (await client.get("/", headers=HTML)).text == PAGE


async def test_what_stands_in_for_the_page_keeps_to_the_policy(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/", headers=HTML)
    assert answer.headers["content-security-policy"] == POLICY
    assert not re.search(r"<script|<style|style=", answer.text)


# --- the sources ------------------------------------------------------------------------------------------


def test_the_types_of_the_page_are_made_from_what_the_server_says() -> None:
    """If not: `.venv/bin/python web/make_openapi.py`, and look at what `npm run check` says then."""
    made = runpy.run_path(str(WEB / "make_openapi.py"))["document"]()
    assert json.loads((WEB / "openapi.json").read_text(encoding="utf-8")) == json.loads(json.dumps(made))


def test_the_page_knows_all_that_the_audit_may_say() -> None:
    words = (WEB / "src/screens/access/audit-words.ts").read_text(encoding="utf-8")
    listed = re.search(r"ACTIONS = \[(.*?)\]", words, re.DOTALL)
    assert listed is not None
    assert set(re.findall(r'"([a-z_]+\.[a-z_]+)"', listed[1])) == {action.value for action in Action}


def test_the_page_has_nothing_inline() -> None:
    page = (WEB / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=", page) == []


def test_what_users_wrote_is_shown_as_text() -> None:
    sources = [*WEB.glob("src/**/*.ts"), *WEB.glob("src/**/*.tsx")]
    assert sources
    ways = re.compile(r"dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write")
    assert [file.name for file in sources if ways.search(file.read_text(encoding="utf-8"))] == []


def _locked() -> dict[str, Any]:
    lock: dict[str, Any] = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    packages: dict[str, Any] = lock["packages"]
    return packages


def test_the_lock_file_names_no_addresses() -> None:
    assert [name for name, package in _locked().items() if "resolved" in package] == []


@pytest.mark.parametrize(
    ("family", "platforms"),
    [
        ("@rolldown/binding-", ("linux-x64-gnu", "linux-arm64-gnu", "darwin-x64", "darwin-arm64")),
        ("@tailwindcss/oxide-", ("linux-x64-gnu", "linux-arm64-gnu", "darwin-x64", "darwin-arm64")),
        ("lightningcss-", ("linux-x64-gnu", "linux-arm64-gnu", "darwin-x64", "darwin-arm64")),
    ],
)
def test_the_lock_file_has_what_the_build_needs_on_every_platform(
    family: str, platforms: tuple[str, ...]
) -> None:
    found = {name.rpartition("node_modules/")[2] for name in _locked()}
    assert {f"{family}{platform}" for platform in platforms} <= found

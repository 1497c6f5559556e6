"""Foliot starts beside Kubernetes services called `foliot` and `foliot-…`, alone and in an application."""

import asyncio
import os
import sys
import urllib.request
from pathlib import Path

import pytest
from fastapi import FastAPI

from foliot import Foliot
from tests import forked_cli
from tests.servers import free_port
from tests.unit.test_settings import INJECTED

FOLIOT = str(Path(sys.executable).with_name("foliot"))


@pytest.fixture
def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")} | INJECTED


def test_commands_start(environment: dict[str, str], tmp_path: Path) -> None:
    for command in (["version"], ["db", "upgrade"], ["doctor", "--help"]):
        ended = forked_cli.run(*command, cwd=tmp_path, env=environment)
        assert ended.returncode == 0, ended.stderr


async def test_up_serves_at_the_port_of_its_option(environment: dict[str, str], tmp_path: Path) -> None:
    port = free_port()
    up = await asyncio.create_subprocess_exec(
        *(FOLIOT, "up", "--port", str(port)), cwd=tmp_path, env=environment, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert up.stderr is not None
        async with asyncio.timeout(60):
            heard = ""
            while f"http://127.0.0.1:{port}" not in heard:
                line = await up.stderr.readline()
                assert line, heard
                heard += line.decode()

        def ask() -> int:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=30) as answer:
                return int(answer.status)

        assert await asyncio.to_thread(ask) == 200
    finally:
        up.terminate()
        await up.communicate()


async def test_an_application_that_embeds_it_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in INJECTED.items():
        monkeypatch.setenv(name, value)
    app = Foliot(f"sqlite:///{tmp_path / 'foliot.db'}")
    api = FastAPI(lifespan=app.lifespan())
    async with api.router.lifespan_context(api), app.connect() as client:
        assert client is not None

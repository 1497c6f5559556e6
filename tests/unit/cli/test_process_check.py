"""What `foliot doctor` says of firing, and of the process that serves its metrics on this machine."""

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import UUID

import pytest
from tests.servers import free_port

from foliot.cli.process.checks import Level, check_overdue, check_process, examine_processes
from foliot.instance.settings import Settings
from foliot.queries.overview import NextFire, Overdue

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@contextmanager
def answering(status: int, content: bytes) -> Iterator[int]:
    """The port of a server that has one answer for all."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def test_nothing_overdue_is_well_and_what_is_overdue_is_named() -> None:
    assert check_overdue(Overdue(0, False, None), NOW, is_led=False).level is Level.OK
    due = NOW - timedelta(seconds=90)
    oldest = NextFire(UUID(int=1), "nightly", due, due)
    finding = check_overdue(Overdue(1000, True, oldest), NOW, is_led=True)
    assert finding.level is Level.FAIL
    assert check_overdue(Overdue(1, False, oldest), NOW, is_led=False).level is Level.WARN
    assert finding.detail == "at least 1000 overdue, nightly for 90 s"


@pytest.mark.parametrize(
    ("status", "document", "level", "part"),
    [
        (200, {"status": "ready", "problems": []}, Level.OK, "is ready"),
        (503, {"status": "not ready", "problems": ["it hangs"]}, Level.FAIL, "is not ready: it hangs"),
        (200, ["somebody else"], Level.WARN, "does not answer"),
        (404, "somebody else", Level.WARN, "does not answer"),
        (200, {"problems": "somebody else"}, Level.WARN, "does not answer"),
        (200, {"problems": ["somebody else"] * 100_000}, Level.WARN, "does not answer"),
    ],
)
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
async def test_a_process_is_asked_whether_it_is_ready(
    status: int, document: object, level: Level, part: str, host: str
) -> None:
    with answering(status, json.dumps(document).encode()) as port:
        finding = await check_process(host, port)
    assert (finding.check, finding.level) == ("process", level)
    assert f"http://127.0.0.1:{port}/readyz {part}" in finding.detail


async def test_a_process_that_is_not_there_is_a_warning() -> None:
    finding = await check_process("127.0.0.1", free_port())
    assert (finding.level, bool(finding.advice)) == (Level.WARN, True)


def up_at(folder: Path, port: int) -> str:
    """A `foliot up` that serves there, as it says beside its database."""
    told = {"url": f"http://127.0.0.1:{port}", "pid": os.getpid()}
    (folder / "foliot.db.up").write_text(json.dumps(told))
    return f"sqlite:///{folder / 'foliot.db'}"


async def processes(database_url: str, metrics_port: int | None) -> list[tuple[str, Level]]:
    settings = Settings(database_url=database_url, metrics_port=metrics_port)
    return [(each.detail, each.level) async for each in examine_processes(settings)]


async def test_a_running_up_is_asked_and_not_missed_at_a_port_it_does_not_use(tmp_path: Path) -> None:
    with answering(200, b'{"problems": []}') as port:
        database_url = up_at(tmp_path, port)
        url = f"http://127.0.0.1:{port}/readyz"
        for metrics_port in (None, free_port()):
            assert await processes(database_url, metrics_port) == [(f"{url} is ready", Level.OK)]
        # A role beside it is asked too.
        assert await processes(database_url, port) == [(f"{url} is ready", Level.OK)] * 2


async def test_an_up_that_is_gone_says_nothing(tmp_path: Path) -> None:
    database_url = up_at(tmp_path, free_port())
    assert [level for _, level in await processes(database_url, None)] == [Level.WARN]
    (tmp_path / "foliot.db.up").unlink()
    assert await processes(database_url, None) == []
    assert [level for _, level in await processes(database_url, free_port())] == [Level.WARN]


async def test_what_does_not_even_speak_http_is_a_warning_too() -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-somebody else\r\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        finding = await check_process("127.0.0.1", server.sockets[0].getsockname()[1])
    assert (finding.level, finding.check) == (Level.WARN, "process")

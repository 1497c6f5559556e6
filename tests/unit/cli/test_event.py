"""`foliot event`: finding the end of the outbox, and following it."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.cli import main
from foliot.cli.commands.event import last_offset

FOLIOT = str(Path(sys.executable).with_name("foliot"))


@given(st.sets(st.integers(1, 2**40), max_size=20))
def test_the_last_offset_is_found_in_few_questions_whatever_is_missing_before_it(offsets: set[int]) -> None:
    asked = 0

    def has_events(after: int) -> bool:
        nonlocal asked
        asked += 1
        return any(offset > after for offset in offsets)

    assert last_offset(has_events) == max(offsets, default=0)
    assert asked <= 90


def _event(offset: int) -> dict[str, Any]:
    return {
        "offset": offset,
        "event_ts": "2026-03-01T00:00:00Z",
        "event_type": "Due",
        "event_topic": "orders",
        "aggregate_id": "s1",
        "aggregate_version": offset,
        "payload": {"data": {"n": offset}},
    }


class Outbox:
    """A server that has nothing but an outbox."""

    def __init__(self, count: int) -> None:
        self.count = count
        outbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = {name: int(value[0]) for name, value in parse_qs(urlsplit(self.path).query).items()}
                first = asked["after"] + 1
                last = min(outbox.count, asked["after"] + asked["page_size"])
                items = [_event(offset) for offset in range(first, last + 1)]
                token = str(last) if len(items) == asked["page_size"] else ""
                body = json.dumps({"items": items, "next_page_token": token}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def outbox() -> Iterator[Outbox]:
    made = Outbox(count=1203)
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def test_all_pages_are_followed_by_offset(outbox: Outbox, capsys: pytest.CaptureFixture[str]) -> None:
    connection = ("--url", outbox.url, "--key", "key")
    assert main(["event", "list", "--all", "--after", "3", "-o", "name", *connection]) == 0
    assert [int(line) for line in capsys.readouterr().out.split()] == list(range(4, 1204))
    assert main(["event", "list", "--limit", "2", *connection]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["OFFSET", "1", "2"]


@pytest.mark.parametrize(("options", "first"), [([], 1204), (["--after", "1201"], 1202)])
def test_following_begins_behind_the_last_or_where_it_is_told_and_ends_well_with_ctrl_c(
    outbox: Outbox, options: list[str], first: int
) -> None:
    process = subprocess.Popen(
        [FOLIOT, "event", "tail", "-o", "json", "--url", outbox.url, "--key", "key", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    if options:
        assert json.loads(process.stdout.readline())["offset"] == first
    else:
        # It may look for the end before or after this, and must show what came after it has looked.
        _grow_until_seen(outbox, process)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (0, "")


def _grow_until_seen(outbox: Outbox, process: subprocess.Popen[str]) -> None:
    seen = threading.Event()
    lines: list[dict[str, Any]] = []

    def read() -> None:
        assert process.stdout is not None
        lines.append(json.loads(process.stdout.readline()))
        seen.set()

    reader = threading.Thread(target=read)
    reader.start()
    while not seen.wait(0.1):
        assert process.poll() is None
        outbox.count += 1
    reader.join()
    assert lines[0]["offset"] > 1203

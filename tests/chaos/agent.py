"""An HTTP agent in its own process. If its log and the execution rows differ, its log is right.

`/run` answers at once, `/slow` and `/long` take time, `/flaky` refuses the first attempt of every other
execution.
"""

import json
import os
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

TAKES_S = {"/slow": 0.4, "/long": 1.5}


class Delivery(NamedTuple):
    """A request as the agent saw it."""

    key: str
    schedule_name: str
    fire_time: str
    attempt: int


class Agent:
    """The agent process, as seen by the process that started it."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "deliveries.log"
        # The parent binds the socket and passes it on, so the port is known and reserved before the child
        # starts.
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self._port: int = listener.getsockname()[1]
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(listener.fileno()), str(self._log)],
                pass_fds=[listener.fileno()],
                start_new_session=True,
            )

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._port}/{path}"

    def deliveries(self) -> list[Delivery]:
        """Return all requests in order of arrival."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [Delivery(*json.loads(line)) for line in lines]

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


# --- in its own process ---------------------------------------------------------------------------


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log: Path

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        key, attempt = self.headers["Idempotency-Key"], int(self.headers["X-Foliot-Attempt"])
        self._note(
            Delivery(key, self.headers["X-Foliot-Schedule"], self.headers["X-Foliot-Fire-Time"], attempt)
        )
        time.sleep(TAKES_S.get(self.path, 0.0))
        is_refused = self.path == "/flaky" and attempt == 1 and int(key[-1], 16) % 2 == 0
        self.send_response(503 if is_refused else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _note(self, delivery: Delivery) -> None:
        # A short line is one write, so lines of two threads never mix.
        descriptor = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, f"{json.dumps(delivery)}\n".encode())
        finally:
            os.close(descriptor)

    def log_message(self, *_arguments: Any) -> None:
        """Do nothing: requests are written to the agent's own log."""


def _serve(descriptor: int, log: Path) -> None:
    server = ThreadingHTTPServer(("", 0), _Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = socket.socket(fileno=descriptor)
    _Handler.log = log
    server.serve_forever()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), Path(sys.argv[2]))

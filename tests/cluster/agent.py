"""An HTTP agent in its own process. Tests rely on its log of requests, not on the execution rows.

The path decides what it does: `/run` answers 200, `/held` answers the first attempt only after
`Agent.answer`, `/later` accepts the work with 202, `/hasty` reports the result before it answers 202.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID


class Request(NamedTuple):
    """A request as the agent saw it."""

    execution_id: UUID
    """Its idempotency key."""
    attempt: int
    at: float
    is_answered: bool
    """Whether the agent has sent its answer."""
    callback: str | None
    token: str | None
    traceparent: str | None


class Agent:
    """The agent process, as seen by the test that started it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # The parent binds the socket and passes it on, so the port is known and reserved before the child
        # starts.
        with socket.create_server(("", 0)) as listener:
            self.port: int = listener.getsockname()[1]
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(listener.fileno()), str(folder)],
                pass_fds=[listener.fileno()],
                start_new_session=True,
            )

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def answer(self) -> None:
        """Let the held requests be answered."""
        (self._folder / "answer").touch()

    def requests(self, execution_id: UUID) -> list[Request]:
        """Return the requests for an execution, in order of arrival."""
        log = self._folder / "agent.log"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        mine = [line for line in lines if line["execution_id"] == str(execution_id)]
        answered = {line["attempt"] for line in mine if line["what"] == "answered"}
        return [
            Request(
                execution_id,
                line["attempt"],
                line["at"],
                line["attempt"] in answered,
                line["callback"],
                line["token"],
                line["traceparent"],
            )
            for line in mine
            if line["what"] == "asked"
        ]

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


# --- in its own process ---------------------------------------------------------------------------


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: Path

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self._log("asked")
        if self.path == "/held" and self._attempt == 1:
            while not (self.folder / "answer").exists():
                time.sleep(0.01)
        if self.path == "/hasty":
            self._report("complete", {"status": "success", "result": "done before it was accepted"})
        status = 200 if self.path in ("/run", "/held") else 202
        body = json.dumps({"id": f"job-{self._attempt}"}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
        self._log("answered")

    @property
    def _attempt(self) -> int:
        return int(self.headers["X-Foliot-Attempt"])

    def _report(self, verb: str, body: dict[str, Any]) -> None:
        request = urllib.request.Request(
            f"{self.headers['X-Foliot-Callback']}/{verb}",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.headers['X-Foliot-Token']}"},
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30):
            pass

    def _log(self, what: str) -> None:
        line = {
            "what": what,
            "execution_id": self.headers["Idempotency-Key"],
            "attempt": self._attempt,
            "at": time.time(),
            "callback": self.headers["X-Foliot-Callback"],
            "token": self.headers["X-Foliot-Token"],
            "traceparent": self.headers["traceparent"],
        }
        # A short line is one write, so lines of two threads never mix.
        descriptor = os.open(self.folder / "agent.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, f"{json.dumps(line)}\n".encode())
        finally:
            os.close(descriptor)

    def log_message(self, *_arguments: Any) -> None:
        """Do nothing: requests are written to the agent's own log."""


def _serve(descriptor: int, folder: Path) -> None:
    server = ThreadingHTTPServer(("", 0), _Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = socket.socket(fileno=descriptor)
    _Handler.folder = folder
    server.serve_forever()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), Path(sys.argv[2]))

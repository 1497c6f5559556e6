"""A private Redis on a free loopback port, with default settings."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.servers import free_port

PROGRAM = "redis-server"
START_WITHIN_S = 10.0


def is_installed() -> bool:
    return shutil.which(PROGRAM) is not None


@contextmanager
def bench_redis() -> Iterator[str]:
    """Run an empty Redis. Yield its URL."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="foliot-redis-") as folder:
        command = [PROGRAM, "--bind", "127.0.0.1", "--port", str(port), "--dir", folder]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_until_up(port)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.kill()
            server.wait()


def _wait_until_up(port: int) -> None:
    deadline = time.monotonic() + START_WITHIN_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)

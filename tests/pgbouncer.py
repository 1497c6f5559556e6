"""A private PgBouncer in transaction mode: between transactions, a client holds no server connection."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from tests.servers import PostgresServer, free_port

READY_WITHIN_S = 60.0


def _program() -> str:
    # Debian installs it in a folder that is only in the administrators' PATH.
    found = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise RuntimeError("pgbouncer is not installed: `make test` installs it, or says how")
    return found


class PgBouncer:
    """A PgBouncer with fewer server connections than clients, so that clients really share them."""

    def __init__(self, server: PostgresServer, *, connections: int = 6) -> None:
        program = _program()
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="foliot-pgbouncer-"))
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": str(self.port),
            "unix_socket_dir": "",
            "pool_mode": "transaction",
            "default_pool_size": str(connections),
            "max_client_conn": "500",
            "auth_type": "any",
            "logfile": "",
            # A client gets a different connection for each transaction, as under load.
            "server_round_robin": "1",
        }
        if os.geteuid() == 0:
            settings["user"] = "nobody"
        lines = [
            "[databases]",
            f"* = host=127.0.0.1 port={server.port} user=foliot",
            "[pgbouncer]",
            *(f"{name} = {value}" for name, value in settings.items()),
        ]
        configuration = self._folder / "pgbouncer.ini"
        configuration.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._folder.chmod(0o755)
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [program, str(configuration)], stdout=log, stderr=log, start_new_session=True
            )
        self._wait()

    def url(self, database: str) -> str:
        return f"postgresql://foliot@127.0.0.1:{self.port}/{database}"

    def remove(self) -> None:
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(timeout=60)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait(self) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while f"listening on 127.0.0.1:{self.port}" not in (told := (self._folder / "log").read_text()):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"pgbouncer did not start: {told[-2000:]}")
            time.sleep(0.05)

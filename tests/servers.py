"""Private servers for the tests: on free loopback ports, started on first use, stopped at the end."""

import asyncio
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import asyncpg

TEMPLATE = "template_foliot"
"""The database with the schema. Test databases are cloned from it."""
MEMORY = Path("/dev/shm")
MIN_FREE_BYTES = 2 * 1024**3
"""Free space that files in memory must have. Some tests insert hundreds of thousands of rows."""


def fast_folder() -> Path | None:
    """Return a folder in memory for files that need not outlive the machine. None: it is too small.

    Every cloned database is hundreds of files. On a disk, creating and removing them takes several times the
    CPU. SQLite and the brokers wait for the disk at each commit. What a killed process wrote stays here too.
    """
    try:
        is_large = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= MIN_FREE_BYTES
    except OSError:
        is_large = False
    return MEMORY if is_large else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _postgres_bin() -> Path:
    found = shutil.which("postgres")
    candidates = [Path(found).resolve().parent] if found else []
    if shutil.which("pg_config"):
        told = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=False)
        candidates.append(Path(told.stdout.strip()))
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in candidates:
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    raise RuntimeError("PostgreSQL's server is not installed: `make test` installs it, or says how")


class PostgresServer:
    """A private PostgreSQL. It refuses to run as root, so root starts it as another user."""

    def __init__(self, *, is_durable: bool = False) -> None:
        self._is_durable = is_durable
        self._bin = _postgres_bin()
        parent = None if is_durable else fast_folder()
        self._folder = Path(tempfile.mkdtemp(prefix="foliot-postgres-", dir=parent))
        self._data = self._folder / "data"
        self._as_user: list[str] = []
        if os.geteuid() == 0:
            user = _unprivileged_user()
            self._as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
            os.chown(self._folder, user.pw_uid, user.pw_gid)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", str(self._data), "-U", "foliot", "-A", "trust", "-E", "UTF8", "--no-sync")
        self._version = int((self._data / "PG_VERSION").read_text())
        self.start()

    def url(self, database: str) -> str:
        return f"postgresql://foliot@127.0.0.1:{self.port}/{database}"

    @property
    def socket_folder(self) -> Path:
        return self._folder

    def use_tls(self, certificate: bytes, key: bytes) -> None:
        """Enable TLS for new connections."""
        for name, content in (("server.crt", certificate), ("server.key", key)):
            file = self._data / name
            file.write_bytes(content)
            file.chmod(0o600)
            owner = self._data.stat()
            os.chown(file, owner.st_uid, owner.st_gid)
        self.state("ALTER SYSTEM SET ssl = on")
        self.state("SELECT pg_reload_conf()")

    def tool(self, name: str) -> str:
        """Return the path of a PostgreSQL program, such as pg_dump."""
        return str(self._bin / name)

    def state(self, statement: str) -> None:
        """Run a statement on a connection to the `postgres` database, which no test uses."""

        async def done() -> None:
            connection = await asyncpg.connect(self.url("postgres"))
            try:
                await connection.execute(statement)
            finally:
                await connection.close()

        # In a separate thread, because an open browser runs an event loop in this one.
        with ThreadPoolExecutor(max_workers=1) as thread:
            thread.submit(asyncio.run, done()).result()

    @contextmanager
    def database(self, *, template: str = TEMPLATE) -> Iterator[str]:
        """Create a database and yield its URL. At the end it is dropped, even if clients are connected."""
        name = f"test_{uuid.uuid4().hex}"
        # Copying the files takes less CPU than writing each page to the log. Before 15 there is no choice.
        strategy = " STRATEGY FILE_COPY" if self._version >= 15 else ""
        self.state(f'CREATE DATABASE "{name}" TEMPLATE "{template}"{strategy}')
        try:
            yield self.url(name)
        finally:
            self.state(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def _run(self, tool: str, *arguments: str) -> None:
        subprocess.run(
            [*self._as_user, str(self._bin / tool), *arguments],
            check=True,
            capture_output=True,
            cwd=self._folder,
        )

    def start(self) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self._folder),
            "max_connections": "300",
            "shared_buffers": "128MB",
        }
        if not self._is_durable:
            # Tests do not lose power, and data survives a crash of the server without fsync.
            settings |= {"fsync": "off", "full_page_writes": "off", "max_wal_size": "256MB"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        log = (self._folder / "log").open("ab")
        self._process = subprocess.Popen(
            [*self._as_user, str(self._bin / "postgres"), "-D", str(self._data), *options],
            stdout=log,
            stderr=log,
            cwd=self._folder,
            start_new_session=True,
        )
        log.close()
        deadline = time.monotonic() + 60
        while subprocess.run(
            [str(self._bin / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False
        ).returncode:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self._folder / "log").read_text()[-2000:])
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server. SIGINT is PostgreSQL's fast shutdown, SIGQUIT the immediate one (a crash)."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=60)
            self._process = None

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self._folder, ignore_errors=True)


def _unprivileged_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("there is no user to run PostgreSQL as: it refuses to run as root")

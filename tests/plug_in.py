"""A package with kinds of its own (`example_kinds/`), installed in a folder, and a server that has it."""

import json
import os
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import contextmanager
from pathlib import Path
from shutil import copy
from typing import Any, Self

from tests.servers import free_port

PACKAGE = Path(__file__).parent / "example_kinds"
FOLIOT = str(Path(sys.executable).with_name("foliot"))
ADMIN_KEY = "an admin key of forty characters, or more"
DEADLINE_S = 60


def install(folder: Path) -> Path:
    """Write what an installer writes: the module, and a dist-info folder with its entry points."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    copy(PACKAGE / "example_kinds.py", folder)
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    points = ConfigParser()
    points.read_dict(project["entry-points"])
    with (info / "entry_points.txt").open("w") as file:
        points.write(file)
    return folder


class PlugInServer:
    """`foliot up` on SQLite in a folder of its own, with or without the package."""

    def __init__(self, folder: Path, installed: Path | None) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
        self.environment = environment | {
            "FOLIOT_API_PORT": str(self.port),
            "FOLIOT_ADMIN_KEY": ADMIN_KEY,
            "FOLIOT_LEASE_TTL_SECONDS": "2",
        }
        if installed is not None:
            self.environment["PYTHONPATH"] = str(installed)
        self._log = folder / f"log-{self.port}"

    @contextmanager
    def running(self, *arguments: str) -> Iterator[Self]:
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                [FOLIOT, "up", *arguments], cwd=self.folder, env=self.environment, stdout=log, stderr=log
            )
        try:
            deadline = time.monotonic() + DEADLINE_S
            while self._status("/readyz") != 200:
                assert process.poll() is None, self._log.read_text()
                assert time.monotonic() < deadline, f"waited in vain: {self._log.read_text()}"
                time.sleep(0.1)
            yield self
        finally:
            process.terminate()
            process.wait(timeout=DEADLINE_S)

    def _status(self, path: str) -> int:
        try:
            with urllib.request.urlopen(self.url + path, timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except OSError:
            return 0

    def ask(self, method: str, path: str, document: Any = None) -> tuple[int, Any]:
        request = urllib.request.Request(
            f"{self.url}/api/v1/{path}",
            method=method,
            data=None if document is None else json.dumps(document).encode(),
            headers={"Authorization": f"Bearer {ADMIN_KEY}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def run(self, *arguments: str) -> str:
        """Run a command and return what it prints."""
        done = subprocess.run(
            [FOLIOT, *arguments],
            cwd=self.folder,
            env={**self.environment, "FOLIOT_URL": self.url, "FOLIOT_KEY": ADMIN_KEY},
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

"""A real `foliot up` for commands to talk to, and ways to run them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

from tests import forked_cli
from tests.waiting import until

FOLIOT = str(Path(sys.executable).with_name("foliot"))
DEADLINE_S = 60
ADMIN_KEY = "an operator's key that is long enough"
SECRET_KEY = "a key for secrets that is long enough"
SETTINGS = {
    "FOLIOT_DATABASE_URL": "sqlite:///foliot.db",
    "FOLIOT_API_PORT": "0",
    "FOLIOT_ADMIN_KEY": ADMIN_KEY,
    "FOLIOT_SECRET_KEY": SECRET_KEY,
    "FOLIOT_LEASE_TTL_SECONDS": "1",
    "FOLIOT_HEARTBEAT_SECONDS": "0.2",
    "FOLIOT_POLL_SECONDS": "0.1",
    "FOLIOT_LOG_FORMAT": "json",
    "FOLIOT_RATE_LIMIT": "off",
}
JOBS = dedent(
    """
    import asyncio
    import logging
    from pathlib import Path

    from foliot import Fire, Foliot

    app = Foliot()
    log = logging.getLogger("jobs")

    @app.task
    async def greet(name: str = "you") -> str:
        log.warning("greeting %s", name)
        return f"hello {name}"

    @app.task
    async def wait_for(file: str, fire: Fire) -> str:
        log.warning("waiting")
        await fire.progress(0.5, "half way")
        while not Path(file).exists():
            await asyncio.sleep(0.02)
        log.warning("done waiting")
        return "done"

    @app.task(retries=0)
    async def fail() -> None:
        raise ValueError("on purpose")
    """
)


def plain_environment(**settings: str) -> dict[str, str]:
    """This process's, without settings of Foliot's and without what would make output special."""
    special = ("FOLIOT_", "FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(special)}
    return {**kept, **settings}


class Up:
    """A `foliot up` in a folder of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.environment = plain_environment(FOLIOT_URL=url, FOLIOT_KEY=ADMIN_KEY)
        self.url = url

    def run(
        self,
        *arguments: str,
        stdin: str | None = None,
        cwd: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """A command as a process of its own; without a stdin it has none at all."""
        return forked_cli.run(
            *arguments,
            env=self.environment if environment is None else environment,
            cwd=cwd or "/",
            given=stdin or "",
            timeout=DEADLINE_S,
        )


@contextmanager
def running_up(folder: Path) -> Iterator[Up]:
    (folder / "jobs.py").write_text(JOBS)
    with (folder / "log").open("ab") as log:
        process = forked_cli.Command(
            *("up", "--tasks", "jobs.py"),
            cwd=folder,
            env=plain_environment(**SETTINGS),
            stdout=log,
            stderr=log,
        )
    try:
        until(lambda: "Foliot is up" in (folder / "log").read_text() or process.poll() is not None)
        assert process.poll() is None, (folder / "log").read_text()
        yield Up(folder, json.loads((folder / "foliot.db.up").read_text())["url"])
    finally:
        process.kill()
        process.wait()

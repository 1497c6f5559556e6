"""A real Celery worker, started and stopped by the tests."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.forked_cli import ROOT
from tests.waiting import until


class CeleryWorker:
    """A `celery worker` with its children. It writes its output to a file."""

    def __init__(self, app: str, folder: Path, *options: str, **environment: str) -> None:
        self.log = folder / f"celery-{len(list(folder.glob('celery-*.out')))}.out"
        named = str(self.log.stem)
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [
                    *(str(Path(sys.executable).with_name("celery")), "-A", app, "worker"),
                    *("--loglevel", "INFO", "--hostname", f"{named}@localhost"),
                    *("--without-gossip", "--without-mingle", "--without-heartbeat", *options),
                ],
                cwd=folder,
                env={
                    **{key: value for key, value in os.environ.items() if not key.startswith("FOLIOT_")},
                    "PYTHONPATH": str(ROOT),
                    **environment,
                },
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def ready(self) -> "CeleryWorker":
        until(lambda: " ready." in self.told() or self._process.poll() is not None)
        assert self._process.poll() is None, self.told()
        return self

    def told(self) -> str:
        return self.log.read_text(errors="replace")

    def kill(self) -> None:
        """Kill the worker and its children at once, as a power loss would."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def stop(self) -> int:
        """Stop cleanly: running tasks finish first."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout=60)

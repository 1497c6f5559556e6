"""Real Foliot processes, started and stopped by the tests."""

import os
import signal
from pathlib import Path

from tests import forked_cli


class Node:
    """A `foliot` process. It writes its output to a file, as JSON lines."""

    def __init__(self, name: str, url: str, folder: Path, *arguments: str, **settings: str) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("FOLIOT_")},
            "FOLIOT_DATABASE_URL": url,
            "FOLIOT_LOG_FORMAT": "json",
            "PYTHONPATH": str(forked_cli.ROOT),
            "RUN_LOG": str(folder / "runs.log"),
            **settings,
        }
        with self.log.open("ab") as output:
            self._process = forked_cli.Command(
                *arguments,
                env=environment,
                cwd=folder,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill the process, as a power loss would: it can't clean up."""
        if self.is_running:
            self.signal(signal.SIGKILL)
            self._process.wait()

    def stop(self) -> int:
        """Stop cleanly. Return the exit status."""
        if self.is_running:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
        return self.ended()

    def ended(self) -> int:
        """Wait until the process has ended by itself. Return the exit status."""
        return self._process.wait(timeout=60)

    def told(self) -> str:
        return self.log.read_text(errors="replace")


class Nodes:
    """The processes of one test, on one database."""

    def __init__(self, url: str, folder: Path, **settings: str) -> None:
        self._url = url
        self._folder = folder
        self._settings = settings
        self._started: list[Node] = []

    def start(self, *arguments: str, **settings: str) -> Node:
        name = f"{arguments[0]}-{len(self._started)}"
        node = Node(name, self._url, self._folder, *arguments, **(self._settings | settings))
        self._started.append(node)
        return node

    def end(self) -> None:
        for node in self._started:
            node.kill()

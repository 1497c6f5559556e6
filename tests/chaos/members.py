"""The processes of a cluster. Each has its own proxy to the database and is restarted when it ends."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.chaos.plan import Role
from tests.chaos.proxy import Proxy
from tests.cluster.processes import Node
from tests.engine import until
from tests.forked_cli import ROOT

WITHIN_S = 60.0
LOOK_EVERY_S = 0.1


class Member:
    """A position in the cluster. Its process is replaced by a new one when it ends."""

    def __init__(
        self, role: Role, number: int, url: str, folder: Path, *command: str, **settings: str
    ) -> None:
        self.role = role
        self.name = f"{role}-{number}"
        self.proxy = Proxy(url)
        self.turn = asyncio.Lock()
        """Held by the fault that affects this member, so that only one fault does at a time."""
        self.is_wanted = True
        self.nodes: list[Node] = []
        self._folder = folder
        self._command = command
        self._clock = folder / f"{self.name}.clock"
        self._settings = settings

    @property
    def node(self) -> Node:
        return self.nodes[-1]

    async def start(self) -> None:
        await self.proxy.start()
        self.start_node()

    def start_node(self) -> None:
        settings = {
            **self._settings,
            "PYTHONPATH": f"{ROOT / 'tests' / 'chaos' / 'skew'}:{ROOT}",
            "CHAOS_CLOCK_FILE": str(self._clock),
        }
        name = f"{self.name}.{len(self.nodes)}"
        self.nodes.append(Node(name, self.proxy.url, self._folder, *self._command, **settings))

    def set_clock(self, offset_s: float) -> None:
        """Set the error of the process's wall clock, in seconds."""
        self._clock.write_text(str(offset_s))

    def kill(self) -> None:
        """Kill the process, and do not restart it until `is_wanted` is set."""
        self.is_wanted = False
        self.node.kill()

    def told(self, event: str) -> list[dict[str, Any]]:
        """Return the log lines for one kind of event, from all processes of this member."""
        return [line for node in self.nodes for line in _lines(node) if line.get("event") == event]

    async def instance_id(self) -> str:
        """Wait until the current process has started, and return its instance id."""
        found: list[str] = []

        def has_started() -> bool:
            node = self.node
            found[:] = [
                line["instance_id"] for line in _lines(node) if line.get("event") == "instance_started"
            ]
            return bool(found)

        await until(has_started, within_s=WITHIN_S, every_s=LOOK_EVERY_S)
        return found[0]

    async def close(self) -> None:
        for node in self.nodes:
            node.kill()
        await self.proxy.close()


def _lines(node: Node) -> list[dict[str, Any]]:
    # The last line of a killed process may be incomplete.
    whole = (line for line in node.told().splitlines() if line.startswith("{") and line.endswith("}"))
    return [json.loads(line) for line in whole]


async def keep_running(members: list[Member]) -> None:
    """Restart ended processes that are wanted, in an endless loop."""
    while True:
        for member in members:
            if member.is_wanted and not member.node.is_running:
                member.start_node()
        await asyncio.sleep(LOOK_EVERY_S)

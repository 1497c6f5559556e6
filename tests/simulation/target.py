"""Simulated work, and a log of all runs that does not depend on the database."""

import asyncio
import random
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from foliot.kinds.target_protocol import Assignment, AttemptFailedError
from foliot.model.errors import Problem
from foliot.model.schedule import ScheduleSpec
from tests.simulation.network import Network, Sender


@dataclass(slots=True, eq=False)
class Run:
    """One start of an execution."""

    execution_id: UUID
    schedule_id: UUID
    attempt: int
    worker: Sender
    spec: ScheduleSpec
    end: str | None = None


@dataclass(slots=True)
class Agent:
    """The receiver of all runs: records what was started, by which worker, and how it ended."""

    raw: sqlite3.Connection
    choose: random.Random
    network: Network
    accuse: Callable[[str], None]
    runs: list[Run] = field(default_factory=list)
    is_calm: bool = False
    """True: from now on all work succeeds quickly."""

    def begin(self, assignment: Assignment, worker: Sender) -> Run:
        fire = assignment.fire
        run = Run(fire.execution_id, fire.schedule_id, fire.attempt, worker, assignment.spec)
        overlap = assignment.spec.overlap
        others = {
            other.execution_id
            for other in self.runs
            if other.end is None
            and other.schedule_id == run.schedule_id
            and other.execution_id != run.execution_id
            and self._is_rightful(other)
        }
        if overlap.policy != "allow" and self._is_rightful(run) and len(others) >= overlap.max_instances:
            self.accuse(f"{assignment.spec.name}: {len(others) + 1} runs at once, as its target sees it")
        self.runs.append(run)
        self.network.tell(f"{worker.name} runs {assignment.spec.name}, attempt {fire.attempt}")
        return run

    def _is_rightful(self, run: Run) -> bool:
        """Return whether the database gives the execution to this run. If not, the run is a ghost."""
        found = self.raw.execute(
            "SELECT attempt, worker_id, status FROM execution_t WHERE execution_id = ?",
            (run.execution_id.hex,),
        ).fetchone()
        return bool(found == (run.attempt, run.worker.name, "running"))


class SimulatedTarget:
    """A target that succeeds, fails or hangs at random."""

    kind = "function"

    def __init__(self, agent: Agent, worker: Sender) -> None:
        self._agent = agent
        self._worker = worker

    def check(self, spec: ScheduleSpec) -> list[Problem]:
        return []

    async def close(self) -> None:
        """Do nothing: it holds nothing."""

    async def run(self, assignment: Assignment) -> Any:
        run = self._agent.begin(assignment, self._worker)
        choose = self._agent.choose
        kind = (
            "success" if self._agent.is_calm else choose.choice(["success"] * 5 + ["failure"] * 2 + ["hang"])
        )
        seconds = 0.1 if self._agent.is_calm else choose.choice([0.0, 0.5, 2.0, 5.0])
        try:
            await asyncio.sleep(10_000 if kind == "hang" else seconds)
            if kind == "failure":
                raise AttemptFailedError("as the dice say")
            run.end = "success"
        finally:
            run.end = run.end or ("failure" if kind == "failure" else "stopped")
            if self._worker.is_dead:
                run.end = "killed"
        return None

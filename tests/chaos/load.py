"""The load of a cluster under faults:

schedules with every kind of target, and an operator who changes them.
"""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.chaos.cluster import Cluster
from tests.chaos.members import WITHIN_S
from tests.engine import until

PATIENT = {"max_attempts": 30, "initial_delay_seconds": 0.2, "max_delay_seconds": 1}
"""Retry policy with many attempts: workers are lost all the time, and each lost attempt counts."""
ALL = {"misfire": {"policy": "fire_all", "max_catchup": 1000}, "overlap": {"policy": "allow"}}
STEADY = ("steady-run", "steady-slow", "steady-flaky")
"""Schedules that nobody changes. The agent must see each of their fire times, one per second."""
ACT_EVERY_S = 0.7


def definitions(cluster: Cluster) -> list[dict[str, Any]]:
    def http(path: str) -> dict[str, Any]:
        return {"kind": "http", "url": cluster.agent.url(path)}

    def function(seconds: float) -> dict[str, Any]:
        return {"kind": "function", "name": "nap", "args": {"seconds": seconds}}

    def event(number: int) -> dict[str, Any]:
        return {"kind": "event", "event_topic": "chaos", "event_type": f"ticked-{number}", "event_data": {}}

    every_second = {"kind": "interval", "seconds": 1}
    cron = {"kind": "cron", "expression": "*/2 * * * * *", "timezone": "Europe/Berlin"}
    steady: list[dict[str, Any]] = [
        {"name": name, "trigger": every_second, "target": http(name.removeprefix("steady-")), **ALL}
        for name in STEADY
    ]
    others: list[dict[str, Any]] = [
        {
            "name": "once-only",
            "trigger": every_second,
            "target": http("run"),
            "delivery": "at_most_once",
            **ALL,
        },
        # These run long enough that any lost worker has some of them.
        *(
            {
                "name": f"once-only-long-{each}",
                "trigger": every_second,
                "target": http("long"),
                "delivery": "at_most_once",
                **ALL,
            }
            for each in range(3)
        ),
        {"name": "queued", "trigger": every_second, "target": http("slow"), "overlap": {"policy": "queue"}},
        {"name": "skipping", "trigger": every_second, "target": function(1.5), "overlap": {"policy": "skip"}},
        {"name": "late-skipped", "trigger": cron, "target": function(0.1), "misfire": {"policy": "skip"}},
        {"name": "jittered", "trigger": cron, "target": function(0.1), "jitter_seconds": 1},
        *(
            {"name": f"edited-{each}", "trigger": every_second, "target": function(0.2)}
            | (ALL if each % 2 else {})
            for each in range(6)
        ),
        *(
            {"name": f"event-{each}", "trigger": every_second, "target": event(each), **ALL}
            for each in range(3)
        ),
    ]
    return [{"retry": PATIENT, **each} for each in [*steady, *others]]


@dataclass
class Operator:
    """Creates the schedules, then edits, pauses, resumes and triggers some of them through the API."""

    cluster: Cluster
    chance: random.Random
    acts: int = 0
    """Number of changes that the API has answered with success."""
    _ids: dict[str, str] = field(default_factory=dict)
    _is_done: asyncio.Event = field(default_factory=asyncio.Event)

    async def create_all(self) -> None:
        for definition in definitions(self.cluster):
            answer = await self.cluster.client.post("schedules", json=definition)
            assert answer.status_code == httpx2.codes.CREATED, answer.text
            self._ids[definition["name"]] = answer.json()["schedule_id"]

    async def work(self) -> None:
        """Make random changes until `pause_all` is called.

        If the API is down, a change is lost or its outcome is unknown.
        """
        touched = [name for name in self._ids if name.startswith(("edited-", "event-"))]
        while not self._is_done.is_set():
            name, act = (
                self.chance.choice(touched),
                self.chance.choice(("pause", "resume", "trigger", "edit")),
            )
            seconds = self.chance.choice((1, 2))
            try:
                answer = await self._do(self._ids[name], act, seconds)
                self.acts += answer.is_success
            except httpx2.HTTPError:
                pass
            try:
                async with asyncio.timeout(ACT_EVERY_S):
                    await self._is_done.wait()
            except TimeoutError:
                continue

    async def _do(self, schedule_id: str, act: str, seconds: int) -> httpx2.Response:
        client = self.cluster.client
        if act == "edit":
            change = {"trigger": {"kind": "interval", "seconds": seconds}}
            return await client.patch(f"schedules/{schedule_id}", json=change)
        return await client.post(f"schedules/{schedule_id}/{act}", json={})

    async def pause_all(self) -> None:
        """Stop the operator and pause all schedules, so that nothing more becomes due."""
        self._is_done.set()
        for schedule_id in self._ids.values():

            async def is_paused(schedule_id: str = schedule_id) -> bool:
                try:
                    answer = await self._do(schedule_id, "pause", 0)
                except httpx2.HTTPError:
                    return False
                return answer.is_success

            await until(is_paused, within_s=WITHIN_S, every_s=0.2)

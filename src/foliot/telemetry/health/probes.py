"""The probes of one instance: the observers it needs, the metrics page, and readiness."""

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry

from foliot.db.database import Database
from foliot.db.replica import ReplicaWatch
from foliot.model.event import Observer
from foliot.telemetry.health.metrics_page import MetricsPage
from foliot.telemetry.health.pool_metrics import PoolCollector
from foliot.telemetry.health.readiness import Pulse, Readiness, Stuck
from foliot.telemetry.metrics import MetricsObserver
from foliot.telemetry.process import add_process
from foliot.timing.clock import Clock


class Probes:
    """Created before the instance, which gets the `observers`. Call `watch` before `problems`."""

    def __init__(self, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        add_process(self.registry)
        self.page = MetricsPage(self.registry, clock)
        self._pulse = Pulse(clock)
        self.observers: tuple[Observer, ...] = (MetricsObserver(self.registry), self._pulse)
        self._readiness: Readiness | None = None

    def watch(
        self,
        database: Database,
        *,
        is_running: Callable[[], bool],
        limit_s: float,
        stuck: Stuck,
        replica: ReplicaWatch | None,
    ) -> None:
        self.registry.register(PoolCollector(database))
        self._readiness = Readiness(
            database, self._pulse, is_running=is_running, limit_s=limit_s, stuck=stuck, replica=replica
        )

    async def problems(self) -> list[str]:
        """Return why the instance can't do its work now. Empty: it is ready."""
        assert self._readiness is not None, "there is an instance to watch"
        return await self._readiness.problems()


def readiness_document(problems: list[str]) -> dict[str, Any]:
    """Return the response body of `/readyz`."""
    return {"status": "not ready" if problems else "ready", "problems": problems}

"""Benchmark of telemetry: rates of firing and of executing, with and without observers, in one run.

The variants alternate on one private PostgreSQL, so that other load on the machine affects all of them; the
median round counts. Logs are written as `foliot scheduler` and `foliot worker` write them, to /dev/null.
Spans are created and discarded by the exporter.

`python -m bench.telemetry [COUNT [ROUNDS]]`.
"""

import asyncio
import contextlib
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import asyncpg
import uvloop
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from bench.firing import Counter, fill, fill_wheel, leader, make_due_again, make_rows
from bench.peers import foliot as executing
from bench.servers import bench_postgres
from foliot.db.migrate import upgrade
from foliot.instance.preparation import spare_collector
from foliot.instance.settings import Settings
from foliot.instance.spec import InstanceRole
from foliot.instance.store import open_store
from foliot.model.event import Observer, Observers
from foliot.scheduler.leader_term import LeaderState
from foliot.telemetry import logs
from foliot.telemetry.health.probes import Probes
from foliot.telemetry.shipping import SpanQueue
from foliot.telemetry.traces import TraceObserver
from foliot.timing.clock import SystemClock

COUNT = 10_000
ROUNDS = 6
MARK = 0.85
"""Minimum share of its rate that a process must keep with logs and metrics.

Traces are opt-in, not bound by it.
"""


class Nowhere(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Do nothing: there is nothing to close."""


def nobody() -> list[Observer]:
    return []


def logs_and_metrics() -> list[Observer]:
    return [logs.LogObserver(), *Probes(SystemClock()).observers]


def everything() -> list[Observer]:
    traces = TraceObserver(SpanQueue("", Nowhere()), "bench", ("scheduler", "worker"), SystemClock().now)
    return [*logs_and_metrics(), traces]


WATCHED_BY: dict[str, Callable[[], list[Observer]]] = {
    "nobody": nobody,
    "logs and metrics": logs_and_metrics,
    "logs, metrics, traces": everything,
}


async def fire(url: str, count: int, observers: Sequence[Observer]) -> float:
    """Return fires per second of a leader in its second round, from a full wheel to the last commit."""
    store = open_store(url, clock=SystemClock(), ttl_s=60)
    await upgrade(store.database)
    await fill(store, make_rows(count, seed=1))
    counter, elapsed = Counter(), 0.0
    shard = await leader(store, Observers([counter, *observers]))
    shard.statements.names_all = any(isinstance(each, TraceObserver) for each in observers)
    for _ in range(2):
        term = shard.firing.term
        assert isinstance(term, LeaderState)
        await fill_wheel(store, term, count)
        counter.fired = 0
        began = time.perf_counter()
        while counter.fired < count:
            await shard.firing.step()
        elapsed = time.perf_counter() - began
        await make_due_again(store)
        shard._begin(term.lease)
    await shard.release()
    await store.close()
    return count / elapsed


async def execute(url: str, count: int, observers: Sequence[Observer]) -> float:
    """Return executions per second, claimed and settled, of a worker whose task does nothing."""
    settled = executing.Settled(count)
    app = executing.application()
    app.schedules.clear()
    settings = Settings(database_url=url, worker_concurrency=executing.CONCURRENCY)
    instance = app.instance(settings, roles=frozenset({InstanceRole.WORKER}), observers=[*observers, settled])
    await instance.prepare()
    began = time.perf_counter()
    instance.begin()
    await settled.countdown.wait()
    elapsed = time.perf_counter() - began
    await instance.stop()
    return count / elapsed


@contextlib.contextmanager
def log_to_nowhere() -> Iterator[None]:
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere):
        logs.configure("json", "info")
        yield


def measure(count: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Return the rates by activity (firing, executing) and by set of observers."""
    found: dict[str, dict[str, list[float]]] = {
        what: {who: [] for who in WATCHED_BY} for what in ("firing", "executing")
    }
    with bench_postgres() as new_url, log_to_nowhere():

        async def new() -> str:
            return await new_url()

        watchers = list(WATCHED_BY.items())
        for number in range(rounds):
            # Rotate the order: the first variant runs cold, and one that follows heavy writes finds the disk
            # busy.
            first = number % len(watchers)
            for who, observers in watchers[first:] + watchers[:first]:
                found["firing"][who].append(uvloop.run(fire(asyncio.run(new()), count, observers())))
                url = asyncio.run(new())
                executing.fill(url, count)
                found["executing"][who].append(uvloop.run(execute(url, count, observers())))
                uvloop.run(_drop(url))
    return found


async def _drop(url: str) -> None:
    """Delete the executions, whose size would slow the next run."""
    connection = await asyncpg.connect(url)
    await connection.execute("TRUNCATE execution_t")
    await connection.close()


def main(count: int = COUNT, rounds: int = ROUNDS) -> bool:
    """Run the benchmark. Return whether logs and metrics leave the rates above their minimum."""
    spare_collector()
    kept = []
    for what, rates in measure(count, rounds).items():
        alone = statistics.median(rates["nobody"])
        for who, each in rates.items():
            rate = statistics.median(each)
            print(f"telemetry: {what:10} watched by {who:22} {rate:>8,.0f}/s   {rate / alone:.0%}")
            if who == "logs and metrics":
                kept.append(rate / alone)
    return min(kept) >= MARK


if __name__ == "__main__":
    sys.exit(not main(*(int(each) for each in sys.argv[1:])))

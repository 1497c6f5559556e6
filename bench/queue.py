"""Benchmark of the queue: how fast one worker process runs jobs that do nothing, compared with peers.

Each library's queue is filled with the same number of jobs, then one worker empties it alone. PostgreSQL
queues use one private server with durable defaults, Redis queues a private server with default settings. The
libraries alternate, so that other load on the machine affects all of them; the median round counts. Foliot's
time ends when every execution is recorded; `bench.peers` says when the time of the others ends.

`python -m bench.queue [COUNT [ROUNDS]]`; the packages of the peers are in the `bench` dependency group.
"""

import asyncio
import json
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from bench.peers.redis_server import bench_redis, is_installed
from bench.servers import bench_postgres

OURS = "foliot"
# taskiq and Celery run on the server that they are mostly used with.
SERVERS = {
    OURS: "postgresql",
    "pgqueuer": "postgresql",
    "procrastinate": "postgresql",
    "taskiq": "redis",
    "celery": "redis",
}
COUNT = 10_000
ROUNDS = 3
STEP_LIMIT_S = 120
"""Timeout of a step in seconds. A peer that takes longer hangs."""


@dataclass(slots=True)
class Entry:
    """Results of one library."""

    name: str
    seconds: list[float] = field(default_factory=list)
    settings: str = ""
    keeps: str = ""
    absent: str = ""
    """Why it did not run. Empty: it ran."""

    def per_second(self, count: int) -> float:
        return count / statistics.median(self.seconds)


def run_step(name: str, step: str, url: str, count: int) -> dict[str, Any]:
    """Run a step (`fill` or `work`) of a peer in its own process."""
    command = [sys.executable, "-m", "bench.peers", name, step, url, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=STEP_LIMIT_S, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise RuntimeError(f"{name} could not {step}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def take_turn(entry: Entry, url: str, count: int) -> None:
    filled = run_step(entry.name, "fill", url, count)
    if "missing" in filled:
        entry.absent = f"{filled['missing']} is not installed"
        return
    worked = run_step(entry.name, "work", url, count)
    entry.settings, entry.keeps = worked["settings"], worked["keeps"]
    entry.seconds.append(worked["seconds"])


def take_turns(new_url: Callable[[], Awaitable[str]], count: int, rounds: int) -> list[Entry]:
    entries = [Entry(name) for name in SERVERS]
    for _ in range(rounds):
        for entry in entries:
            if entry.absent:
                continue
            if SERVERS[entry.name] == "postgresql":
                take_turn(entry, asyncio.run(_url_of(new_url)), count)
            elif is_installed():
                with bench_redis() as url:
                    take_turn(entry, url, count)
            else:
                entry.absent = "redis-server is not installed"
    return entries


async def _url_of(new_url: Callable[[], Awaitable[str]]) -> str:
    return await new_url()


def line_of(entry: Entry, ours: Entry, count: int) -> str:
    if entry.absent:
        return f"queue: {entry.name:14} did not run: {entry.absent}"
    rate = entry.per_second(count)
    spread = f"{count / max(entry.seconds):,.0f} to {count / min(entry.seconds):,.0f}"
    ratio = "" if entry is ours else f"   Foliot is {ours.per_second(count) / rate:.2f} times as fast"
    return (
        f"queue: {entry.name:14}{rate:>8,.0f} jobs/s ({spread}){ratio}\n"
        f"       {'':14}{SERVERS[entry.name]}; {entry.settings}; keeps {entry.keeps}"
    )


def main(count: int = COUNT, rounds: int = ROUNDS) -> bool:
    """Run the benchmark. Return whether Foliot is faster than every peer that ran."""
    with bench_postgres() as new_url:
        entries = take_turns(new_url, count, rounds)
    ours = next(entry for entry in entries if entry.name == OURS)
    for entry in entries:
        print(line_of(entry, ours, count))
    peers = [entry for entry in entries if entry is not ours and not entry.absent]
    ahead = [entry for entry in peers if ours.per_second(count) > entry.per_second(count)]
    print(
        f"queue: one worker, {count:,} jobs, {rounds} rounds: ahead of {len(ahead)} of {len(peers)} that ran"
    )
    return len(ahead) == len(peers)


if __name__ == "__main__":
    sys.exit(not main(*(int(argument) for argument in sys.argv[1:])))

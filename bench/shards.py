"""Benchmark of sharding: eight shards led by one scheduler process, or by two with four shards each.

Every process fills its timing wheels, reports that it is ready, and fires after a line on stdin. The time
counts from that line to the last commit of the last process. Each run has its own database. The two setups
alternate, so that other load on the machine affects both.

Two processes and the database share the machine's cores, and a small machine has no spare core for the
database. So there are two measurements. With the whole machine, two processes must be no slower than one (10
percent is noise). With each scheduler limited to a share of a core, two must fire 1.5 times as much.

`python -m bench.shards [COUNT]` measures.
"""

import asyncio
import json
import os
import sys
import time
from collections import Counter as Counts
from collections.abc import Mapping
from contextlib import nullcontext
from typing import NamedTuple

import psutil
import uvloop

from bench.cpu_share import capped
from bench.firing import Counter, fill, fill_wheel, make_rows
from bench.servers import bench_postgres
from foliot.db.hints import LocalHints
from foliot.db.migrate import upgrade
from foliot.instance.preparation import spare_collector
from foliot.instance.store import open_store
from foliot.model.ids import slot_of
from foliot.model.lease import Shard
from foliot.scheduler.leader_term import LeaderState
from foliot.scheduler.leases.database_lease import DatabaseLeases
from foliot.scheduler.shard import SchedulerOptions, ShardScheduler
from foliot.timing.clock import ClusterClock, SystemClock

SHARDS = 8
COUNT = 40_000
ROUNDS = 3
MARK = 1.5
NO_SLOWER = 0.9
SHARE = 0.3
"""Share of a core for each scheduler, so that the database has cores to spare."""


# --- a scheduler, a process of its own --------------------------------------------------------------------


async def fire_on_word(url: str, due: Mapping[int, int]) -> None:
    """Lead shards, print `ready`, wait for a line on stdin, and fire all that is due.

    `due`: shard number to the number of due schedules.
    """
    store = open_store(url, clock=SystemClock(), ttl_s=60)
    clock = ClusterClock(SystemClock())
    clock.observe(await store.now(), clock.monotonic())
    options = SchedulerOptions(ttl_s=60, heartbeat_s=20)
    provider = DatabaseLeases(store.leases, f"bench-{os.getpid()}", options.ttl_s)
    led = {}
    for number, count in due.items():
        counter = Counter()
        shard = ShardScheduler(
            Shard(number, SHARDS), provider, store.database, clock, LocalHints(), counter, options
        )
        led[shard] = counter, count
        await shard.leadership.step()
        term = shard.firing.term
        assert isinstance(term, LeaderState)
        await fill_wheel(store, term, count)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)

    async def fire(shard: ShardScheduler, counter: Counter, count: int) -> None:
        while counter.fired < count:
            await shard.firing.step()

    await asyncio.gather(*[fire(shard, *each) for shard, each in led.items()])
    print("fired", flush=True)
    for shard in led:
        await shard.release()
    await store.close()


# --- a run ------------------------------------------------------------------------------------------------


class Figures(NamedTuple):
    per_second: float
    idle_cores: float


async def fired_by(processes: int, url: str, count: int, share: float | None = None) -> Figures | None:
    """Return the firing rate. None: processes can't be limited to a share of a core here."""
    rows = make_rows(count, seed=1)
    store = open_store(url, clock=SystemClock())
    await upgrade(store.database, shards=SHARDS)
    await fill(store, rows)
    await store.close()
    due = Counts(slot_of(row.schedule_id) % SHARDS for row in rows)
    started = []
    for first in range(processes):
        led = {number: due[number] for number in range(first, SHARDS, processes)}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.shards", "--lead", url, json.dumps(led)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        started.append(process)
    for process in started:
        assert await process.stdout.readline() == b"ready\n"  # type: ignore[union-attr]
    pids = [process.pid for process in started]
    with nullcontext(True) if share is None else capped(pids, share) as is_held:
        psutil.cpu_percent()
        begin = time.perf_counter()
        for process in started:
            process.stdin.write(b"go\n")  # type: ignore[union-attr]
        for process in started:
            assert await process.stdout.readline() == b"fired\n"  # type: ignore[union-attr]
        took = time.perf_counter() - begin
        idle = (1 - psutil.cpu_percent() / 100) * (psutil.cpu_count() or 1)
        for process in started:
            assert await process.wait() == 0
    return Figures(count / took, idle) if is_held else None


async def run(count: int, share: float | None) -> tuple[Figures, Figures] | None:
    """Return the figures for one process and for two, of the round with the median ratio."""
    rounds = []
    with bench_postgres() as new_url:
        for _ in range(ROUNDS):
            one = await fired_by(1, await new_url(), count, share)
            two = await fired_by(2, await new_url(), count, share)
            if one is None or two is None:
                return None
            rounds.append((one, two))
    rounds.sort(key=lambda each: each[1].per_second / each[0].per_second)
    return rounds[len(rounds) // 2]


def measured(count: int, share: float | None, mark: float) -> bool:
    found = uvloop.run(run(count, share))
    whom = f"scheduler with {share:.0%} of a core each" if share else "scheduler"
    if found is None:
        print(f"firing {SHARDS} shards, {whom}: not measured, processes can't be held to that here")
        return True
    one, two = found
    ratio = two.per_second / one.per_second
    print(
        f"firing {SHARDS} shards, {whom}: one {one.per_second:,.0f}/s ({one.idle_cores:.1f} of "
        f"{psutil.cpu_count()} cores idle), two {two.per_second:,.0f}/s ({two.idle_cores:.1f} idle): "
        f"{ratio:.2f} x   (mark: {mark})"
    )
    return ratio >= mark


def main(count: int = COUNT) -> bool:
    """Run both measurements. Return whether two schedulers met their targets."""
    return all([measured(count, None, NO_SLOWER), measured(count // 2, SHARE, MARK)])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--lead"]:
        spare_collector()
        shares = {int(number): count for number, count in json.loads(sys.argv[3]).items()}
        uvloop.run(fire_on_word(sys.argv[2], shares))
    else:
        sys.exit(not main(*(int(each) for each in sys.argv[1:])))

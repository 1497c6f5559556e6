"""Compares the template process of isolation with the forkserver of multiprocessing.

It prints figures and has no target. `python -c "from bench import isolation as it; it.main()"` measures: with
`-m`, each child of the forkserver would run this module again. See docs/decisions/0023.
"""

import asyncio
import multiprocessing
import os
import statistics
import subprocess
import time
from datetime import UTC, datetime
from multiprocessing.connection import Connection

import psutil

from foliot.kinds.function_target import describe_task
from foliot.kinds.target_protocol import Fire
from foliot.model.ids import new_id
from foliot.worker.isolation.processes import Processes

RUNS = 200


def began() -> dict[str, float]:
    """Return when the function began, and the memory of its process that no other shares."""
    at = time.perf_counter()
    return {"at": at, "mb": psutil.Process().memory_full_info().uss / 2**20}


def waits(seconds: str) -> None:
    """Start a program that leaves the process group, and wait."""
    subprocess.Popen(["sleep", seconds], start_new_session=True)
    time.sleep(600)


def fire() -> Fire:
    now = datetime.now(UTC)
    return Fire(new_id(now), new_id(now), "bench", now, 1, lambda *_: None)


def show(name: str, delays: list[float], all_ms: list[float], memory: list[float]) -> None:
    late_ms, memory_mb = sorted(delays)[-RUNS // 100], statistics.median(memory)
    print(
        f"{name:12} first line {statistics.median(delays):5.1f} ms, 99% {late_ms:5.1f} ms, "
        f"whole run {statistics.median(all_ms):5.1f} ms, {memory_mb:4.1f} MB per child"
    )


def sleepers(seconds: str) -> list[psutil.Process]:
    return [each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] == ["sleep", seconds]]


async def measure_template() -> None:
    tasks = {function.__name__: describe_task(function) for function in (began, waits)}
    processes = Processes(tasks.values())
    at = time.perf_counter()
    await processes.start()
    print(f"{'template':12} ready after {(time.perf_counter() - at) * 1e3:.0f} ms")
    delays, whole, memory = [], [], []
    for _ in range(RUNS):
        at = time.perf_counter()
        found = await processes.run(tasks["began"], {}, fire(), lambda _line: None)
        whole.append((time.perf_counter() - at) * 1e3)
        delays.append((found["at"] - at) * 1e3)
        memory.append(found["mb"])
    show("template", delays, whole, memory)
    seconds = f"600.{os.getpid()}1"
    waiting = processes.run(tasks["waits"], {"seconds": seconds}, fire(), lambda _line: None)
    running = asyncio.create_task(waiting)
    while not sleepers(seconds):  # noqa: ASYNC110 - another process can't set an event
        await asyncio.sleep(0.05)
    running.cancel()
    await asyncio.wait({running})
    print(f"{'template':12} after a cancel, {len(sleepers(seconds))} programs of the function are left")
    await processes.close()


def tell(connection: Connection) -> None:
    connection.send(began())


def measure_forkserver() -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["bench.isolation"])
    at = time.perf_counter()
    first = context.Process(target=time.time)
    first.start()
    first.join()
    print(f"{'forkserver':12} ready after {(time.perf_counter() - at) * 1e3:.0f} ms, with its first run")
    delays, whole, memory = [], [], []
    for _ in range(RUNS):
        mine, theirs = context.Pipe()
        at = time.perf_counter()
        process = context.Process(target=tell, args=(theirs,))
        process.start()
        found = mine.recv()
        process.join()
        whole.append((time.perf_counter() - at) * 1e3)
        delays.append((found["at"] - at) * 1e3)
        memory.append(found["mb"])
    show("forkserver", delays, whole, memory)
    seconds = f"600.{os.getpid()}2"
    process = context.Process(target=waits, args=(seconds,))
    process.start()
    while not sleepers(seconds):
        time.sleep(0.05)
    process.kill()
    process.join()
    left = sleepers(seconds)
    print(f"{'forkserver':12} after a kill, {len(left)} programs of the function are left")
    for each in left:
        each.kill()


def main() -> bool:
    asyncio.run(measure_template())
    measure_forkserver()
    return True

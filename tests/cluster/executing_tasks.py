"""What the workers of the tests of executing run: well-behaved work, and work that harms its worker.

Every run leaves a line first: the execution, the attempt, and the process it runs in.
"""

import asyncio
import os
import signal
import time
from pathlib import Path

from foliot import Fire, Foliot
from tests.engine import until

app = Foliot()
RUNS = Path(os.environ.get("RUN_LOG", "runs.log"))
eaten: list[bytes] = []


def leave_line(fire: Fire) -> None:
    """A short line is written in one piece, whoever else writes."""
    descriptor = os.open(RUNS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{fire.execution_id} {fire.attempt} {os.getpid()}\n".encode())
    finally:
        os.close(descriptor)


@app.task
async def nap(fire: Fire, seconds: float = 0.0) -> str:
    leave_line(fire)
    await asyncio.sleep(seconds)
    return "rested"


@app.task
async def wait_for_go(fire: Fire) -> str:
    """Work until the test says that it is enough."""
    leave_line(fire)
    await _go()
    return "went"


@app.task
async def stop_worker_once(fire: Fire) -> str:
    """Stop the worker's process in the first attempt; on waking there is nothing left to do but to settle."""
    leave_line(fire)
    if fire.attempt == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    return f"attempt {fire.attempt}"


@app.task
async def kill_worker_once(fire: Fire) -> None:
    """The first thing that the first attempt does is the last thing that its worker does."""
    leave_line(fire)
    if fire.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)


@app.task
async def kill_worker(fire: Fire) -> None:
    leave_line(fire)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task
async def eat(fire: Fire, megabytes: int) -> str:
    """Grow, keep it, and work on until the test says that it is enough."""
    leave_line(fire)
    eaten.append(os.urandom(2**20) * megabytes)
    await _go()
    return "full"


@app.task
def look(fire: Fire) -> None:
    """In a process of its own, since it is no coroutine."""
    leave_line(fire)


@app.task
def sleep_long(fire: Fire) -> None:
    leave_line(fire)
    time.sleep(60)


async def _go() -> None:
    await until(RUNS.with_name("go").exists, within_s=600)

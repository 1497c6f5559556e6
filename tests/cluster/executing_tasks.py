"""Tasks for the tests of executing: well-behaved ones, and ones that stop or kill their worker.

Every run first writes a line with the execution, the attempt and its process id. All are async: a worker with
other functions also starts a template process for them, which takes two seconds of CPU time.
"""

import asyncio
import os
import signal
from pathlib import Path

from foliot import Fire, Foliot
from tests.engine import until

app = Foliot()
RUNS = Path(os.environ.get("RUN_LOG", "runs.log"))
eaten: list[bytes] = []


def leave_line(fire: Fire) -> None:
    """Append a line to the log. A short line is one write, so lines of several processes never mix."""
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
    """Work until the test creates the file `go`."""
    leave_line(fire)
    await _go()
    return "went"


@app.task
async def stop_worker_once(fire: Fire) -> str:
    """Stop the worker's process in the first attempt. When it continues, it only has to settle."""
    leave_line(fire)
    if fire.attempt == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    return f"attempt {fire.attempt}"


@app.task
async def kill_worker_once(fire: Fire) -> None:
    """Kill the worker's process in the first attempt."""
    leave_line(fire)
    if fire.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)


@app.task
async def kill_worker(fire: Fire) -> None:
    leave_line(fire)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task
async def eat(fire: Fire, megabytes: int) -> str:
    """Allocate memory, and hold it until the test creates the file `go`."""
    leave_line(fire)
    eaten.append(os.urandom(2**20) * megabytes)
    await _go()
    return "full"


async def _go() -> None:
    await until(RUNS.with_name("go").exists, within_s=600)

"""A Celery application whose workers run Foliot's executions, with task functions that the tests observe.

Every run first writes a line with the execution, the attempt and its process id.
"""

import asyncio
import logging
import os
import time
from pathlib import Path

from celery import Celery

from foliot import Fire, Foliot
from foliot.contrib.celery import register

app = Celery("shop", broker=os.environ.get("CELERY_BROKER", "memory://"))
app.conf.update(
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    # Settings for the application's own tasks. They must not affect Foliot's.
    task_time_limit=2,
    task_acks_late=True,
    foliot_queues={"reports": "slow_lane"},
)
foliot = Foliot()
register(app, foliot)


def folder() -> Path:
    return Path(os.environ["CELERY_FOLDER"])


def leave_line(fire: Fire) -> None:
    """Append a line to the log. A short line is one write, so lines of several processes never mix."""
    descriptor = os.open(folder() / "runs.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{fire.execution_id} {fire.attempt} {os.getpid()}\n".encode())
    finally:
        os.close(descriptor)


@foliot.task
async def greet(fire: Fire, name: str = "you") -> str:
    leave_line(fire)
    logging.getLogger("shop").info("greeting %s", name)
    await fire.progress(0.5, "half way")
    return f"hello {name}"


@foliot.task
def plain(fire: Fire) -> int:
    leave_line(fire)
    return os.getpid()


@foliot.task
async def broken(fire: Fire) -> None:
    leave_line(fire)
    raise ValueError("no good")


@foliot.task
async def wait(fire: Fire) -> None:
    leave_line(fire)
    await asyncio.Event().wait()


@foliot.task
def nap(fire: Fire, seconds: float = 0.2) -> str:
    leave_line(fire)
    time.sleep(seconds)
    return "rested"

"""A Celery application like a user's, with tasks that the tests observe.

Every run first writes a line with the task's id and its process id.
"""

import os
import time
from pathlib import Path
from typing import Any

from celery import Celery

app = Celery(
    "shop",
    broker=os.environ.get("CELERY_BROKER", "memory://"),
    backend=os.environ.get("CELERY_BACKEND") or None,
)
app.conf.update(
    task_track_started=os.environ.get("CELERY_TRACK", "yes") == "yes",
    worker_prefetch_multiplier=1,
    # Redeliver lost messages earlier than by default.
    broker_transport_options={"visibility_timeout": 5}
    if "redis" in os.environ.get("CELERY_BROKER", "")
    else {},
    broker_connection_retry_on_startup=True,
)


def folder() -> Path:
    return Path(os.environ["CELERY_FOLDER"])


def leave_line(task_id: str) -> None:
    """Append a line to the log. A short line is one write, so lines of several processes never mix."""
    descriptor = os.open(folder() / "celery.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{task_id} {os.getpid()}\n".encode())
    finally:
        os.close(descriptor)


@app.task(bind=True)  # type: ignore[untyped-decorator]
def add(self: Any, left: int, right: int = 2, note: str = "") -> dict[str, Any]:
    leave_line(self.request.id)
    return {"sum": left + right, "note": note}


@app.task(bind=True)  # type: ignore[untyped-decorator]
def broken(self: Any, word: str = "no") -> None:
    leave_line(self.request.id)
    raise ValueError(f"{word} good")


@app.task(bind=True)  # type: ignore[untyped-decorator]
def wait_for_go(self: Any, fraction: float = 0.5) -> str:
    """Report progress, and work until the test creates the file `go`."""
    leave_line(self.request.id)
    self.update_state(state="PROGRESS", meta={"fraction": fraction, "text": "half way"})
    while not (folder() / "go").exists():
        time.sleep(0.02)
    return "went"


@app.task(bind=True, acks_late=True, reject_on_worker_lost=True)  # type: ignore[untyped-decorator]
def nap(self: Any, seconds: float = 0.2) -> str:
    leave_line(self.request.id)
    time.sleep(seconds)
    return "rested"

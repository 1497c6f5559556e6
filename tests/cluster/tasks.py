"""The task of the cluster tests. Each run appends a line to a file."""

import os
from pathlib import Path

from foliot import Fire, Foliot

app = Foliot()


@app.task
async def note(fire: Fire) -> None:
    """Append the execution's id. A short line is one write, so lines never mix."""
    descriptor = os.open(Path(os.environ["RUN_LOG"]), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{fire.execution_id} {fire.attempt}\n".encode())
    finally:
        os.close(descriptor)

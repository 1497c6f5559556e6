"""What the workers of the cluster tests run: each run leaves one line in a file of its own accord."""

import os
from pathlib import Path

from foliot import Fire, Foliot

app = Foliot()


@app.task
async def note(fire: Fire) -> None:
    """Append the execution's id; a short line is written in one piece."""
    descriptor = os.open(Path(os.environ["RUN_LOG"]), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{fire.execution_id} {fire.attempt}\n".encode())
    finally:
        os.close(descriptor)

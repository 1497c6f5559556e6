"""Tasks that run in processes of their own, because they are not async."""

import time

from foliot import Fire, Foliot
from tests.cluster.executing_tasks import leave_line

app = Foliot()


@app.task
def look(fire: Fire) -> None:
    leave_line(fire)


@app.task
def sleep_long(fire: Fire) -> None:
    leave_line(fire)
    time.sleep(60)

"""Foliot beside an existing Celery application, both ways.

As a target, a schedule sends a task that Celery has:

    celery -A examples.celery_shop:celery worker
    FOLIOT_CELERY_APP=examples.celery_shop:celery foliot up --tasks examples.celery_shop

As a transport, Celery's workers also carry out Foliot's own task functions:

    FOLIOT_CELERY_APP=examples.celery_shop:celery FOLIOT_TRANSPORT=celery foliot scheduler
    FOLIOT_DATABASE_URL=postgresql://… celery -A examples.celery_shop:celery worker
"""

import os

from celery import Celery

from foliot import Fire, Foliot, every
from foliot.contrib.celery import register

celery = Celery(
    "examples.celery_shop",
    broker=os.environ.get("CELERY_BROKER", "redis://localhost:6379/0"),
    backend=os.environ.get("CELERY_BACKEND", "redis://localhost:6379/0"),
)
celery.conf.task_track_started = True  # so that a task is followed, not sent again, when a worker is lost


@celery.task(name="shop.clean")  # type: ignore[untyped-decorator]
def clean(folder: str) -> int:
    """A task that the application has had all along."""
    return len(folder)


app = Foliot()
register(celery, app)


@app.task
async def count_stock(fire: Fire, shelf: str = "A") -> str:
    """A task function of Foliot's, which a Celery worker carries out when Celery is the transport."""
    return f"counted {shelf} for {fire.fire_ts:%F}"


app.schedule("count-stock", count_stock, when=every(minutes=5))

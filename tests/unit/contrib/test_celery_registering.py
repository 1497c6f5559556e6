"""The task that Foliot adds to a Celery application."""

import threading
from uuid import uuid4

import pytest
from celery import Celery
from examples import celery_shop

from foliot import Foliot
from foliot.brokers.celery_app import require_json_results
from foliot.contrib.celery import register


def test_one_task_is_added_which_speaks_json_and_keeps_nothing() -> None:
    app = Celery("shop", broker="memory://", set_as_current=False)
    app.conf.update(task_serializer="pickle", task_acks_late=True, task_time_limit=5, task_soft_time_limit=3)
    task = register(app, Foliot("memory"))
    assert app.tasks["foliot.execute"].name == task.name
    assert (task.serializer, task.ignore_result, task.acks_late) == ("json", True, False)
    assert min(task.time_limit, task.soft_time_limit) > 86400 * 365


def test_the_example_has_both_ways() -> None:
    assert {"shop.clean", "foliot.execute"} <= set(celery_shop.celery.tasks)
    assert {task.name for task in celery_shop.app.tasks} == {"count_stock"}
    require_json_results(celery_shop.celery)


def test_what_is_no_id_is_refused_before_anything_is_started() -> None:
    app = Celery("shop", broker="memory://", set_as_current=False)
    task = register(app, Foliot("postgresql://nobody@127.0.0.1:1/nothing"))
    with pytest.raises(ValueError, match="badly formed"):
        task.run("; drop table")
    assert "foliot-engine" not in {thread.name for thread in threading.enumerate()}


def test_an_engine_that_can_not_start_fails_the_ticket_and_not_the_next() -> None:
    """The message comes again: the leader sees that nobody took it."""
    app = Celery("shop", broker="memory://", set_as_current=False)
    task = register(app, Foliot("postgresql://nobody@127.0.0.1:1/nothing"))
    for _ in range(2):
        with pytest.raises(Exception, match=r"127\.0\.0\.1"):
            task.run(str(uuid4()))

"""Celery on Redis. Its task functions are not async, which costs nothing for a job that does nothing."""

import contextlib
import multiprocessing
import os
import signal
import time
from importlib import import_module
from typing import Any

celery: Any = import_module("celery")
signals: Any = import_module("celery.signals")
import_module("redis")

# Measured on two cores, in jobs/s: solo 800, threads 680, prefork 430 with one child and 670 with two.
POOL = "solo"
PREFETCH = 128
SETTINGS = f"--pool={POOL}, worker_prefetch_multiplier={PREFETCH}, no results, no gossip, mingle, heartbeat"
KEEPS = "nothing"


class Clock:
    """Start time, end time and remaining jobs, shared with processes that a pool may fork."""

    def __init__(self, count: int) -> None:
        self.started = multiprocessing.Value("d", 0.0)
        self.ended = multiprocessing.Value("d", 0.0)
        self.left = multiprocessing.Value("i", count)
        self.worker = os.getpid()

    def start(self, **_ignored: Any) -> None:
        self.started.value = time.perf_counter()

    def count(self) -> None:
        with self.left.get_lock():
            self.left.value -= 1
            is_last = self.left.value == 0
        if is_last:
            self.ended.value = time.perf_counter()
            os.kill(self.worker, signal.SIGTERM)


def _application(url: str, clock: Clock | None) -> tuple[Any, Any]:
    app = celery.Celery("bench", broker=url)
    app.conf.update(
        task_ignore_result=True,
        worker_prefetch_multiplier=PREFETCH,
        worker_enable_remote_control=False,
        worker_redirect_stdouts=False,
    )

    @app.task(name="noop")  # type: ignore[untyped-decorator]
    def noop() -> None:
        if clock is not None:
            clock.count()

    return app, noop


def fill(url: str, count: int) -> None:
    app, noop = _application(url, None)
    with app.producer_or_acquire() as producer:
        for _ in range(count):
            noop.apply_async(producer=producer)


def work(url: str, count: int) -> float:
    clock = Clock(count)
    app, _ = _application(url, clock)
    signals.worker_ready.connect(clock.start, weak=False)
    options = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=WARNING"]
    with contextlib.suppress(SystemExit):
        app.worker_main(["worker", f"--pool={POOL}", *options])
    return float(clock.ended.value - clock.started.value)

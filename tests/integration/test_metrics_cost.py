"""Being watched costs firing, claiming and settling no statement: the engine does the same, one for one."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry
from sqlalchemy import event

from foliot.db.database import Database
from foliot.db.dialect import Pool
from foliot.kinds.interval_trigger import every
from foliot.model.event import Observer
from foliot.sdk.app import Fire, Foliot
from foliot.telemetry import logs
from foliot.telemetry.health.readiness import Pulse
from foliot.telemetry.metrics import MetricsObserver
from foliot.telemetry.shipping import SpanQueue
from foliot.telemetry.traces import TraceObserver
from foliot.testing import TestApp
from tests.logging_state import logging_as_it_was

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SCHEDULES = 30
MINUTES = 10


def application() -> Foliot:
    """Some that succeed, some that fail and are tried again, some that overlap policy holds back."""
    app = Foliot()

    @app.task(retries=1)
    async def work(fire: Fire) -> str:
        if fire.attempt == 1 and int(fire.schedule_name) % 3 == 0:
            raise RuntimeError("told to")
        return fire.schedule_name

    for number in range(SCHEDULES):
        app.schedule(f"{number}", work, when=every(minutes=1 + number % 5), overlap="skip")
    return app


def statements_of(database: Database) -> list[tuple[Pool, str]]:
    """What is issued from now on."""
    issued: list[tuple[Pool, str]] = []

    def listener_of(pool: Pool) -> Callable[..., None]:
        def listener(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
            # Its beginning says what is done with which table; of its end more columns may be asked.
            issued.append((pool, statement[:40]))

        return listener

    for pool in (Pool.LEASE, Pool.FIRING, Pool.WORK):
        event.listen(database.engine(pool).sync_engine, "before_cursor_execute", listener_of(pool))
    return issued


async def issued_meanwhile(observers: Sequence[Observer]) -> list[tuple[Pool, str]]:
    async with TestApp(application(), now=NOW) as test:
        instance = test._instance
        assert instance is not None
        assert instance.scheduler is not None
        instance.scheduler.shards[0].statements.names_all = any(
            isinstance(each, TraceObserver) for each in observers
        )
        for observer in observers:
            instance.observer.add(observer)
        issued = statements_of(instance.store.database)
        await test.advance(minutes=MINUTES)
        return list(issued)


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    with logging_as_it_was():
        yield


async def test_all_observers_together_add_no_statement(capsys: pytest.CaptureFixture[str]) -> None:
    registry, spans = CollectorRegistry(), InMemorySpanExporter()
    logs.configure("json", "debug")
    traces = TraceObserver(SpanQueue("", spans), "one", ("scheduler", "worker"), lambda: NOW)
    pulse = Pulse(TestApp(Foliot(), now=NOW).clock)
    try:
        watched = await issued_meanwhile([MetricsObserver(registry), logs.LogObserver(), traces, pulse])
    finally:
        traces.close()
    # They were told of it all.
    fires = sum(MINUTES // (1 + number % 5) for number in range(SCHEDULES))
    assert registry.get_sample_value("foliot_scheduler_fires_total") == fires
    assert '"execution_retrying"' in capsys.readouterr().err
    assert len(spans.get_finished_spans()) > fires

    alone = await issued_meanwhile([])
    assert len(alone) > 100
    assert watched == alone

"""Benchmark of events: firing rate next to a raw baseline (the floor), and the relay's rate per broker.

The floor makes the same update, inserts (executions, event store, outbox) and offset counter, in the same
tables, indexes and batch size, directly with asyncpg and prepared values. It has no planning, no fence, no
check except the primary key, and builds no payload.
"""

import sys
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import asyncpg
import orjson
import uvloop
from sqlalchemy import delete, text, update
from tests.brokers import Broker, NatsBroker, RabbitBroker, RedisBroker, describe_kafka, open_kafka

from bench.firing import (
    _EXECUTION_COLUMNS,
    COUNT,
    PAST,
    ROUNDS,
    Figures,
    Row,
    fill,
    floor_values,
    make_rows,
    product,
)
from bench.servers import bench_postgres
from foliot.db.dialect import Pool
from foliot.db.hints import LocalHints
from foliot.db.migrate import upgrade
from foliot.db.tables.events import event_store_t, outbox_message_t
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.instance.preparation import spare_collector
from foliot.instance.store import SqlStore, open_store
from foliot.model.delivery_events import RelayConfirmed
from foliot.model.event import DomainEvent
from foliot.model.ids import DEFAULT_HOST_ID
from foliot.outbox.open_publisher import open_publisher
from foliot.outbox.relay import Relay, RelayOptions
from foliot.planning.events import NOBODY
from foliot.timing.clock import ClusterClock, SystemClock

MARK = 0.6
"""Minimum ratio of the firing rate to the floor."""
TARGET = {
    "kind": "event",
    "event_topic": "orders",
    "event_type": "OrdersDue",
    "event_data": {"region": "eu", "kinds": ["new", "late"], "limit": 500},
}


async def _make_due_again(store: SqlStore) -> None:
    due_ts = await store.now() - PAST
    async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
        await connection.execute(
            update(schedule_t).values(next_fire_ts=due_ts, next_run_ts=due_ts, event_seq=0)
        )
        for table in (execution_t, event_store_t, outbox_message_t):
            await connection.execute(delete(table))
    async with store.database.read(Pool.API) as connection:
        tables = "schedule_t, execution_t, event_store_t, outbox_message_t, schedule_status_t"
        await connection.execute(text(f"VACUUM ANALYZE {tables}"))


# --- the floor -------------------------------------------------------------------------------------

_EVENT_COLUMNS = (
    "id, host_id, user_id, nonce, aggregate_id, aggregate_version, aggregate_type, event_type, event_ts, "
    "payload"
)
_ADVANCE = """
    UPDATE schedule_t s SET next_fire_ts = v.next_ts, next_run_ts = v.next_ts,
        run_count = s.run_count + 1, state = 'active', paused = false, paused_until_ts = NULL,
        pause_reason = NULL, event_seq = s.event_seq + 1
    FROM unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[]) AS v(schedule_id, fire_ts, next_ts)
    WHERE s.schedule_id = v.schedule_id AND s.next_fire_ts = v.fire_ts RETURNING s.schedule_id, s.event_seq"""
_LEDGER = f"""
    INSERT INTO execution_t ({_EXECUTION_COLUMNS}, started_ts, duration_seconds, attempt)
    SELECT v.execution_id, v.schedule_id, $6::uuid, 1, v.fire_ts, 0, NULL, 'success', NULL, 'default',
           'medium', v.ready_ts, v.due_by_ts, v.ready_ts, v.ready_ts, 'scheduler', 'bench', v.ready_ts, 0, 1
    FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[])
         AS v(execution_id, schedule_id, fire_ts, ready_ts, due_by_ts)"""
_STATUS = """
    INSERT INTO schedule_status_t (schedule_id, last_run_ts, last_status, last_execution_id)
    SELECT v.schedule_id, v.at, 'success', v.execution_id
    FROM unnest($1::uuid[], $2::timestamptz[], $3::uuid[]) AS v(schedule_id, at, execution_id)
    ON CONFLICT (schedule_id) DO UPDATE SET last_run_ts = excluded.last_run_ts,
        last_execution_id = excluded.last_execution_id"""
_STORE = f"""
    INSERT INTO event_store_t ({_EVENT_COLUMNS})
    SELECT v.id, $5::uuid, $6::uuid, 1, v.aggregate_id, 1, 'Schedule', 'OrdersDue', v.at, v.payload::jsonb
    FROM unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::text[]) AS v(id, aggregate_id, at, payload)"""
_RESERVE = "UPDATE log_counter SET next_offset = next_offset + $1 WHERE id = 1 RETURNING next_offset - $1"
_SHIP = f"""
    INSERT INTO outbox_message_t ({_EVENT_COLUMNS}, c_offset, transaction_id, transaction_ordinal,
        transaction_count, event_topic)
    SELECT v.id, $5::uuid, $6::uuid, 1, v.aggregate_id, 1, 'Schedule', 'OrdersDue', v.at, v.payload::jsonb,
           $7::bigint + v.number - 1, $8::uuid, v.number - 1, $9::integer, 'orders'
    FROM unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::text[]) WITH ORDINALITY
         AS v(id, aggregate_id, at, payload, number)"""


async def floor(url: str, rows: list[Row]) -> float:
    connection = await asyncpg.connect(url)
    due_ts = await connection.fetchval("SELECT max(next_run_ts) FROM schedule_t")
    batches = floor_values(rows, due_ts, datetime.now(UTC))
    payloads = [[_payload(each[3], each[0], each[1]) for each in batch] for batch in batches]
    names = [[str(each[0]) for each in batch] for batch in batches]
    started = time.perf_counter()
    for batch, aggregates, payload in zip(batches, names, payloads, strict=True):
        ids, fires, nexts, executions, readies, dues = zip(*batch, strict=True)
        events: list[Any] = [executions, aggregates, fires, payload, DEFAULT_HOST_ID, NOBODY]
        async with connection.transaction():
            await connection.fetch(_ADVANCE, ids, fires, nexts)
            await connection.execute(_LEDGER, executions, ids, fires, readies, dues, DEFAULT_HOST_ID)
            await connection.execute(_STATUS, ids, readies, executions)
            await connection.execute(_STORE, *events)
            first = await connection.fetchval(_RESERVE, len(batch))
            await connection.execute(_SHIP, *events, first, uuid.uuid4(), len(batch))
    elapsed = time.perf_counter() - started
    await connection.close()
    return len(rows) / elapsed


def _payload(execution_id: uuid.UUID, schedule_id: uuid.UUID, fire_ts: datetime) -> str:
    document = {
        "specversion": "1.0",
        "id": str(execution_id),
        "source": f"/foliot/schedules/{schedule_id}",
        "type": TARGET["event_type"],
        "subject": str(schedule_id),
        "time": fire_ts.isoformat(),
        "datacontenttype": "application/json",
        "host": str(DEFAULT_HOST_ID),
        "user": str(NOBODY),
        "nonce": 1,
        "aggregatetype": "Schedule",
        "aggregateversion": 1,
        "data": TARGET["event_data"],
    }
    return orjson.dumps(document).decode()


# --- the relay -------------------------------------------------------------------------------------


class _Shipped:
    def __init__(self) -> None:
        self.count = 0

    def notify(self, event: DomainEvent) -> None:
        if isinstance(event, RelayConfirmed):
            self.count += event.count


async def relayed(store: SqlStore, address: str, count: int) -> float:
    """Return events per second, from a full outbox to the broker's last confirmation."""
    clock = ClusterClock(SystemClock())
    clock.observe(await store.now(), clock.monotonic())
    shipped = _Shipped()
    options = RelayOptions(ttl_s=60, heartbeat_s=20, poll_s=1)
    relay = Relay("bench", store.relays, open_publisher(address), clock, LocalHints(), shipped, options)
    await relay.leadership.step()
    try:
        started = time.perf_counter()
        while shipped.count < count:
            await relay.step()
        return count / (time.perf_counter() - started)
    finally:
        await relay.release()
        await relay.close()


# --- a run -----------------------------------------------------------------------------------------


async def opened(url: str, rows: list[Row]) -> SqlStore:
    store = open_store(url, clock=SystemClock(), ttl_s=60)
    await upgrade(store.database)
    await fill(store, rows)
    async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
        await connection.execute(update(schedule_t).values(target=TARGET))
    async with store.database.read(Pool.API) as connection:
        await connection.execute(text("VACUUM ANALYZE schedule_t"))
    return store


async def fired(count: int) -> Figures:
    """Return the round with the median ratio. Foliot and the floor alternate."""
    rounds: list[Figures] = []
    with bench_postgres() as new_url:
        for number in range(ROUNDS):
            rows = make_rows(count, seed=number)
            store = await opened(await new_url(), rows)
            first, again = await product(store, count, _make_due_again)
            await store.close()
            url = await new_url()
            await (await opened(url, rows)).close()
            rounds.append(Figures(first, again, await floor(url, rows)))
    rounds.sort(key=lambda each: each.again / each.floor)
    return rounds[len(rounds) // 2]


BROKERS: dict[str, Callable[[], Broker]] = {
    "Redis Streams": RedisBroker,
    "NATS JetStream": NatsBroker,
    "RabbitMQ": RabbitBroker,
    "Kafka": open_kafka,
}


async def shipped_to_each(count: int) -> dict[str, float]:
    found = {}
    for name, start in BROKERS.items():
        broker = start()
        try:
            with bench_postgres() as new_url:
                rows = make_rows(count, seed=1)
                url = await new_url()
                await (await opened(url, rows)).close()
                await floor(url, rows)  # the fastest way to fill an outbox
                store = open_store(url, clock=SystemClock(), ttl_s=60)
                found[name] = await relayed(store, broker.url, count)
                await store.close()
        finally:
            broker.remove()
    return found


def main() -> bool:
    """Run the benchmark. Return whether the firing rate met its target."""
    spare_collector()
    figures = uvloop.run(fired(COUNT))
    print(f"events on postgresql {figures}   (mark: {MARK:.0%})")
    print(describe_kafka())
    for name, rate in uvloop.run(shipped_to_each(COUNT)).items():
        print(f"relay to {name:15} {rate:>8,.0f} events/s")
    return figures.again / figures.floor >= MARK


if __name__ == "__main__":
    sys.exit(not main())

"""Readiness: what makes an instance unready, and that it says so."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from foliot.db.migrate import upgrade
from foliot.db.replica import ReplicaState, ReplicaWatch
from foliot.instance.store import SqlStore, open_store
from foliot.model.event import BatchFired, Observers, TickCompleted
from foliot.model.instance_events import LeaderElected, LeaseLost, LeaseReleased
from foliot.telemetry.health.readiness import KEPT_S, Pulse, Readiness, silence_limit_s
from foliot.timing.clock import VirtualClock

LIMIT_S = 10.0


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))


@pytest.fixture
def pulse(clock: VirtualClock) -> Pulse:
    return Pulse(clock)


@pytest.fixture
async def empty_store(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[SqlStore]:
    store = open_store(f"sqlite:///{tmp_path / 'foliot.db'}", clock=clock)
    yield store
    await store.close()


@pytest.fixture
async def store(empty_store: SqlStore) -> SqlStore:
    await upgrade(empty_store.database)
    return empty_store


def _readiness(store: SqlStore, pulse: Pulse, *, is_running: bool = True) -> Readiness:
    return Readiness(store.database, pulse, is_running=lambda: is_running, limit_s=LIMIT_S)


def _elected() -> LeaderElected:
    return LeaderElected(shard=0, epoch=1, instance_id="one")


def _ticked() -> TickCompleted:
    return TickCompleted(shard=0, checked=0, wheel_size=0, lag_s=0, duration_s=0)


async def test_a_running_instance_with_its_database_is_ready(store: SqlStore, pulse: Pulse) -> None:
    assert await _readiness(store, pulse).problems() == []


async def test_an_instance_that_starts_or_stops_is_not_ready(store: SqlStore, pulse: Pulse) -> None:
    found = await _readiness(store, pulse, is_running=False).problems()
    assert found == ["the instance is starting or stopping"]


async def test_a_database_without_schema_is_not_ready(
    empty_store: SqlStore, pulse: Pulse, clock: VirtualClock
) -> None:
    readiness = _readiness(empty_store, pulse)
    assert await readiness.problems() == ["the database's schema needs an upgrade"]
    await upgrade(empty_store.database)
    clock.advance(KEPT_S)
    assert await readiness.problems() == []


async def test_a_database_out_of_reach_is_not_ready_and_its_place_is_not_told(
    tmp_path: Path, clock: VirtualClock, pulse: Pulse
) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'no-folder' / 'foliot.db'}", clock=clock)
    assert await _readiness(store, pulse).problems() == ["the database can't be reached"]
    await store.close()


async def test_a_leader_that_stops_ticking_is_not_ready(
    store: SqlStore, pulse: Pulse, clock: VirtualClock
) -> None:
    readiness = _readiness(store, pulse)
    pulse.notify(_elected())
    clock.advance(LIMIT_S + 1)
    assert await readiness.problems() == ["shard 0 is led from here, but has not ticked for 11.0 s"]
    pulse.notify(_ticked())
    assert await readiness.problems() == []


def test_a_leader_busy_with_a_backlog_gives_signs_of_life(pulse: Pulse, clock: VirtualClock) -> None:
    pulse.notify(_elected())
    clock.advance(LIMIT_S + 1)
    pulse.notify(
        BatchFired(shard=0, epoch=1, instance_id="one", fired=(), skipped=(), refused=0, duration_s=0)
    )
    assert pulse.silent(LIMIT_S) == {}


@pytest.mark.parametrize("event", [LeaseLost(0, 1, "it ran out"), LeaseReleased(0, 1)])
def test_a_shard_that_is_no_longer_led_is_not_expected_to_tick(
    event: LeaseLost | LeaseReleased, pulse: Pulse, clock: VirtualClock
) -> None:
    pulse.notify(_elected())
    pulse.notify(event)
    pulse.notify(_ticked())
    clock.advance(LIMIT_S + 1)
    assert pulse.silent(LIMIT_S) == {}


async def test_an_instance_whose_service_is_stuck_is_not_ready(store: SqlStore, pulse: Pulse) -> None:
    stuck = {"worker": 12.34}
    readiness = Readiness(
        store.database,
        pulse,
        is_running=lambda: True,
        limit_s=LIMIT_S,
        stuck=lambda limit_s: {name: age_s for name, age_s in stuck.items() if age_s > limit_s},
    )
    assert await readiness.problems() == ["service worker has not come to a good end for 12.3 s"]
    stuck["worker"] = LIMIT_S
    assert await readiness.problems() == []


@pytest.mark.parametrize(("poll_s", "ttl_s", "limit_s"), [(1, 3, 10), (5, 3, 15), (1, 60, 180)])
def test_slow_paces_make_patience_longer(poll_s: float, ttl_s: float, limit_s: float) -> None:
    assert silence_limit_s(poll_s, ttl_s) == limit_s


async def test_while_a_replica_is_read_from_what_waits_for_the_primary_does_not_count(
    tmp_path: Path, clock: VirtualClock, pulse: Pulse
) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'no-folder' / 'foliot.db'}", clock=clock)
    watch = ReplicaWatch(store.database, store.database, Observers(), max_lag_s=5)
    readiness = Readiness(
        store.database,
        pulse,
        is_running=lambda: True,
        limit_s=LIMIT_S,
        stuck=lambda _limit_s: {"worker": 60.0},
        replica=watch,
    )
    away = ["the database can't be reached", "service worker has not come to a good end for 60.0 s"]
    assert await readiness.problems() == away
    watch.standing = ReplicaState(is_primary_away=True, is_replica_away=False)
    assert await readiness.problems() == []
    await store.close()


async def test_the_database_is_asked_once_a_second_however_many_ask(
    store: SqlStore, pulse: Pulse, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    now = store.database.now

    async def counted(*args: Any) -> Any:
        nonlocal asked
        asked += 1
        return await now(*args)

    monkeypatch.setattr(store.database, "now", counted)
    readiness = _readiness(store, pulse)
    assert await asyncio.gather(*(readiness.problems() for _ in range(50))) == [[]] * 50
    assert await readiness.problems() == []
    assert asked == 1
    clock.advance(KEPT_S)
    assert await asyncio.gather(*(readiness.problems() for _ in range(50))) == [[]] * 50
    assert asked == 2


async def test_a_caller_that_goes_away_does_not_stop_the_probe_for_others(
    store: SqlStore, pulse: Pulse
) -> None:
    readiness = _readiness(store, pulse)
    gone, waiting = (asyncio.create_task(readiness.problems()) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    assert await waiting == []

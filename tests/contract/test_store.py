"""The store's contract over both databases, and what each of them promises besides."""

from datetime import UTC, datetime

import pytest
from tests.conftest import OpenStore

from foliot.store.sql import SqlStore
from foliot.testing.conformance.scene import Scene
from foliot.testing.conformance.store import StoreConformance
from foliot.timing.clock import Clock, SystemClock, VirtualClock


@pytest.fixture
async def scene(database_url: str, open_test_store: OpenStore) -> Scene:
    # SQLite's clock stands still for the whole test; PostgreSQL has its own.
    is_virtual = database_url.startswith("sqlite")
    clock: Clock = VirtualClock(datetime(2026, 3, 1, 12, tzinfo=UTC)) if is_virtual else SystemClock()

    async def open_another() -> SqlStore:
        return await open_test_store(database_url, clock=clock)

    return Scene(await open_another(), open_another)


class TestStore(StoreConformance):
    """Every part of the contract, on SQLite and on PostgreSQL."""

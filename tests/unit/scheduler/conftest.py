"""A leader over SQLite, on a virtual clock."""

from datetime import UTC, datetime

import pytest
from tests.conftest import OpenStore
from tests.unit.scheduler.leader import Leader

from foliot.timing.clock import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))


@pytest.fixture
async def leader(sqlite_url: str, open_test_store: OpenStore, clock: VirtualClock) -> Leader:
    return Leader(await open_test_store(sqlite_url, clock=clock), clock)

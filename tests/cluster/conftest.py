"""Fixtures for the tests of executing under faults."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.cluster.agent import Agent
from tests.cluster.scene import Scene
from tests.conftest import OpenStore


@pytest.fixture
async def scene(postgres_url: str, open_test_store: OpenStore, tmp_path: Path) -> AsyncIterator[Scene]:
    found = Scene(postgres_url, await open_test_store(postgres_url), tmp_path)
    try:
        yield found
    finally:
        found.nodes.end()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    found = Agent(tmp_path)
    try:
        yield found
    finally:
        found.end()

from collections.abc import Iterator

import pytest

from tests.simulation.memory import Memory


@pytest.fixture(scope="package")
def memory() -> Iterator[Memory]:
    memory = Memory()
    yield memory
    memory.close()

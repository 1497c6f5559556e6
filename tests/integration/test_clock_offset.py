"""Every instance knows how far its clock is from the database's, also while it leads nothing."""

from datetime import datetime, timedelta

import pytest

from foliot.instance.spec import InstanceRole
from foliot.model.instance_events import ClockObserved
from foliot.timing.clock import SystemClock
from tests.conftest import OpenStore
from tests.engine import SCHEDULER, WORKER, running, seen, until

WITHIN_S = 60.0
OFF_S = 600.0


class WrongClock(SystemClock):
    """A wall clock that somebody can set."""

    ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.ahead


@pytest.mark.parametrize("roles", [WORKER, SCHEDULER])
async def test_a_clock_that_is_set_wrong_is_told_and_shown_and_moves_nothing(
    postgres_url: str, open_test_store: OpenStore, roles: frozenset[InstanceRole]
) -> None:
    store = await open_test_store(postgres_url)
    clock = WrongClock()
    async with running(postgres_url, roles=roles, clock=clock) as (instance, recorder):

        async def shown_s() -> float:
            instance._presence.wake.set()
            listed = await store.registry_list.instances(lease_ttl_s=60.0)
            # Its first word may not have come yet.
            return next((each.clock_offset_s or 0.0 for each in listed), float("nan"))

        async def is_right() -> bool:
            return abs(await shown_s()) < OFF_S / 2

        async def is_wrong() -> bool:
            return abs(await shown_s() - OFF_S) < OFF_S / 2

        await until(is_right, within_s=WITHIN_S)
        clock.ahead = timedelta(seconds=OFF_S)
        await until(is_wrong, within_s=WITHIN_S)
        assert seen(recorder, ClockObserved)[-1].offset_s == pytest.approx(OFF_S, abs=OFF_S / 2)
        assert abs((instance.clock.now() - await store.now()).total_seconds()) < OFF_S / 2
        clock.ahead = timedelta(0)
        await until(is_right, within_s=WITHIN_S)

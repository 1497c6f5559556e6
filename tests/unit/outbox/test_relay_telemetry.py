"""What the relay does is counted: how much waits, what was confirmed, and which instance is active."""

from datetime import UTC, datetime
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from foliot.db.hints import LocalHints
from foliot.model.delivery_events import (
    OutboxMeasured,
    RelayConfirmed,
    RelayLost,
    RelayReleased,
    RelayTookOver,
)
from foliot.model.errors import BrokerUnreachableError
from foliot.model.instance_events import RedisFailed
from foliot.outbox.publisher import Publisher, RelayTerm
from foliot.outbox.relay import Relay, RelayOptions
from foliot.outbox.relays_sql import RelayLeaseState, Relays
from foliot.telemetry.metrics import MetricsObserver
from foliot.testing.app import Recorder
from foliot.timing.clock import ClusterClock, VirtualClock

NOW = datetime(2026, 3, 29, 1, 0, tzinfo=UTC)


def test_the_lag_is_what_was_told_last_and_ends_with_being_active() -> None:
    registry = CollectorRegistry()
    metrics = MetricsObserver(registry)

    def shown(name: str) -> float | None:
        return registry.get_sample_value(f"foliot_{name}")

    assert (shown("outbox_lag"), shown("relay_is_active"), shown("relay_messages_total")) == (0, 0, 0)
    metrics.notify(RelayTookOver(3, "node-1"))
    metrics.notify(OutboxMeasured(700))
    assert (shown("outbox_lag"), shown("relay_is_active")) == (700, 1)
    metrics.notify(RelayConfirmed(500, 500, 200))
    assert (shown("outbox_lag"), shown("relay_messages_total")) == (200, 500)
    metrics.notify(RelayLost(3, "because"))
    assert (shown("outbox_lag"), shown("relay_is_active")) == (0, 0)
    metrics.notify(RelayTookOver(5, "node-1"))
    metrics.notify(OutboxMeasured(7))
    metrics.notify(RelayReleased(5))
    assert (shown("outbox_lag"), shown("relay_is_active")) == (0, 0)
    assert shown("scheduler_elections_total") == 0, "it is no scheduler's"


# --- a broker that does not answer --------------------------------------------------------------------


class Row:
    """The relay's row, which is ours at once."""

    async def take(self, _instance_id: str, _ttl_s: float) -> RelayLeaseState:
        return RelayLeaseState(True, NOW, 3, 1, 0)

    async def position(self, _instance_id: str, _epoch: int) -> int:
        return 1

    async def parked(self) -> dict[str, int]:
        return {}

    async def outbox_id(self) -> str:
        return "outbox"


class Away:
    """A publisher whose broker is."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def begin(self, _term: RelayTerm) -> None:
        raise BrokerUnreachableError("no answer")


@pytest.mark.parametrize(("kind", "count"), [("redis", 2), ("rabbitmq", 0)])
async def test_every_time_that_redis_does_not_take_the_outbox_is_told(kind: str, count: int) -> None:
    recorder, clock = Recorder(), ClusterClock(VirtualClock(NOW))
    row, publisher = cast("Relays", Row()), cast("Publisher", Away(kind))
    options = RelayOptions(3.0, 1.0, 1.0)
    relay = Relay("one", row, publisher, clock, LocalHints(), recorder, options)
    await relay.leadership.step()
    for _ in range(2):
        with pytest.raises(BrokerUnreachableError):
            await relay.step()
    told = [event for event in recorder.events if isinstance(event, RedisFailed)]
    assert told == [RedisFailed("relay", "no answer")] * count

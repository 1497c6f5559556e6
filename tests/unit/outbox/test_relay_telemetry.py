"""What the relay does is counted: how much waits, what was confirmed, and which instance is active."""

from prometheus_client import CollectorRegistry

from foliot.model.event import OutboxMeasured, RelayConfirmed, RelayLost, RelayReleased, RelayTookOver
from foliot.telemetry.metrics import MetricsObserver


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

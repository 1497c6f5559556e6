"""Metrics of transports, the relay, consumers and notifications."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from foliot.model.delivery_events import (
    ConsumerLagChanged,
    EventsConsumed,
    NotificationDecided,
    NotificationDelivered,
    NotificationFailed,
    OutboxMeasured,
    RelayConfirmed,
    RelayLost,
    RelayReleased,
    RelayTookOver,
    TicketsRepublished,
    TransportLost,
    TransportRecovered,
)
from foliot.model.notification import NotificationType
from foliot.telemetry.dispatch import Dispatch
from foliot.telemetry.instruments import Instruments

NOTIFICATION_RESULTS = ("decided", "delivered", "retried", "dead")


class DeliveryMetrics:
    """Registers handlers that count delivery events."""

    def __init__(self, observer: Dispatch, registry: CollectorRegistry) -> None:
        self._observer = observer
        self._make = Instruments(registry)
        self._add_transports()
        self._add_consuming()
        self._add_relay()
        self._add_notifications()

    # --- transports -------------------------------------------------------------------------------

    def _add_transports(self) -> None:
        # One series per kind of broker that this process uses and that was unreachable at least once.
        self._is_away = self._make.by(
            "kind",
            Gauge,
            "transport_is_away",
            "1 while the broker does not answer and workers look into the database instead",
        )
        self._losses = self._make.counter("transport_losses", "Times that a broker stopped answering")
        self._republished = self._make.counter(
            "transport_republished", "Messages published again because nobody had claimed their executions"
        )
        self._observer.on(TransportLost, self._transport_lost)
        self._observer.on(TransportRecovered, lambda recovered: self._is_away.labels(recovered.kind).set(0))
        self._observer.on(TicketsRepublished, lambda event: self._republished.inc(event.count))

    def _transport_lost(self, lost: TransportLost) -> None:
        self._losses.inc()
        self._is_away.labels(lost.kind).set(1)

    # --- consuming --------------------------------------------------------------------------------

    def _add_consuming(self) -> None:
        # Group names come from code, so there are few.
        self._consumed = self._make.by(
            "group", Counter, "consumer_events_total", "Events that a group has handled"
        )
        self._dead = self._make.by(
            "group", Counter, "consumer_dead_events_total", "Events that became dead letters of a group"
        )
        self._consumer_lag = self._make.by(
            "group", Gauge, "consumer_lag", "Offsets from a group's last partition to the end of the outbox"
        )
        self._observer.on(EventsConsumed, self._events_consumed)
        self._observer.on(ConsumerLagChanged, self._consumer_lag_changed)

    def _consumer_lag_changed(self, changed: ConsumerLagChanged) -> None:
        self._consumer_lag.labels(changed.group).set(changed.lag)
        # Exported before a group's first event, so that its first dead letter shows as an increase.
        self._consumed.labels(changed.group)
        self._dead.labels(changed.group)

    def _events_consumed(self, batch: EventsConsumed) -> None:
        self._consumed.labels(batch.group).inc(batch.handled)
        self._dead.labels(batch.group).inc(batch.dead)

    # --- the relay --------------------------------------------------------------------------------

    def _add_relay(self) -> None:
        self._relayed = self._make.counter(
            "relay_messages", "Messages of the outbox that the broker confirmed"
        )
        self._is_relay = self._make.gauge("relay_is_active", "1 while this instance ships the outbox")
        self._outbox_lag = self._make.gauge(
            "outbox_lag", "Messages committed and not yet confirmed by the broker; 0 where nobody looks"
        )
        self._observer.on(RelayTookOver, lambda _: self._is_relay.set(1))
        self._observer.on(RelayLost, self._relay_ended)
        self._observer.on(RelayReleased, self._relay_ended)
        self._observer.on(RelayConfirmed, self._relay_confirmed)
        self._observer.on(OutboxMeasured, lambda measured: self._outbox_lag.set(measured.lag))

    def _relay_confirmed(self, confirmed: RelayConfirmed) -> None:
        self._relayed.inc(confirmed.count)
        self._outbox_lag.set(confirmed.lag)

    def _relay_ended(self, _ended: RelayLost | RelayReleased) -> None:
        # From now on another instance measures the lag.
        self._is_relay.set(0)
        self._outbox_lag.set(0)

    # --- notifications ----------------------------------------------------------------------------

    def _add_notifications(self) -> None:
        self._notifications = self._make.counters_by_two(
            "notifications",
            "Messages that were decided, delivered, tried in vain, or given up",
            ("kind", "result"),
            NotificationType,
            NOTIFICATION_RESULTS,
        )
        self._observer.on(NotificationDecided, lambda event: self._count(event.kind, "decided"))
        self._observer.on(NotificationDelivered, lambda event: self._count(event.kind, "delivered"))
        self._observer.on(
            NotificationFailed,
            lambda event: self._count(event.kind, "dead" if event.retry_in_s is None else "retried"),
        )

    def _count(self, kind: str, result: str) -> None:
        self._notifications[kind, result].inc()

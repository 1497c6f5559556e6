"""Claim due messages, send them, and retry those that did not arrive.

Delivery is at least once. If a sender dies between sending and writing the result, the message is due again
when its lease ends. It keeps its id, so a receiver can recognise the duplicate.

A step refills free slots at once, for the duration of one send timeout. Then it waits for all running sends,
because none may outlive the step. Rules with unreachable receivers are tried at the start of a step, so that
the step does not have to wait for them at its end.
"""

import asyncio
from datetime import datetime

from pydantic import ValidationError

from foliot.access.stored_text import kept_text
from foliot.db.hints import Hint, Hints
from foliot.kinds.target_protocol import AttemptFailedError
from foliot.model.delivery_events import NotificationDelivered, NotificationFailed
from foliot.model.event import Observer
from foliot.model.execution import Status
from foliot.model.notification import DeliveryState, NotificationRuleSpec, NotificationType
from foliot.model.policy import Delivery, RetryPolicy
from foliot.notifications.deliveries_sql import Deliveries, DeliveryResult, DueNotification
from foliot.notifications.delivery import TIMEOUT_S, Sender
from foliot.notifications.send_order import AT_ONCE, MAX_OF_RULE, SendOrder
from foliot.planning.outcome import outcome_of
from foliot.service import Wake
from foliot.timing.clock import ClusterClock

__all__ = ["AT_ONCE", "MAX_OF_RULE", "MessageSender"]

LEASE_S = 4 * TIMEOUT_S
"""Lease of a claimed message: longer than a try takes, with reading secrets and writing the result."""
MIN_EVERY_S = 1.0
ERROR_LENGTH = 500
RETRY = RetryPolicy(max_attempts=10, initial_delay_seconds=1, multiplier=3, max_delay_seconds=3600)
"""Ten tries over about two hours, with delays of 1 s, 3 s, 9 s … up to one hour."""


class MessageSender:
    """A service that delivers notifications. Without due messages, a step is one index lookup."""

    name = "courier"

    def __init__(
        self,
        notifications: Deliveries,
        sender: Sender,
        clock: ClusterClock,
        hints: Hints,
        observer: Observer,
        *,
        every_s: float,
    ) -> None:
        self.wake = Wake()
        self._notifications = notifications
        self._sender = sender
        self._clock = clock
        self._observer = observer
        self._every_s = max(MIN_EVERY_S, every_s)
        self._turns = SendOrder()
        hints.listen(Hint.NOTIFICATIONS, lambda _ids: self.wake.set())

    async def step(self) -> float | None:
        under_way: set[asyncio.Task[None]] = set()
        began_at = self._clock.monotonic()
        try:
            await self._fill(under_way)
            await self._try_again(under_way)
            while True:
                if not under_way:
                    self._turns.forget(self._clock.monotonic())
                    return self._every_s
                # Wakes when a try ends, when a hint arrives, or after the poll interval.
                await self.wake.wait(self._every_s)
                for each in [each for each in under_way if each.done()]:
                    under_way.remove(each)
                    each.result()
                if self._clock.monotonic() - began_at < TIMEOUT_S:
                    await self._fill(under_way)
        except asyncio.CancelledError:
            for each in under_way:
                each.cancel()
            raise
        finally:
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _fill(self, under_way: set[asyncio.Task[None]]) -> None:
        """Claim and start sends until all slots are taken or nothing more is due."""
        turns = self._turns
        while turns.places > 0:
            found = await self._notifications.claim(
                limit=turns.at_a_time,
                lease_s=LEASE_S,
                but_rules=turns.busy_rules(),
                but_hosts=turns.busy_hosts(),
            )
            under_way |= {self._begin(each) for each in found}
            if not found:
                break

    async def _try_again(self, under_way: set[asyncio.Task[None]]) -> None:
        """Start a few sends for rules whose receivers were unreachable."""
        turns = self._turns
        away = turns.worth_a_try(self._clock.monotonic())
        if away and turns.probes > 0:
            found = await self._notifications.claim_of(away, limit=turns.probes, lease_s=LEASE_S)
            under_way |= {self._begin(each) for each in found}

    def _begin(self, due: DueNotification) -> asyncio.Task[None]:
        self._turns.begin(due.rule_id, due.host_id, self._clock.monotonic())
        task = asyncio.create_task(self._deliver(due))
        task.add_done_callback(lambda _task: self.wake.set())
        return task

    async def _deliver(self, due: DueNotification) -> None:
        why = silenced(due, self._clock.now())
        began_at = self._clock.monotonic()
        error: AttemptFailedError | None = None
        try:
            if why is None:
                error = await self._try(due)
        finally:
            is_well = None if why is not None else error is None or error.is_permanent
            at = self._clock.monotonic()
            self._turns.end(due.rule_id, due.host_id, at, began_at=began_at, is_well=is_well)
        if why is not None:
            # This is not a failure: no event is published, so that no alarm counts it.
            await self._notifications.settle(DeliveryResult(due, DeliveryState.DEAD, why))
            return
        delivery = DeliveryResult(due, DeliveryState.DELIVERED) if error is None else self._failed(due, error)
        if await self._notifications.settle(delivery):
            self._tell(delivery)

    async def _try(self, due: DueNotification) -> AttemptFailedError | None:
        """Send a message; return why it did not arrive. None: it did."""
        try:
            await self._sender.send(due, self._clock.now())
        except AttemptFailedError as error:
            return error
        except Exception as error:
            # An unexpected error must neither stop the other sends nor lose this message.
            return AttemptFailedError(f"{type(error).__name__} while sending")
        return None

    def _failed(self, due: DueNotification, error: AttemptFailedError) -> DeliveryResult:
        now = self._clock.now()
        outcome = outcome_of(
            Status.FAILED,
            retry=RETRY,
            delivery=Delivery.AT_LEAST_ONCE,
            failures=due.failures + 1,
            execution_id=due.notification_id,
            now=now,
            is_permanent=error.is_permanent,
            retry_after_s=error.retry_after_s,
        )
        said = kept_text(str(error), limit=ERROR_LENGTH)
        if outcome.ready_ts is None:
            return DeliveryResult(due, DeliveryState.DEAD, said)
        return DeliveryResult(due, DeliveryState.PENDING, said, (outcome.ready_ts - now).total_seconds())

    def _tell(self, delivery: DeliveryResult) -> None:
        due = delivery.due
        if delivery.status is DeliveryState.DELIVERED:
            event = NotificationDelivered(due.notification_id, due.type.value, due.attempts)
            self._observer.notify(event)
        else:
            self._observer.notify(
                NotificationFailed(
                    due.notification_id,
                    due.type.value,
                    due.attempts,
                    delivery.error or "",
                    delivery.retry_in_s,
                )
            )


def silenced(due: DueNotification, now: datetime) -> str | None:
    """Return why a decided message is not sent now. None: send it. Test messages are always sent."""
    if due.type is NotificationType.TEST or due.rule is None:
        return None
    try:
        spec = NotificationRuleSpec.model_validate(due.rule, extra="ignore")
    except ValidationError:
        return None  # the sender reports an unreadable rule
    if not spec.enabled:
        return "not sent: its rule is disabled"
    if spec.muted_until_ts is not None and now < spec.muted_until_ts:
        return "not sent: its rule is muted"
    return "not sent: its schedule is paused or deleted" if due.is_held else None

"""Takes messages that are due, sends them, and tries again what did not arrive.

At least once: one that dies between sending and writing so leaves a message that is due again when its lease
ends. It carries the same id, by which a receiver can tell.
"""

import asyncio
from collections import Counter

from foliot.model.event import NotificationDelivered, NotificationFailed, Observer
from foliot.model.execution import Status
from foliot.model.notification import DeliveryState
from foliot.model.policy import Delivery as DeliveryPolicy
from foliot.model.policy import Retry
from foliot.notifying.sending import TIMEOUT_S, Sender
from foliot.planning.outcome import outcome_of
from foliot.security.kept import kept_text
from foliot.service import Wake
from foliot.store.hints import Hint, Hints
from foliot.store.notifications import Delivery, DueNotification, Notifications
from foliot.target.protocol import AttemptFailedError
from foliot.timing.clock import ClusterClock

AT_ONCE = 20
MOST_OF_RULE = 4
MOST_OF_HOST = 10
"""So many of what is sent at once: a receiver that never answers takes a while for each, and keeps neither
other rules nor other hosts waiting for longer than that."""
LEASE_S = 4 * TIMEOUT_S
"""How long a claimed message is nobody else's: longer than a try can take, with its secrets and its end."""
LEAST_EVERY_S = 1.0
ERROR_LENGTH = 500
RETRY = Retry(max_attempts=10, initial_delay_seconds=1, multiplier=3, max_delay_seconds=3600)
"""Ten tries over two hours: 1 s, 3 s, 9 s … an hour."""


class Courier:
    """A service. Without messages a step is one look at an index."""

    name = "courier"

    def __init__(
        self,
        notifications: Notifications,
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
        self._every_s = max(LEAST_EVERY_S, every_s)
        hints.listen(Hint.NOTIFICATIONS, lambda _ids: self.wake.set())

    async def step(self) -> float | None:
        due, is_more = await self._claim()
        ended = await asyncio.gather(*(self._deliver(each) for each in due), return_exceptions=True)
        # Told when all have ended: nothing may go on behind a step.
        for error in ended:
            if error is not None:
                raise error
        return 0.0 if is_more else self._every_s

    async def _claim(self) -> tuple[list[DueNotification], bool]:
        """As much as may be sent at once, and whether more may be due."""
        due: list[DueNotification] = []
        while len(due) < AT_ONCE:
            of_rule, of_host = Counter(each.rule_id for each in due), Counter(each.host_id for each in due)
            limit = min(MOST_OF_RULE, AT_ONCE - len(due))
            found = await self._notifications.claim(
                limit=limit,
                lease_s=LEASE_S,
                but_rules={key for key, count in of_rule.items() if count >= MOST_OF_RULE},
                but_hosts={key for key, count in of_host.items() if count >= MOST_OF_HOST},
            )
            due += found
            if len(found) < limit:
                return due, len(due) >= MOST_OF_RULE
        return due, True

    async def _deliver(self, due: DueNotification) -> None:
        try:
            await self._sender.send(due, self._clock.now())
        except AttemptFailedError as error:
            delivery = self._failed(due, error)
        except Exception as error:
            # Nobody has thought of it; it must neither stop the others nor be lost.
            delivery = self._failed(due, AttemptFailedError(f"{type(error).__name__} while sending"))
        else:
            delivery = Delivery(due, DeliveryState.DELIVERED)
        if await self._notifications.settle(delivery):
            self._tell(delivery)

    def _failed(self, due: DueNotification, error: AttemptFailedError) -> Delivery:
        now = self._clock.now()
        outcome = outcome_of(
            Status.FAILED,
            retry=RETRY,
            delivery=DeliveryPolicy.AT_LEAST_ONCE,
            failures=due.failures + 1,
            execution_id=due.notification_id,
            now=now,
            is_permanent=error.is_permanent,
            retry_after_s=error.retry_after_s,
        )
        said = kept_text(str(error), most=ERROR_LENGTH)
        if outcome.ready_ts is None:
            return Delivery(due, DeliveryState.DEAD, said)
        return Delivery(due, DeliveryState.PENDING, said, (outcome.ready_ts - now).total_seconds())

    def _tell(self, delivery: Delivery) -> None:
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

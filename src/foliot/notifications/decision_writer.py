"""Write decisions in one transaction, fenced by the lease; then wake senders and publish events."""

from datetime import datetime

from foliot.db.hints import Hint, Hints
from foliot.model.delivery_events import NotificationDecided
from foliot.model.event import Observer
from foliot.notifications.decisions import DecisionCollector
from foliot.notifications.incidents_sql import Decisions, Incidents
from foliot.notifications.notifier_term import NotifierState
from foliot.scheduler.leases.leadership import Leadership
from foliot.timing.clock import ClusterClock

REMEMBER_EVERY_S = 60.0
"""Interval for writing the read position while nothing is decided."""


class DecisionWriter:
    def __init__(self, incidents: Incidents, clock: ClusterClock, hints: Hints, observer: Observer) -> None:
        self._incidents = incidents
        self._clock = clock
        self._hints = hints
        self._observer = observer

    async def write(
        self, leadership: Leadership, term: NotifierState, deciding: DecisionCollector, now: datetime
    ) -> None:
        """Write the decisions and the read position. Raises FencedError."""
        at = self._clock.monotonic()
        decisions = Decisions(
            term.gathering.gather(deciding.notices.values(), at),
            list(deciding.opened.values()),
            dict(deciding.closed),
        )
        if not any(decisions) and at - term.remembered_at < REMEMBER_EVERY_S:
            return
        with leadership.acting():
            made = set(await self._incidents.decide(term.lease, decisions, term.since or now, now))
        term.remembered_at = at
        if not made:
            return
        self._hints.send(Hint.NOTIFICATIONS)
        for notice in decisions.notices:
            if notice.dedupe_key in made:
                self._observer.notify(
                    NotificationDecided(notice.type.value, notice.rule_id, notice.schedule_id)
                )

"""Scan for schedules that failed, recovered, did not run or are late, and decide which messages to send.

This service works on the leader of shard 0. Without rules it polls one row every few seconds. With rules, a
scan is a few bounded statements that use an index:

- failures that ended since the last scan, and a little earlier, since a transaction may commit late
- open incidents that a success has ended
- executions that wait too long

A run that did not happen leaves no row. To find it, the notifier scans the schedules that rules watch, page
by page.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from foliot.db.hints import Hint, Hints
from foliot.model.delivery_events import NotificationFailed
from foliot.model.errors import FencedError
from foliot.model.event import Observer
from foliot.model.instance_events import WriteFenced
from foliot.model.notification import OnFailuresInARow, OnSlaMiss
from foliot.notifications.decision_writer import DecisionWriter
from foliot.notifications.decisions import DecisionCollector, Rules, condition_of, parts
from foliot.notifications.deliveries_sql import WAITED_TOO_LONG
from foliot.notifications.incidents_sql import Incidents
from foliot.notifications.lateness import LatenessScan
from foliot.notifications.notification_queries import NotificationQueries
from foliot.notifications.notifications_sql import Notifications
from foliot.notifications.notifier_term import NotifierState
from foliot.notifications.observed_rows import ObservedExecution
from foliot.notifications.rules_sql import NotificationRules
from foliot.notifications.scanner import ScheduleScanner
from foliot.scheduler.leases.leadership import Leadership
from foliot.service import Wake
from foliot.timing.clock import ClusterClock

OVERLAP = timedelta(seconds=10)
"""How long after its timestamp a transaction may commit and still be read."""
MIN_IDLE_S = 5.0
"""Minimum poll interval without rules or without the lease, in seconds."""
PRUNE_EVERY_S = 60.0
PAGE = 500
MAX_PAGES = 20
"""Maximum number of pages: of failures per scan, and of deleted rows per pruning."""
INCIDENTS_KEPT = timedelta(days=1)
LONGEST_WAIT = timedelta(days=1)
"""How long a message may be overdue before it is given up as too old to be useful."""


@dataclass(frozen=True, slots=True)
class NotifierOptions:
    every_s: float = 1.0
    retention_days: float = 90.0
    public_url: str | None = None
    """Base URL of the UI, for links in messages. None: messages have no links."""


class Notifier:
    name = "notifier"

    def __init__(
        self,
        leadership: Callable[[], Leadership | None],
        rules: NotificationRules,
        sightings: NotificationQueries,
        incidents: Incidents,
        notifications: Notifications,
        clock: ClusterClock,
        hints: Hints,
        observer: Observer,
        options: NotifierOptions,
    ) -> None:
        self.wake = Wake()
        self._leadership = leadership
        self._store = rules
        self._sightings = sightings
        self._incidents = incidents
        self._notifications = notifications
        self._clock = clock
        self._observer = observer
        self._options = options
        self._writing = DecisionWriter(incidents, clock, hints, observer)
        self._late = LatenessScan(sightings, incidents, self._writing, options.public_url)
        self._sweep = ScheduleScanner(sightings.silence, incidents, self._writing, clock, options.public_url)
        self._idle_s = max(MIN_IDLE_S, options.every_s)
        self._revision: int | None = None
        self._rules = Rules(())
        self._promising = Rules(())
        """The rules with an SLA condition."""
        self._term: NotifierState | None = None
        hints.listen(Hint.NOTIFICATIONS, lambda _ids: self.wake.set())

    async def step(self) -> float | None:
        leadership = self._leadership()
        lease = None if leadership is None else leadership.lease
        if leadership is None or lease is None:
            self._term = None
            return self._idle_s
        if self._term is None or self._term.lease != lease:
            self._term = NotifierState(lease)
        try:
            return await self._scan(leadership, self._term)
        except FencedError:
            self._observer.notify(WriteFenced(lease.shard.number, lease.epoch))
            if leadership.lease == lease:
                leadership.lose("a write was fenced")
            return self._idle_s

    async def _scan(self, leadership: Leadership, term: NotifierState) -> float:
        # Later failures are left for the next scan, which also knows the rules created meanwhile.
        now, revision = await self._store.glance()
        if revision != self._revision:
            self._rules = Rules(await self._store.snapshot(self._rules.by_id))
            self._promising = self._rules.with_condition(OnSlaMiss)
            self._revision = revision
        if not self._rules:
            await self._prune(term, now)  # messages outlive the last rule
            return self._idle_s
        since = await self._since(term, now)
        is_complete = await self._scan_failures(leadership, term, since, now)
        await self._scan_successes(leadership, term, since, now)
        if self._promising:
            await self._late.scan(leadership, term, self._promising, since, now)
        await self._prune(term, now)
        # Last: it is slow, and a page that can't be read may fail every time.
        await self._sweep.step(leadership, term, self._rules, now)
        return self._options.every_s if is_complete else 0.0

    async def _since(self, term: NotifierState, now: datetime) -> datetime:
        begin_ts = self._rules.begin_ts
        if term.since is None:
            term.since = await self._incidents.position() or begin_ts
        # A stored position later than `now - OVERLAP` means that the clock went back.
        term.since = min(max(term.since, begin_ts), now - OVERLAP)
        return term.since

    # --- scans ------------------------------------------------------------------------------------

    async def _scan_failures(
        self, leadership: Leadership, term: NotifierState, since: datetime, now: datetime
    ) -> bool:
        """Decide new failures. Return whether all were read."""
        after: UUID | None = None
        if term.reading is not None:
            since, after = term.reading
        page: list[ObservedExecution] = []
        for _ in range(MAX_PAGES):
            page = await self._sightings.failures(
                self._rules.hosts, now, since=since, after=after, limit=PAGE
            )
            fresh = [each for each in page if (each.run.execution_id, each.run.attempt) not in term.seen]
            is_last = len(page) < PAGE
            if page:
                since, after = page[-1].run.ended_ts or now, page[-1].run.execution_id
                term.reading = since, after
            await self._decide_failures(leadership, term, fresh, now)
            # Never later than the overlap: a late commit may have ended before the last row read.
            term.since = max(term.since or since, now - OVERLAP if is_last else min(since, now - OVERLAP))
            if is_last:
                term.reading = None
                break
        term.seen = {key: at for key, at in term.seen.items() if term.since is None or at >= term.since}
        return len(page) < PAGE

    async def _decide_failures(
        self, leadership: Leadership, term: NotifierState, fresh: list[ObservedExecution], now: datetime
    ) -> None:
        for part in parts(fresh, self._rules):
            ids = {each.subject.schedule_id for each in part}
            deciding = DecisionCollector(
                self._rules, await self._incidents.of_schedules(ids), now, self._options.public_url
            )
            streaks = await self._streaks(part, now)
            for each in part:
                deciding.failed(each.subject, each.run, streaks.get(each.subject.schedule_id, 0))
            await self._writing.write(leadership, term, deciding, now)
            for each in part:
                term.seen[each.run.execution_id, each.run.attempt] = each.run.ended_ts or now

    async def _streaks(self, fresh: Sequence[ObservedExecution], now: datetime) -> dict[UUID, int]:
        counting = self._rules.with_condition(OnFailuresInARow)
        limit = max(
            (condition_of(rule, OnFailuresInARow).count for rule in counting.by_id.values()), default=0
        )
        ids = {each.subject.schedule_id for each in fresh if limit and counting.about(each.subject, now)}
        return await self._sightings.streaks(ids, limit=limit)

    async def _scan_successes(
        self, leadership: Leadership, term: NotifierState, since: datetime, now: datetime
    ) -> None:
        over = await self._incidents.over(now, since=since, limit=PAGE)
        if not over:
            return
        deciding = DecisionCollector(self._rules, [each for each, _ in over], now, self._options.public_url)
        for incident, seen in over:
            deciding.succeeded(incident, seen.subject, seen.run)
        await self._writing.write(leadership, term, deciding, now)

    # --- pruning ----------------------------------------------------------------------------------

    async def _prune(self, term: NotifierState, now: datetime) -> None:
        """Give up and delete old messages and incidents, at most once per `PRUNE_EVERY_S`."""
        at = self._clock.monotonic()
        if at - term.pruned_at < PRUNE_EVERY_S:
            return
        term.pruned_at = at
        kept = timedelta(days=self._options.retention_days)
        await self._give_up(now - LONGEST_WAIT)
        for prune, before in (
            (self._notifications.prune, now - kept),
            (self._incidents.prune, now - INCIDENTS_KEPT),
        ):
            for _ in range(MAX_PAGES):
                if await prune(before=before, limit=PAGE) < PAGE:
                    break

    async def _give_up(self, before: datetime) -> None:
        """Give up a page of messages whose receivers stay unreachable: senders can't try them all."""
        for each in await self._notifications.give_up(before=before, limit=PAGE):
            self._observer.notify(
                NotificationFailed(each.notification_id, each.type, each.attempts, WAITED_TOO_LONG, None)
            )

"""Looks what has failed, recovered, stayed silent or is late, and decides whom to tell.

A service of whoever leads shard 0. Without rules it looks at one row, now and then. With rules a look is a
few statements, each bounded and by an index: failures that ended since the last look, and a little before it,
since a transaction may commit late; open incidents that a success has ended; what waits for too long. What
did not happen leaves no trace to find: for that it goes through the schedules that rules watch, page by page.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from foliot.lease.leadership import Leadership
from foliot.model.errors import FencedError
from foliot.model.event import NotificationDecided, Observer, WriteFenced
from foliot.model.lease import Lease
from foliot.model.notification import OnDidNotRun, OnFailuresInARow, OnSlaMiss
from foliot.notifying.deciding import Deciding, Rules
from foliot.notifying.gathering import Gathering
from foliot.notifying.patience import Patience
from foliot.service import Wake
from foliot.store.hints import Hint, Hints
from foliot.store.incidents import Decisions, Incidents
from foliot.store.notification_rules import NotificationRules
from foliot.store.notifications import Notifications
from foliot.store.sightings import Seen, Sightings, Standing
from foliot.timing.clock import ClusterClock

T = TypeVar("T")

OVERLAP = timedelta(seconds=10)
"""How late a transaction may commit, after it wrote its time, and still be seen."""
LEAST_IDLE_S = 5.0
"""Without rules, or without the lease."""
SWEEP_EVERY_S = 15.0
PRUNE_EVERY_S = 60.0
REMEMBER_EVERY_S = 60.0
"""How often the position is written when nothing was decided."""
PAGE = 500
MOST_PAGES = 20
"""Of failures in a look, of schedules in a sweep, and of what is forgotten at a time."""
MOST_DECIDED = 2000
"""How often a transaction asks a rule about a schedule: while it lasts it holds the shard's row, and the
process does nothing else while it decides."""
INCIDENTS_KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class NotifierOptions:
    every_s: float = 1.0
    retention_days: float = 90.0
    public_url: str | None = None
    """Where people find the UI."""


@dataclass(slots=True)
class Term:
    """What is known under one lease."""

    lease: Lease
    since: datetime | None = None
    """All failures that ended before are decided: never less than the overlap ago."""
    reading: tuple[datetime, UUID] | None = None
    """Behind which failure the next look goes on, where there were more than one look reads."""
    seen: dict[tuple[UUID, int], datetime] = field(default_factory=dict)
    """Of those behind `since`, what is decided."""
    place: tuple[UUID, str] | None = None
    """Where the sweep goes on: a host, and the name behind which; None: at the beginning."""
    swept_at: float = float("-inf")
    pruned_at: float = float("-inf")
    remembered_at: float = float("-inf")
    gathering: Gathering = field(default_factory=Gathering)


class Notifier:
    name = "notifier"

    def __init__(
        self,
        leadership: Callable[[], Leadership | None],
        rules: NotificationRules,
        sightings: Sightings,
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
        self._hints = hints
        self._observer = observer
        self._options = options
        self._idle_s = max(LEAST_IDLE_S, options.every_s)
        self._revision: int | None = None
        self._rules = Rules(())
        self._term: Term | None = None
        hints.listen(Hint.NOTIFICATIONS, lambda _ids: self.wake.set())

    async def step(self) -> float | None:
        leadership = self._leadership()
        lease = None if leadership is None else leadership.lease
        if leadership is None or lease is None:
            self._term = None
            return self._idle_s
        if self._term is None or self._term.lease != lease:
            self._term = Term(lease)
        try:
            return await self._look(leadership, self._term)
        except FencedError:
            self._observer.notify(WriteFenced(lease.shard.number, lease.epoch))
            if leadership.lease == lease:
                leadership.lose("a write was fenced")
            return self._idle_s

    async def _look(self, leadership: Leadership, term: Term) -> float:
        # What fails later than this is left for the next look, which knows of the rules made meanwhile.
        now, revision = await self._store.glance()
        if revision != self._revision:
            self._rules = Rules(await self._store.snapshot(self._rules.by_id))
            self._revision = revision
        if not self._rules:
            await self._prune(term, now)
            return self._idle_s
        since = await self._since(term, now)
        is_complete = await self._look_at_failures(leadership, term, since, now)
        await self._look_at_successes(leadership, term, now)
        if self._rules.with_condition(OnSlaMiss):
            await self._look_at_late(leadership, term, since, now)
        at = self._clock.monotonic()
        if at - term.swept_at >= SWEEP_EVERY_S:
            await self._sweep(leadership, term, now)
            term.swept_at = at
        await self._prune(term, now)
        return self._options.every_s if is_complete else 0.0

    async def _since(self, term: Term, now: datetime) -> datetime:
        begin_ts = self._rules.begin_ts
        if term.since is None:
            term.since = await self._incidents.position() or begin_ts
        # Later than the overlap ago is only what a clock says that has gone back since.
        term.since = min(max(term.since, begin_ts), now - OVERLAP)
        return term.since

    # --- looks ------------------------------------------------------------------------------------

    async def _look_at_failures(
        self, leadership: Leadership, term: Term, since: datetime, now: datetime
    ) -> bool:
        """Whether all there are were read."""
        after: UUID | None = None
        if term.reading is not None:
            since, after = term.reading
        page: list[Seen] = []
        for _ in range(MOST_PAGES):
            page = await self._sightings.failures(
                self._rules.hosts, now, since=since, after=after, limit=PAGE
            )
            fresh = [each for each in page if (each.run.execution_id, each.run.attempt) not in term.seen]
            is_last = len(page) < PAGE
            if page:
                since, after = page[-1].run.ended_ts or now, page[-1].run.execution_id
                term.reading = since, after
            await self._decide_failures(leadership, term, fresh, now)
            # Whatever has been read: what commits late may have ended before it.
            term.since = max(term.since or since, now - OVERLAP if is_last else min(since, now - OVERLAP))
            if is_last:
                term.reading = None
                break
        term.seen = {key: at for key, at in term.seen.items() if term.since is None or at >= term.since}
        return len(page) < PAGE

    async def _decide_failures(
        self, leadership: Leadership, term: Term, fresh: list[Seen], now: datetime
    ) -> None:
        for part in self._parts(fresh):
            ids = {each.subject.schedule_id for each in part}
            deciding = Deciding(
                self._rules, await self._incidents.of_schedules(ids), now, self._options.public_url
            )
            streaks = await self._streaks(part, now)
            for each in part:
                deciding.failed(each.subject, each.run, streaks.get(each.subject.schedule_id, 0))
            await self._decide(leadership, term, deciding, now)
            for each in part:
                term.seen[each.run.execution_id, each.run.attempt] = each.run.ended_ts or now

    def _parts(self, found: Sequence[T]) -> Iterator[Sequence[T]]:
        """As many at a time as all rules of a host can be asked about."""
        size = max(1, MOST_DECIDED // max(1, self._rules.most_of_a_host))
        return (found[start : start + size] for start in range(0, len(found), size))

    async def _streaks(self, fresh: Sequence[Seen], now: datetime) -> dict[UUID, int]:
        counting = self._rules.with_condition(OnFailuresInARow)
        counting_ids = {rule.rule_id for rule in counting}
        most = max(
            (each.count for rule in counting for each in rule.spec.on if isinstance(each, OnFailuresInARow)),
            default=0,
        )
        ids = {
            each.subject.schedule_id
            for each in fresh
            if most and any(rule.rule_id in counting_ids for rule in self._rules.about(each.subject, now))
        }
        return await self._sightings.streaks(ids, most=most)

    async def _look_at_successes(self, leadership: Leadership, term: Term, now: datetime) -> None:
        over = await self._incidents.over(now, limit=PAGE)
        if not over:
            return
        deciding = Deciding(self._rules, [each for each, _ in over], now, self._options.public_url)
        for incident, seen in over:
            deciding.succeeded(incident, seen.subject, seen.run)
        await self._decide(leadership, term, deciding, now)

    async def _look_at_late(self, leadership: Leadership, term: Term, since: datetime, now: datetime) -> None:
        late = await self._sightings.late(self._rules.hosts, now, since=since, limit=PAGE)
        for part in self._parts(late):
            ids = {each.subject.schedule_id for each in part}
            deciding = Deciding(
                self._rules, await self._incidents.of_schedules(ids), now, self._options.public_url
            )
            for each in part:
                deciding.late(each.subject, each.run)
            await self._decide(leadership, term, deciding, now)

    # --- what did not happen ----------------------------------------------------------------------

    async def _sweep(self, leadership: Leadership, term: Term, now: datetime) -> None:
        """Go through the schedules that rules watch; a part of them, where they are very many."""
        gone = Deciding(self._rules, (), now)
        for incident in await self._incidents.abandoned(limit=PAGE):
            gone.close(incident.key, now)
        await self._decide(leadership, term, gone, now)
        watching = self._rules.with_condition(OnDidNotRun) + self._rules.with_condition(OnSlaMiss)
        hosts = sorted({rule.host_id for rule in watching})
        for _ in range(MOST_PAGES):
            place = _next_place(hosts, term.place)
            if place is None:
                term.place = None
                return
            host_id, after_name = place
            page = await self._sightings.standings(
                host_id, now, named=self._rules.named_by(watching, host_id), after_name=after_name, limit=PAGE
            )
            for part in self._parts(page):
                await self._decide_silent(leadership, term, part, now)
            if len(page) == PAGE:
                term.place = (host_id, page[-1].subject.name)
            else:
                following = [each for each in hosts if each > host_id]
                term.place = (following[0], "") if following else None
                if not following:
                    return

    async def _decide_silent(
        self, leadership: Leadership, term: Term, page: Sequence[Standing], now: datetime
    ) -> None:
        watched = [each for each in page if self._rules.about(each.subject, now)]
        ids = [each.subject.schedule_id for each in watched]
        deciding = Deciding(
            self._rules, await self._incidents.of_schedules(ids), now, self._options.public_url
        )
        for each in watched:
            if each.last is not None and each.last.was_late:
                deciding.late(each.subject, each.last)
        await Patience(self._rules, self._sightings, deciding, now).judge(watched)
        await self._decide(leadership, term, deciding, now)

    # --- writing ----------------------------------------------------------------------------------

    async def _decide(self, leadership: Leadership, term: Term, deciding: Deciding, now: datetime) -> None:
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

    async def _prune(self, term: Term, now: datetime) -> None:
        """Now and then; also without rules, of which the messages outlive the last one."""
        at = self._clock.monotonic()
        if at - term.pruned_at < PRUNE_EVERY_S:
            return
        kept = timedelta(days=self._options.retention_days)
        for prune, before in (
            (self._notifications.prune, now - kept),
            (self._incidents.prune, now - INCIDENTS_KEPT),
        ):
            for _ in range(MOST_PAGES):
                if await prune(before=before, limit=PAGE) < PAGE:
                    break
        term.pruned_at = at


def _next_place(hosts: list[UUID], place: tuple[UUID, str] | None) -> tuple[UUID, str] | None:
    """Where to go on; a host whose rules are gone meanwhile is passed over."""
    if place is not None and place[0] in hosts:
        return place
    behind = [each for each in hosts if place is None or each > place[0]]
    return (behind[0], "") if behind else None

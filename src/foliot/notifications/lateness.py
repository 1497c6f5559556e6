"""Scan for executions that wait too long, and for running ones that started too late.

Each queue gets a share of a page, so that a full queue does not delay the others. If a scan can't read
everything, the next scan continues where it stopped.
"""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from foliot.notifications.decision_writer import DecisionWriter
from foliot.notifications.decisions import DecisionCollector, Rules, parts
from foliot.notifications.expected_since import last_beginning
from foliot.notifications.incidents_sql import Incidents
from foliot.notifications.lateness_sql import NONE_BEFORE, Behind
from foliot.notifications.notification_queries import NotificationQueries
from foliot.notifications.notifier_term import NotifierState
from foliot.notifications.observed_rows import ObservedExecution
from foliot.scheduler.leases.leadership import Leadership

PAGE = 500
MIN_SHARE = 20
"""Minimum number of executions read per queue and page."""
MAX_PAGES = 20
"""Maximum number of pages per scan."""


class LatenessScan:
    def __init__(
        self,
        sightings: NotificationQueries,
        incidents: Incidents,
        writing: DecisionWriter,
        public_url: str | None,
    ) -> None:
        self._lateness = sightings.lateness
        self._silence = sightings.silence
        self._incidents = incidents
        self._writing = writing
        self._public_url = public_url

    async def scan(
        self, leadership: Leadership, term: NotifierState, rules: Rules, since: datetime, now: datetime
    ) -> None:
        """Scan the hosts of these rules."""
        await self._scan_waiting(leadership, term, rules, since, now)
        await self._scan_running(leadership, term, rules, since, now)

    async def _scan_waiting(
        self, leadership: Leadership, term: NotifierState, rules: Rules, since: datetime, now: datetime
    ) -> None:
        queues = await self._lateness.queues(rules.hosts, now, since=since)
        places = {queue: term.waiting.get(queue, Behind(since)) for queue in queues}
        # Queues without new late executions may still have some that were not read.
        places |= {queue: at for queue, at in term.waiting.items() if queue[0] in rules.hosts}
        share = max(MIN_SHARE, PAGE // max(1, len(places)))
        limit, left = max(1, PAGE // share), dict(places)
        for _ in range(MAX_PAGES):
            turn = sorted(left, key=lambda queue: left[queue])[:limit]
            if not turn:
                break
            found = await self._lateness.waiting({each: left[each] for each in turn}, now, share=share)
            await self._decide(
                leadership, term, rules, [each for some in found.values() for each in some.seen], now
            )
            left = {queue: at for queue, at in left.items() if queue not in found}
            left |= {queue: each.behind for queue, each in found.items() if each.behind is not None}
            term.waiting = left

    async def _scan_running(
        self, leadership: Leadership, term: NotifierState, rules: Rules, since: datetime, now: datetime
    ) -> None:
        start, after = term.running or (since, NONE_BEFORE)
        for _ in range(MAX_PAGES):
            page = await self._lateness.running(rules.hosts, now, since=start, after=after, limit=PAGE)
            await self._decide(leadership, term, rules, page, now)
            if len(page) < PAGE:
                term.running = None
                return
            after = page[-1].run.execution_id
            term.running = (start, after)

    async def _decide(
        self,
        leadership: Leadership,
        term: NotifierState,
        rules: Rules,
        found: Iterable[ObservedExecution],
        now: datetime,
    ) -> None:
        watched = [each for each in _ends(found) if rules.about(each.subject, now)]
        if not watched:
            return
        versions = await self._silence.versions({each.subject.schedule_id for each in watched})
        for part in parts(watched, rules):
            ids = {each.subject.schedule_id for each in part}
            deciding = DecisionCollector(
                rules, await self._incidents.of_schedules(ids), now, self._public_url
            )
            for each in part:
                began = last_beginning(versions.get(each.subject.schedule_id, ()), now)
                deciding.late(each.subject, each.run, began)
            await self._writing.write(leadership, term, deciding, now)


def _ends(found: Iterable[ObservedExecution]) -> list[ObservedExecution]:
    """Return the most and the least overdue execution of each schedule: they decide all its messages."""
    of_schedule: dict[UUID, list[ObservedExecution]] = {}
    for each in found:
        of_schedule.setdefault(each.subject.schedule_id, []).append(each)
    return [
        each for some in of_schedule.values() for each in (some if len(some) < 3 else (some[0], some[-1]))
    ]

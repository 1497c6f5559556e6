"""Scan the schedules that rules watch, for runs that did not happen: these leave no row to find.

A round goes through all schedules, host by host and page by page. Data for a page is read at once, for all
rules. A sweep stops when its time is up, so that failures are not delayed; the next one continues behind its
last page. If a page can't be read, the rest of its host is left out, so that other hosts are still scanned.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from foliot.model.incident import IncidentKey, IncidentKind
from foliot.model.notification import OnDidNotRun, OnSlaMiss
from foliot.notifications.decision_writer import DecisionWriter
from foliot.notifications.decisions import DecisionCollector, Rules, condition_of
from foliot.notifications.expected_since import last_beginning
from foliot.notifications.incidents_sql import Incidents
from foliot.notifications.missed_runs import (
    Evidence,
    MissedRun,
    Question,
    doubts,
    due_of,
    has_run,
    judged,
    questions,
)
from foliot.notifications.missed_runs_sql import MissedRunQueries, SearchStart, WatchedSchedule
from foliot.notifications.notifier_term import NotifierState, Round
from foliot.scheduler.leases.leadership import Leadership
from foliot.timing.clock import ClusterClock

EVERY_S = 15.0
BUDGET_S = 0.5
"""Maximum duration of a sweep before the notifier's other scans continue."""
PAGE = 500
MAX_PAGES = 20
"""Maximum number of pages read per `EVERY_S`."""
MAX_ASKED = 20_000
"""Maximum number of rule checks (one rule, one schedule) per page: they block the event loop."""
MAX_WRITTEN = 1000
"""Maximum number of silent schedules per transaction, which locks the shard's row."""
MAX_KNOWN = 100_000


class ScheduleScanner:
    def __init__(
        self,
        silence: MissedRunQueries,
        incidents: Incidents,
        writing: DecisionWriter,
        clock: ClusterClock,
        public_url: str | None,
    ) -> None:
        self._silence = silence
        self._incidents = incidents
        self._writing = writing
        self._clock = clock
        self._public_url = public_url

    async def step(self, leadership: Leadership, term: NotifierState, rules: Rules, now: datetime) -> None:
        """Continue the round within the limits of pages and time."""
        began_at = self._clock.monotonic()
        watch = term.round
        if began_at - term.swept_at >= EVERY_S:
            term.swept_at = began_at
            watch.pages_left = MAX_PAGES
            await self._close_abandoned(leadership, term, rules, now)
        if watch.pages_left <= 0:
            return
        watching = rules.with_condition(OnDidNotRun, OnSlaMiss)
        hosts = sorted(watching.hosts)
        while watch.pages_left > 0:
            place = _next_place(hosts, watch.place)
            if place is None:
                _end(watch)
                return
            if watch.began_ts is None:
                watch.began_ts = now
            watch.pages_left -= 1
            await self._page(leadership, term, watching, place, now)
            if self._clock.monotonic() - began_at >= BUDGET_S:
                return

    async def _close_abandoned(
        self, leadership: Leadership, term: NotifierState, rules: Rules, now: datetime
    ) -> None:
        gone = DecisionCollector(rules, (), now)
        for incident in await self._incidents.abandoned(limit=PAGE):
            gone.close(incident.key, now)
        await self._writing.write(leadership, term, gone, now)

    # --- a page -----------------------------------------------------------------------------------

    async def _page(
        self,
        leadership: Leadership,
        term: NotifierState,
        rules: Rules,
        place: tuple[UUID, str],
        now: datetime,
    ) -> None:
        host_id, after_name = place
        watch, size = term.round, max(1, min(PAGE, MAX_ASKED // rules.count_of(host_id)))
        # Set before reading: if the page can't be read, the next one is of the next host.
        watch.place, was_whole, watch.is_whole = (host_id, END), watch.is_whole, False
        page = await self._silence.standings(
            host_id, now, named=rules.named_by(host_id), after_name=after_name, limit=size
        )
        if len(page) == size:
            watch.place = (host_id, page[-1].subject.name)
        await self._judge(leadership, term, rules, page, now)
        watch.is_whole = was_whole

    async def _judge(
        self,
        leadership: Leadership,
        term: NotifierState,
        rules: Rules,
        page: Sequence[WatchedSchedule],
        now: datetime,
    ) -> None:
        asked = [(rule, each) for each in page for rule in rules.about(each.subject, now)]
        late = [
            (IncidentKey(each.subject.schedule_id, rule.rule_id, IncidentKind.SLA_MISS), each)
            for rule, each in asked
            if each.last is not None and each.last.was_late and condition_of(rule, OnSlaMiss) is not None
        ]
        watch = term.round
        wanted = questions(asked, now, known=watch.successes, before_ts=watch.before_ts)
        ids = {each.schedule_id for each in wanted} | {key.schedule_id for key, _ in late}
        if not ids:
            return
        kinds = (IncidentKind.DID_NOT_RUN, IncidentKind.SLA_MISS)
        incidents = await self._incidents.of_schedules(ids, kinds)
        reported = {each.key for each in incidents if each.is_open}
        open_questions = [each for each in wanted if _key_of(each) not in reported]
        fresh = {key.schedule_id: each for key, each in late if key not in reported}
        silent, began = await self._evidence(open_questions, set(fresh), watch, now)
        deciding = DecisionCollector(rules, incidents, now, self._public_url)
        for schedule_id, each in fresh.items():
            if each.last is not None:
                deciding.late(each.subject, each.last, began.get(schedule_id))
        await self._writing.write(leadership, term, deciding, now)
        for start in range(0, len(silent), MAX_WRITTEN):
            deciding = DecisionCollector(rules, incidents, now, self._public_url)
            for rule, standing, opened_ts, since_ts, due_ts in silent[start : start + MAX_WRITTEN]:
                deciding.silent(rule, standing.subject, opened_ts, since_ts, due_ts)
            await self._writing.write(leadership, term, deciding, now)

    async def _evidence(
        self, asked: Sequence[Question], late: set[UUID], watch: Round, now: datetime
    ) -> tuple[list[MissedRun], dict[UUID, datetime]]:
        """Return the silent schedules, and when the possibly silent and the late ones last began anew."""
        evidence = Evidence()
        evidence.due = await self._silence.latest_due({each.span for each in asked if each.span is not None})
        asked = [each for each in asked if each.within is not None or due_of(each, evidence) is not None]
        versions = await self._silence.versions({each.schedule_id for each in asked} | late)
        began = {key: at for key, each in versions.items() if (at := last_beginning(each, now)) is not None}
        evidence.began = began
        doubted = doubts(asked, evidence, now)
        evidence.successes = await self._silence.successes({each.since for each in doubted}, now)
        if len(watch.successes) + len(evidence.successes) > MAX_KNOWN:
            watch.successes.clear()
        for since, success in evidence.successes.items():
            known = watch.successes.get(since.schedule_id, success.ended_ts)
            watch.successes[since.schedule_id] = max(known, success.ended_ts)
        evidence.first_fires = await self._silence.first_fires(
            {
                SearchStart(each.question.schedule_id, each.began_ts)
                for each in doubted
                if each.question.within is not None
                and each.since not in evidence.successes
                and not has_run(each)
            }
        )
        return judged(doubted, evidence, now), began


END = "\U0010ffff"
"""Sorts behind every name."""


def _key_of(question: Question) -> IncidentKey:
    return IncidentKey(question.schedule_id, question.rule.rule_id, IncidentKind.DID_NOT_RUN)


def _end(watch: Round) -> None:
    """End the round. The next one begins with the next sweep."""
    if watch.began_ts is not None and watch.is_whole:
        watch.before_ts = watch.began_ts
    watch.place, watch.began_ts, watch.is_whole, watch.pages_left = None, None, True, 0


def _next_place(hosts: Sequence[UUID], place: tuple[UUID, str] | None) -> tuple[UUID, str] | None:
    """Return where to continue, skipping hosts that have no rules any more. None: the round is over."""
    if place is not None and place[0] in hosts and place[1] != END:
        return place
    behind = [each for each in hosts if place is None or each > place[0]]
    return (behind[0], "") if behind else None

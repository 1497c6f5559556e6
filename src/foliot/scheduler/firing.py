"""Takes what is due, plans it, and commits it in batches.

Where the store gains from it, one batch is planned while the previous one commits. Schedules in flight are
marked, so that one leader plans nothing twice. Schedules that the guarded update refuses are read again. If
the outcome of a transaction is not known, its schedules are read again too: the rows say what happened.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from uuid import UUID

from pydantic import ValidationError

from foliot.db.hints import Hint, Hints
from foliot.model.errors import FencedError
from foliot.model.event import (
    BatchFired,
    ExecutionsCancelled,
    Observer,
    ScheduleParked,
    TickCompleted,
    settled_at_once,
)
from foliot.model.instance_events import WriteFenced
from foliot.model.schedule import problems_of
from foliot.planning.definition import MissingCalendarError, compile_definition
from foliot.planning.events import UnreadableTargetError
from foliot.planning.fire import PLAN_HOLDS, Due, Fired, Firing, UnplannedSchedule, plan_firing
from foliot.scheduler.firing_sql import FiringStatements
from foliot.scheduler.leader_term import LeaderState
from foliot.scheduler.leases.leadership import Leadership
from foliot.service import Wake
from foliot.timing.clock import ClusterClock

BATCH = 1000
MAX_STEP_S = 1.0
"""After this time no further batch begins in a step. The probes report a very long step as stuck."""
MAX_REPORTED = 10_000
TURN_S = 0.005
"""Planning yields to the event loop after this time, so that heartbeats and commits continue."""


class FiringService:
    name = "firing"

    def __init__(
        self,
        leadership: Leadership,
        store: FiringStatements,
        clock: ClusterClock,
        hints: Hints,
        observer: Observer,
        *,
        idle_s: float,
    ) -> None:
        self.wake = Wake()
        self.reload_wake: Wake | None = None
        self.read_calendars: Callable[[LeaderState], Awaitable[None]] | None = None
        self.on_fired: Callable[[Sequence[Firing], Fired], None] | None = None
        """Called with what was fired for workers, after the commit."""
        self.term: LeaderState | None = None
        self._leadership = leadership
        self._store = store
        self._clock = clock
        self._hints = hints
        self._observer = observer
        self._idle_s = idle_s
        self._reported: set[tuple[UUID, int]] = set()
        """Versions of schedules that were already reported as parked."""

    def begin(self, term: LeaderState) -> None:
        self.term = term
        self.wake.set()

    async def step(self) -> float | None:
        term = self.term
        if term is None or self._leadership.lease != term.lease:
            self.term = None
            return None
        started = self._clock.monotonic()
        checked = await term.advance(self._clock.now())
        with self._leadership.acting():
            try:
                await self._fire_all(term)
            except FencedError:
                self._step_down(term)
        now = self._clock.now()
        self._observer.notify(
            TickCompleted(
                term.lease.shard.number,
                checked,
                len(term.wheel),
                term.lag(now).total_seconds(),
                self._clock.monotonic() - started,
            )
        )
        pause_s = term.seconds_until_due(now)
        return self._idle_s if pause_s is None else min(pause_s, self._idle_s)

    async def _fire_all(self, term: LeaderState) -> None:
        """Plan and commit the queue in batches while we lead, for at most MAX_STEP_S."""
        commits: set[asyncio.Task[None]] = set()
        ends_at = self._clock.monotonic() + MAX_STEP_S
        try:
            while len(term.queue) and self._leadership.lease == term.lease:
                batch = term.queue.take(BATCH)
                term.in_flight.update(due.schedule_id for due in batch)
                planned_ts = self._clock.now()
                try:
                    firings = await self._plan(term, batch)
                except BaseException:
                    self._give_up(term, batch)
                    raise
                for kind in _apart(firings):
                    commits.add(asyncio.create_task(self._commit(term, kind, planned_ts)))
                while len(commits) > self._store.commits_in_background:
                    commits = await self._first_of(commits)
                await term.advance(self._clock.now())
                if self._clock.monotonic() >= ends_at:
                    break
        finally:
            # Also after a failure: the other commits finish, then the first error is raised.
            results = await asyncio.gather(*commits, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _first_of(self, commits: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
        done, rest = await asyncio.wait(commits, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        return rest

    async def _plan(self, term: LeaderState, batch: Sequence[Due]) -> list[Firing]:
        firings = []
        missing: list[Due] = []
        failed: list[UnplannedSchedule] = []
        now, turn_ends = self._clock.now(), self._clock.monotonic() + TURN_S
        for due in batch:
            try:
                cadence = compile_definition(due.definition, due.schedule_id)
                firings.append(plan_firing(due, cadence, now, term.calendars))
            except MissingCalendarError:
                missing.append(due)
            except Exception as error:
                failed.append(UnplannedSchedule(due, _reason_of(error)))
            if self._clock.monotonic() >= turn_ends:
                await asyncio.sleep(0)
                now, turn_ends = self._clock.now(), self._clock.monotonic() + TURN_S
        if missing:
            firings.extend(await self._plan_once_more(term, missing, failed))
        if failed:
            await self._park(term, failed)
        return firings

    async def _plan_once_more(
        self, term: LeaderState, missing: Sequence[Due], failed: list[UnplannedSchedule]
    ) -> list[Firing]:
        """Plan with calendars read again. Only a calendar that is really missing parks a schedule."""
        if self.read_calendars is not None:
            await self.read_calendars(term)
        firings, now = [], self._clock.now()
        for due in missing:
            try:
                cadence = compile_definition(due.definition, due.schedule_id)
                firings.append(plan_firing(due, cadence, now, term.calendars))
            except Exception as error:
                failed.append(UnplannedSchedule(due, _reason_of(error)))
        return firings

    async def _park(self, term: LeaderState, unplanned: Sequence[UnplannedSchedule]) -> None:
        """Set aside schedules that can't be planned, so that they don't block others; they are retried."""
        parked = await self._store.park(term.lease, unplanned, now=self._clock.now())
        dues = [each.due for each in unplanned]
        term.in_flight.difference_update(due.schedule_id for due in dues)
        self._read_again(term, [due for due in dues if due.schedule_id in parked])
        term.refuse(due for due in dues if due.schedule_id not in parked)
        for due, reason in unplanned:
            if due.schedule_id in parked and self._is_news(due):
                self._observer.notify(ScheduleParked(due.schedule_id, reason))

    def _is_news(self, due: Due) -> bool:
        """Whether this version of the schedule was not reported as parked yet."""
        version = (due.schedule_id, due.aggregate_version)
        if version in self._reported:
            return False
        if len(self._reported) >= MAX_REPORTED:
            self._reported.clear()
        self._reported.add(version)
        return True

    async def _commit(self, term: LeaderState, firings: Sequence[Firing], planned_ts: datetime) -> None:
        if not firings:
            return
        started = self._clock.monotonic()
        now = self._clock.now()
        if now - planned_ts > PLAN_HOLDS:
            self._give_up(term, [firing.due for firing in firings])
            return
        are_events = firings[0].due.definition.is_event
        fire = self._store.fire_events if are_events else self._store.fire
        try:
            fired = await fire(term.lease, firings, now=now)
        except UnreadableTargetError as error:
            await self._commit_without(term, firings, error, planned_ts)
            return
        except FencedError:
            self._step_down(term)
            return
        except BaseException:
            # It may have committed or not; only the rows say.
            self._give_up(term, [firing.due for firing in firings])
            raise
        self._land(term, firings)
        term.refuse(fired.refused)
        self._remember(term, firings, fired)
        if self.on_fired is not None and not are_events:
            self.on_fired(firings, fired)
        if fired.fired:
            self._hints.send(Hint.EVENTS if are_events else Hint.READY)
        if fired.has_replaced:
            self._hints.send(Hint.CANCEL)
        if are_events and fired.fired:
            self._observer.notify(settled_at_once(term.lease.instance_id, fired.fired))
        if fired.cancelled:
            self._observer.notify(ExecutionsCancelled(fired.cancelled))
        self._observer.notify(
            BatchFired(
                term.lease.shard.number,
                term.lease.epoch,
                term.lease.instance_id,
                fired.fired,
                fired.skipped,
                len(fired.refused),
                self._clock.monotonic() - started,
            )
        )

    async def _commit_without(
        self, term: LeaderState, firings: Sequence[Firing], error: UnreadableTargetError, planned_ts: datetime
    ) -> None:
        dues = [firing.due for firing in firings if firing.due.schedule_id in error.reasons]
        others = [firing for firing in firings if firing.due.schedule_id not in error.reasons]
        try:
            await self._park(term, [UnplannedSchedule(due, error.reasons[due.schedule_id]) for due in dues])
        except BaseException:
            self._give_up(term, [firing.due for firing in firings])
            raise
        await self._commit(term, others, planned_ts)

    def _step_down(self, term: LeaderState) -> None:
        """Stop leading after a fenced write: another instance leads."""
        self._observer.notify(WriteFenced(term.lease.shard.number, term.lease.epoch))
        if self._leadership.lease == term.lease:
            self._leadership.lose("a write was fenced")

    def _give_up(self, term: LeaderState, dues: Sequence[Due]) -> None:
        """Read these rows again: their outcome is not known here."""
        term.in_flight.difference_update(due.schedule_id for due in dues)
        self._read_again(term, dues)

    def _land(self, term: LeaderState, firings: Sequence[Firing]) -> None:
        term.in_flight.difference_update(firing.due.schedule_id for firing in firings)

    def _remember(self, term: LeaderState, firings: Sequence[Firing], fired: Fired) -> None:
        """Put the schedules back with their next times. Read again those that differ from the plan."""
        others = _not_as_planned(firings, fired)
        again, moved = [], []
        for firing in firings:
            due, upcoming = firing.due, firing.next
            if others and due.schedule_id in others:
                again.append(due)
            elif upcoming is not None and term.knows(upcoming.run_ts):
                moved.append(
                    Due(
                        due.schedule_id,
                        due.host_id,
                        due.aggregate_version,
                        upcoming.fire_ts,
                        upcoming.run_ts,
                        due.run_count + firing.fires,
                        due.definition,
                    )
                )
        term.put(moved)
        if again:
            self._read_again(term, again)

    def _read_again(self, term: LeaderState, dues: Sequence[Due]) -> None:
        term.to_reload.update(due.schedule_id for due in dues)
        if self.reload_wake is not None:
            self.reload_wake.set()


def _not_as_planned(firings: Sequence[Firing], fired: Fired) -> set[UUID]:
    """Return schedules that were refused, or that fired less often than planned.

    Then overlap skipped or postponed a time, or the time was decided before. The store does not count this
    as a run, and the next time may differ from the planned one.
    """
    others = {due.schedule_id for due in fired.refused}
    if len(fired.fired) < sum(firing.fires for firing in firings):
        counts = Counter(each.schedule_id for each in fired.fired)
        others.update(
            firing.due.schedule_id for firing in firings if counts[firing.due.schedule_id] < firing.fires
        )
    return others


def _reason_of(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(str(problem) for problem in problems_of(error))
    return str(error).partition("\n")[0] or type(error).__name__


def _apart(firings: Sequence[Firing]) -> list[Sequence[Firing]]:
    """Split off events, which commit separately: batches of events wait for each other's offsets."""
    events = [firing for firing in firings if firing.due.definition.is_event]
    if not events:
        return [firings]
    others = [firing for firing in firings if not firing.due.definition.is_event]
    return [events, others] if others else [events]

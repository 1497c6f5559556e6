"""Load due schedules, and fire them: write their executions and their next times.

`fire` is one transaction with a fixed number of statements, for any number of schedules:

    1. limits     timeouts, so that the database ends the transaction if this process stops in the middle
    2. fence      lock the shard's row FOR KEY SHARE and check our epoch; if it is old, nothing is written
    3. advance    one guarded UPDATE advances, and so locks, only the rows that are still as planned. If some
                  have changed, the transaction is run again and asks which
    4. count      count open executions where the overlap policy needs it (a separate statement, so that it
                  sees what was committed while the UPDATE waited for a lock)
    5. insert     insert the executions, ON CONFLICT DO NOTHING

A crash before COMMIT leaves nothing. A crash after COMMIT leaves everything, and the schedules have advanced,
so nobody fires them again. If the reply to COMMIT is lost, it is one or the other: the caller reads the rows
again.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    String,
    Text,
    Uuid,
    literal,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.database import Database
from foliot.db.dialect import Dialect, Pool
from foliot.db.rows.cancellation import request_cancel
from foliot.db.rows.due_rows import DUE_COLUMNS, LoadPosition, LoadRange, due_of
from foliot.db.rows.ledger import NewExecution, count_open, insert_executions, skipped_by
from foliot.db.rows.shard_rows import is_of
from foliot.db.tables.access import host_t
from foliot.db.tables.schedules import schedule_t
from foliot.db.types import Instant
from foliot.model.event import CancelledExecution, FiredExecution
from foliot.model.execution import SkipReason
from foliot.model.ids import ids_at
from foliot.model.lease import Lease, Shard
from foliot.model.policy import Overlap, OverlapPolicy
from foliot.model.schedule import ScheduleState
from foliot.planning.definition import policies_from
from foliot.planning.fire import Due, Fired, FireDecision, Firing, UnplannedSchedule, parked_for
from foliot.planning.overlap import NONE_OPEN, OpenCounts, OverlapDecision, admit_execution
from foliot.scheduler.advancing_sql import (
    advance_and_name,
    advance_planned,
    arguments_of,
    lay_out_planned,
    unlocked,
)
from foliot.scheduler.event_firing_sql import fire_events
from foliot.scheduler.leases.leases_sql import require_lease

Names = Mapping[UUID, str]
NAMED = 20
"""Largest batch that is reported with schedule names. Logs report larger batches in one line, and reading the
names of a thousand schedules adds 2.5 ms to the 17 ms that firing them takes this process."""

CONVERTED_PER_SLICE = 200
"""Rows to convert, in 2 to 4 ms, before yielding to the event loop, so that heartbeats can run."""
QUEUE_FULL_PAUSE_S = 1.0
"""Seconds until a fire time that must not be skipped is retried, when too many executions are held."""
MAX_LOCKED = 10_000


class _SomeRefusedError(Exception):
    """Some rows were not as planned: the transaction is rolled back and run again to learn which."""


class FiringStatements:
    def __init__(self, database: Database, *, names_all: bool = False) -> None:
        self._database = database
        self._dialect: Dialect = database.dialect
        self._locked: set[UUID] = set()
        """Schedules whose rows another transaction had locked when they were due."""
        self.names_all = names_all

    @property
    def commits_in_background(self) -> int:
        """How many firing transactions may be in flight while the next batch is planned."""
        return self._dialect.commits_in_background

    # --- loading ----------------------------------------------------------------------------------

    async def load(
        self,
        shard: Shard,
        *,
        until: datetime,
        after: LoadPosition | None,
        limit: int,
        excluding: Sequence[UUID] = (),
    ) -> list[Due]:
        """Return a page of the schedules that are due by `until`, soonest first."""
        # A range of `idx_schedule_active_next_run`.
        statement = (
            _select_due(shard, until, schedule_t.c.active, *self._not_in(excluding))
            .order_by(schedule_t.c.next_run_ts, schedule_t.c.schedule_id)
            .limit(limit)
        )
        if after is not None:
            statement = statement.where(
                schedule_t.c.next_run_ts >= after.run_ts,
                or_(schedule_t.c.next_run_ts > after.run_ts, schedule_t.c.schedule_id > after.schedule_id),
            )
        return await self._due(statement)

    async def load_hosts(self, *, after: UUID | None, limit: int) -> list[UUID]:
        """Return a page of all host ids, in order."""
        statement = select(host_t.c.host_id).order_by(host_t.c.host_id).limit(limit)
        if after is not None:
            statement = statement.where(host_t.c.host_id > after)
        return list((await self._database.fetch(Pool.FIRING, statement)).scalars())

    async def load_ranges(
        self,
        shard: Shard,
        ranges: Sequence[LoadRange],
        *,
        until: datetime,
        per_range: int,
        excluding: Sequence[UUID] = (),
    ) -> list[Due]:
        """Return up to `per_range` schedules of each range that are due by `until`, the oldest first."""
        # For each range, reads the first entries of `idx_schedule_host_next_run`.
        wanted = self._dialect.rows(
            "ranges", {"range_host": Uuid(), "range_priority": String(), "from_ts": Instant()}, ranges
        )
        first = (
            _select_due(shard, until, *self._not_in(excluding))
            .where(
                # Without the guard, SQLite would read everything due, of every host, once per range.
                self._dialect.guard(schedule_t.c.active) == true(),
                schedule_t.c.host_id == wanted.c.range_host,
                schedule_t.c.priority == wanted.c.range_priority,
                schedule_t.c.next_run_ts >= wanted.c.from_ts,
            )
            # Only this column: sorting by more would read everything that is due at the same instant.
            .order_by(schedule_t.c.next_run_ts)
            .limit(per_range)
            .correlate(wanted)
        )
        return await self._due(self._dialect.of_each(wanted, first, schedule_t.c.schedule_id))

    async def load_some(self, shard: Shard, schedule_ids: Sequence[UUID]) -> list[Due]:
        """Return those of these schedules that belong to the shard and have a next fire time."""
        wanted = self._dialect.rows("wanted", {"schedule_id": Uuid()}, [(each,) for each in schedule_ids])
        statement = (
            select(*DUE_COLUMNS)
            .join(wanted, wanted.c.schedule_id == schedule_t.c.schedule_id)
            .where(
                self._dialect.guard(schedule_t.c.active) == true(),
                self._dialect.guard(schedule_t.c.next_run_ts).is_not(None),
                *is_of(shard),
            )
        )
        return await self._due(statement)

    def _not_in(self, schedule_ids: Sequence[UUID]) -> list[ColumnElement[bool]]:
        if not schedule_ids:
            return []
        known = self._dialect.rows("known", {"schedule_id": Uuid()}, [(each,) for each in schedule_ids])
        return [schedule_t.c.schedule_id.not_in(select(known.c.schedule_id))]

    async def _due(self, statement: Select[Any]) -> list[Due]:
        rows = (await self._database.fetch(Pool.FIRING, statement)).all()
        shared: dict[Any, Any] = {}
        found: list[Due] = []
        for start in range(0, len(rows), CONVERTED_PER_SLICE):
            if start:
                await asyncio.sleep(0)
            found += [due_of(row, shared) for row in rows[start : start + CONVERTED_PER_SLICE]]
        return found

    # --- firing -----------------------------------------------------------------------------------

    async def fire(self, lease: Lease, firings: Sequence[Firing], *, now: datetime) -> Fired:
        """Check the fence, advance unchanged schedules and insert executions, at once. Raises FencedError."""
        tries = 0
        asks_which = False

        async def work(connection: AsyncConnection) -> Fired:
            nonlocal tries
            tries += 1
            await require_lease(connection, lease)
            free = await self._free_of(connection, firings, tries)
            moved, refused, names = await self._advance(connection, lease, free, now, asks_which=asks_which)
            if len(free) < len(firings):
                left = {firing.due.schedule_id for firing in free}
                refused = [*refused, *(f.due for f in firings if f.due.schedule_id not in left)]
            opened = await self._count_open(connection, moved)
            admitted, waiting = _admit(moved, opened, now)
            rows = await insert_executions(connection, self._dialect, admitted, lease.instance_id)
            if (
                waiting
                or len(rows) < len(admitted)
                or any(row.admission is OverlapDecision.SKIP for row in rows)
            ):
                await self._uncount(connection, moved, rows, waiting, now)
            has_replaced, cancelled = await self._cancel_replaced(connection, rows)
            reported = report(rows, refused, now, names)
            dues = [firing.due for firing in moved if firing.due.schedule_id in waiting]
            return replace(reported, has_replaced=has_replaced, cancelled=cancelled, waiting=dues)

        try:
            return await self._database.write(Pool.FIRING, work)
        except _SomeRefusedError:
            asks_which = True
            return await self._database.write(Pool.FIRING, work)

    async def fire_events(self, lease: Lease, firings: Sequence[Firing], *, now: datetime) -> Fired:
        """Fire schedules whose target is an event, and write the events, in one transaction."""
        tries = 0

        async def work(connection: AsyncConnection) -> Fired:
            nonlocal tries
            tries += 1
            await require_lease(connection, lease)
            free = await self._free_of(connection, firings, tries)
            rows, names = await fire_events(connection, self._dialect, lease, free, now)
            moved = [firing for firing in free if firing.due.schedule_id in names]
            await self._uncount(connection, moved, rows, {}, now)
            refused = [firing.due for firing in firings if firing.due.schedule_id not in names]
            return report(rows, refused, now, names)

        return await self._database.write(Pool.FIRING, work)

    async def _free_of(
        self, connection: AsyncConnection, firings: Sequence[Firing], tries: int
    ) -> Sequence[Firing]:
        """Return the firings to decide now, without schedules whose rows are locked.

        A locked row costs its first batch the lock timeout; then it is remembered. So an application that
        keeps a row locked, perhaps for a minute in its own transaction, delays only that schedule.
        """
        if tries == 1 and self._locked.isdisjoint(firing.due.schedule_id for firing in firings):
            return firings
        free = await unlocked(connection, self._dialect, firings)
        found = {firing.due.schedule_id for firing in free}
        self._locked.difference_update(found)
        left = [each.due.schedule_id for each in firings if each.due.schedule_id not in found]
        self._locked.update(left[: MAX_LOCKED - len(self._locked)])
        return free

    async def _advance(
        self,
        connection: AsyncConnection,
        lease: Lease,
        firings: Sequence[Firing],
        now: datetime,
        *,
        asks_which: bool,
    ) -> tuple[Sequence[Firing], Sequence[Due], Names]:
        """Advance the schedules that are still as planned; return the rest as refused.

        Nearly always all of them advance. For a large batch the row count shows it; ids and names are read
        only if it does not, or if `names_all` is set.
        """
        if not firings:
            return [], [], {}
        batch = lay_out_planned(self._dialect, firings)
        arguments = arguments_of(batch, now)
        if not (asks_which or self.names_all or len(firings) <= NAMED):
            advance = advance_planned(self._dialect, lease.shard, batch.shape)
            result = await connection.execute(advance, arguments)
            if result.rowcount == len(firings):
                return firings, [], {}
            raise _SomeRefusedError
        advance_named = advance_and_name(self._dialect, lease.shard, batch.shape)
        moved = {row[0]: row[1] for row in await connection.execute(advance_named, arguments)}
        if len(moved) == len(firings):
            return firings, [], moved
        return (
            [firing for firing in firings if firing.due.schedule_id in moved],
            [firing.due for firing in firings if firing.due.schedule_id not in moved],
            moved,
        )

    async def _count_open(
        self, connection: AsyncConnection, firings: Iterable[Firing]
    ) -> dict[UUID, OpenCounts]:
        asking = [
            firing.due.schedule_id
            for firing in firings
            if _overlap_of(firing.due).policy is not OverlapPolicy.ALLOW
        ]
        return await count_open(connection, self._dialect, asking)

    async def _cancel_replaced(
        self, connection: AsyncConnection, rows: Sequence[NewExecution]
    ) -> tuple[bool, Sequence[CancelledExecution]]:
        """Cancel runs that the overlap policy replaces.

        Returns whether there were any, and the executions that ended at once.
        """
        replaced = [row.due.schedule_id for row in rows if row.admission is OverlapDecision.REPLACE]
        if not replaced:
            return False, ()
        keep = [row.execution_id for row in rows]
        cancelled = await request_cancel(connection, self._dialect, replaced, keep=keep, reason="replaced")
        return True, cancelled

    async def _uncount(
        self,
        connection: AsyncConnection,
        firings: Sequence[Firing],
        rows: Sequence[NewExecution],
        waiting: Mapping[UUID, FireDecision],
        now: datetime,
    ) -> None:
        """Correct run counts and next times for planned runs that did not fire.

        The overlap policy skipped or deferred them, or their fire time was decided before.
        """
        fires = Counter(row.due.schedule_id for row in rows if row.reason is None)
        uncounted = [
            (key, firing.fires - fires[key], *_next_of(firing, waiting.get(key), now))
            for firing in firings
            if firing.fires > fires[key := firing.due.schedule_id] or key in waiting
        ]
        if not uncounted:
            return
        skipped = self._dialect.rows(
            "skipped",
            {
                "schedule_id": Uuid(),
                "runs": Integer(),
                "next_fire_ts": Instant(),
                "next_run_ts": Instant(),
                "state": String(),
            },
            uncounted,
        )
        await connection.execute(
            update(schedule_t)
            .where(schedule_t.c.schedule_id == skipped.c.schedule_id)
            .values(
                run_count=schedule_t.c.run_count - skipped.c.runs,
                next_fire_ts=skipped.c.next_fire_ts,
                next_run_ts=skipped.c.next_run_ts,
                state=skipped.c.state,
            )
        )

    async def park(self, lease: Lease, unplanned: Sequence[UnplannedSchedule], *, now: datetime) -> set[UUID]:
        """Put schedules that can't be planned into state `error` until their next try. Return their ids.

        Their fire times stay undecided. An instance that can plan them later, for example a newer version,
        fires them by misfire policy. Schedules that have changed meanwhile, or that are locked, are left
        unchanged.
        """

        async def work(connection: AsyncConnection) -> set[UUID]:
            await require_lease(connection, lease)
            free = await self._unlocked_ids(connection, [each.due.schedule_id for each in unplanned])
            parked = self._dialect.rows(
                "parked",
                {
                    "schedule_id": Uuid(),
                    "fire_ts": Instant(),
                    "aggregate_version": BigInteger(),
                    "reason": Text(),
                    "run_ts": Instant(),
                },
                [
                    (
                        each.due.schedule_id,
                        each.due.fire_ts,
                        each.due.aggregate_version,
                        each.reason[:2000],
                        now + parked_for(now - each.due.fire_ts),
                    )
                    for each in unplanned
                    if each.due.schedule_id in free
                ],
            )
            result = await connection.execute(
                update(schedule_t)
                .where(
                    schedule_t.c.schedule_id == parked.c.schedule_id,
                    schedule_t.c.next_fire_ts == parked.c.fire_ts,
                    schedule_t.c.aggregate_version == parked.c.aggregate_version,
                )
                .values(
                    state=ScheduleState.ERROR.value, state_reason=parked.c.reason, next_run_ts=parked.c.run_ts
                )
                .returning(schedule_t.c.schedule_id)
            )
            return set(result.scalars())

        return await self._database.write(Pool.FIRING, work)

    async def _unlocked_ids(self, connection: AsyncConnection, schedule_ids: Sequence[UUID]) -> set[UUID]:
        wanted = self._dialect.rows("wanted", {"schedule_id": Uuid()}, [(each,) for each in schedule_ids])
        result = await connection.execute(
            select(schedule_t.c.schedule_id)
            .where(schedule_t.c.schedule_id.in_(select(wanted.c.schedule_id)))
            .with_for_update(key_share=True, skip_locked=True)
        )
        return set(result.scalars())


def _select_due(shard: Shard, until: datetime, *also: ColumnElement[bool]) -> Select[Any]:
    return select(*DUE_COLUMNS).where(
        schedule_t.c.next_run_ts <= literal(until, Instant), *is_of(shard), *also
    )


def _overlap_of(due: Due) -> Overlap:
    return policies_from(due.definition.policies).overlap


def _admit(
    firings: Sequence[Firing], opened: dict[UUID, OpenCounts], now: datetime
) -> tuple[list[NewExecution], dict[UUID, FireDecision]]:
    """Apply the overlap policies; return the rows to insert, and decisions deferred because a queue is full.

    Fire times of a schedule are decided in order, so only its first deferred decision is returned.
    """
    rows, next_id = [], ids_at(now)
    waiting: dict[UUID, FireDecision] = {}
    for firing in firings:
        due, decisions = firing.due, firing.decisions
        if len(decisions) == 1 and not (opened and due.schedule_id in opened):
            # The usual case: one decision, and no open execution that it could overlap with.
            rows.append(NewExecution(next_id(), due, decisions[0], OverlapDecision.RUN, decisions[0].reason))
            continue
        counts = opened.get(due.schedule_id, NONE_OPEN)
        for decision in decisions:
            admission = OverlapDecision.RUN
            if decision.reason is None:
                is_skippable = not (decision.is_catchup or firing.is_delay)
                admission = admit_execution(_overlap_of(due), counts, is_skippable=is_skippable)
                if admission is OverlapDecision.WAIT:
                    waiting[due.schedule_id] = decision
                    break
                counts = counts.plus(admission)
            reason = SkipReason.OVERLAP if admission is OverlapDecision.SKIP else decision.reason
            rows.append(NewExecution(next_id(), due, decision, admission, reason))
    return rows, waiting


def _next_of(
    firing: Firing, waiting: FireDecision | None, now: datetime
) -> tuple[datetime | None, datetime | None, str]:
    if waiting is not None:
        run_ts = now + timedelta(seconds=QUEUE_FULL_PAUSE_S)
        return (waiting.fire_ts, run_ts, ScheduleState.ACTIVE.value)
    upcoming = firing.next or firing.after_overlap
    # A `delay` schedule without a next time waits for its earlier run to end, even if the run that did not
    # fire would have been its last.
    goes_on = upcoming is not None or firing.is_delay
    state = ScheduleState.ACTIVE if goes_on else ScheduleState.COMPLETED
    return (upcoming and upcoming.fire_ts, upcoming and upcoming.run_ts, state.value)


def report(rows: Sequence[NewExecution], refused: Sequence[Due], now: datetime, names: Names) -> Fired:
    fired, skipped, held = [], [], []
    for row in rows:
        decision, due = row.decision, row.due
        name = names.get(due.schedule_id)
        if row.reason is None:
            if row.admission is not OverlapDecision.RUN:
                held.append(row.execution_id)
            late_s = (now - decision.run_ts).total_seconds()
            fired.append(
                FiredExecution(
                    row.execution_id,
                    due.schedule_id,
                    decision.fire_ts,
                    late_s,
                    decision.missed_count,
                    name,
                    due.definition.queue,
                    due.aggregate_version,
                )
            )
        else:
            skipped.append(skipped_by(row, row.reason, name))
    return Fired(fired, skipped, refused, held=frozenset(held))

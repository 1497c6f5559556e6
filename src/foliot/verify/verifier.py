"""Verify the history: read a snapshot, compute due times, compare, and report."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.database import Database
from foliot.db.dialect import Dialect
from foliot.model.instant import EPOCH
from foliot.verify.cron import UnsupportedExpressionError
from foliot.verify.epochs import check_epochs, read_epochs
from foliot.verify.finding import CheckCounts, Finding, Report, VerifiedSpan
from foliot.verify.history import StoredHistory
from foliot.verify.history_reader import first_change, oldest_kept, read_calendars, read_histories, snapshot
from foliot.verify.ledger import compare, compare_delays
from foliot.verify.outbox import check_outbox, count_messages
from foliot.verify.policy_checks import Calendars, judge_rows
from foliot.verify.states import check_states
from foliot.verify.version_periods import due_times, kinds_of
from foliot.verify.walker import Walker


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """What to check: a period, and values to compare with."""

    retention: timedelta
    from_ts: datetime | None = None
    to_ts: datetime | None = None
    known_epochs: Mapping[int, int] = field(default_factory=dict)
    """Epochs by shard that were read earlier. They must not have decreased."""


async def verify(
    database: Database, wanted: VerifyRequest, on_progress: Callable[[int], None] | None = None
) -> Report:
    """Check the stored history of a period; by default all that retention has left.

    `on_progress` is called with the number of schedules checked so far.
    """
    async with snapshot(database) as connection:
        return await verify_in(connection, database.dialect, wanted, on_progress)


async def verify_in(
    connection: AsyncConnection,
    dialect: Dialect,
    wanted: VerifyRequest,
    on_progress: Callable[[int], None] | None = None,
) -> Report:
    """Check the stored history as this connection sees it."""
    tally = CheckCounts()
    now: datetime = (await connection.execute(select(dialect.now()))).scalar_one()
    began = await first_change(connection) or now
    span, is_cut = await _span(connection, began, now, wanted)
    epochs = await read_epochs(connection)
    calendars = await read_calendars(connection)
    walker = Walker(VerifiedSpan(max(span.first, began), span.last))
    findings: list[Finding] = []
    async for history in read_histories(connection, dialect, span, is_to_the_end=span.last == now):
        findings += _check(history, walker, span, calendars, tally)
        if on_progress is not None:
            on_progress(tally.schedules)
    findings += [each async for each in check_states(connection, span)]
    findings += [each async for each in check_epochs(connection, span, epochs, wanted.known_epochs)]
    findings += [each async for each in check_outbox(connection, span)]
    tally.messages = await count_messages(connection, span)
    return Report(span, is_cut, tally, epochs, tuple(sorted(findings, key=_order)))


async def _span(
    connection: AsyncConnection, began: datetime, now: datetime, wanted: VerifyRequest
) -> tuple[VerifiedSpan, bool]:
    """Return the span to check, and whether older history was left out.

    Rows younger than the retention are never deleted. Older rows may have been deleted up to the oldest one
    that is left.
    """
    horizon = now - wanted.retention
    first, is_cut = EPOCH, False
    if began < horizon:
        first, is_cut = max(horizon, await oldest_kept(connection) or horizon), True
    if wanted.from_ts is not None and wanted.from_ts > first:
        first, is_cut = wanted.from_ts, False
    return VerifiedSpan(first, min(wanted.to_ts or now, now)), is_cut


def _check(
    history: StoredHistory, walker: Walker, span: VerifiedSpan, calendars: Calendars, tally: CheckCounts
) -> list[Finding]:
    tally.schedules += 1
    tally.executions += len(history.rows)
    found = list(judge_rows(history, calendars, tally))
    counts_from_end = [kind is not None and kind.counts_from_end for kind in kinds_of(history.versions)]
    if any(counts_from_end):
        tally.not_checked["a delay has no times of its own: only the distance between runs"] += 1
        if all(counts_from_end):
            found += compare_delays(history)
        return found
    try:
        due = due_times(history, walker, span)
    except UnsupportedExpressionError as error:
        tally.not_checked[str(error)] += 1
        return found
    return [*found, *compare(history, due, span, tally)]


def _order(finding: Finding) -> tuple[bool, datetime, str, str]:
    return (finding.at is None, finding.at or EPOCH, finding.schedule_name or "", finding.kind.value)

"""Check executions and their attempts, with statements that return only violations."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, case, func, literal, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.db.tables.executions import attempt_t, execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.model.execution import FINAL, OPEN, SkipReason, Status, TriggeredBy
from foliot.verify.finding import Finding, FindingKind, VerifiedSpan

MAX_ROWS = 1_000
"""Maximum number of findings reported per statement."""


class StateRule(NamedTuple):
    """A condition that no row may fulfil."""

    kind: FindingKind
    broken: ColumnElement[bool]
    wrong: str
    right: str


def _values(statuses: frozenset[Status]) -> list[str]:
    return sorted(each.value for each in statuses)


_E = execution_t.c
_RUN = frozenset({Status.SUCCESS, Status.FAILED, Status.TIMEOUT, Status.UNKNOWN})
_TIMED = (TriggeredBy.SCHEDULER.value, TriggeredBy.BACKFILL.value)

OF_EXECUTIONS = (
    StateRule(
        FindingKind.EARLY,
        and_(_E.triggered_by.in_(_TIMED), _E.created_ts < _E.fire_ts),
        "was decided before its time had come",
        "not before its fire_ts",
    ),
    StateRule(
        FindingKind.STATE,
        _E.status.not_in(_values(OPEN | FINAL)),
        "has a status that there is not",
        "one of the statuses",
    ),
    StateRule(
        FindingKind.STATE,
        and_(
            _E.status == Status.RUNNING.value,
            or_(_E.lease_until.is_(None), _E.worker_id.is_(None), _E.started_ts.is_(None), _E.attempt < 1),
        ),
        "runs without a worker, a lease, a start or an attempt",
        "all four",
    ),
    StateRule(
        FindingKind.STATE,
        and_(_E.status != Status.RUNNING.value, _E.lease_until.is_not(None)),
        "has a lease although it does not run",
        "no lease_until",
    ),
    StateRule(
        FindingKind.STATE,
        and_(_E.status.in_(_values(OPEN)), _E.ended_ts.is_not(None)),
        "is open although it has ended",
        "no ended_ts",
    ),
    StateRule(
        FindingKind.STATE,
        and_(_E.status.in_(_values(FINAL)), _E.ended_ts.is_(None)),
        "is over without an end",
        "an ended_ts",
    ),
    StateRule(
        FindingKind.STATE,
        and_(_E.status.in_(_values(_RUN)), or_(_E.attempt < 1, _E.started_ts.is_(None))),
        "has ended without an attempt or a start",
        "an attempt and a started_ts",
    ),
    StateRule(
        FindingKind.STATE,
        and_(
            _E.status == Status.SKIPPED.value,
            or_(_E.attempt != 0, _E.started_ts.is_not(None), _E.reason.is_(None)),
        ),
        "was skipped, and yet began or has no reason",
        "a reason and no attempt",
    ),
    StateRule(
        FindingKind.STATE,
        and_(_E.status == Status.RETRYING.value, or_(_E.ready_ts.is_(None), _E.attempt < 1)),
        "is to be tried again, but not from when on, or was never tried",
        "a ready_ts and an attempt",
    ),
    StateRule(
        FindingKind.STATE,
        _E.ended_ts < _E.started_ts,
        "ended before it started",
        "an ended_ts after its started_ts",
    ),
    StateRule(
        FindingKind.STATE,
        or_(
            and_(_E.missed_count > 0, _E.missed_from_ts.is_(None)),
            and_(_E.missed_count == 0, _E.missed_from_ts.is_not(None)),
            _E.missed_from_ts >= _E.fire_ts,
        ),
        "decides missed times without saying from when on, or none that lie before it",
        "missed_count and an earlier missed_from_ts, or neither",
    ),
    StateRule(
        FindingKind.ATTEMPT,
        _E.failed_attempts > _E.attempt,
        "failed more often than it was tried",
        "failed_attempts up to attempt",
    ),
    StateRule(
        FindingKind.ATTEMPT,
        and_(
            _E.failed_attempts > 0,
            _E.failed_attempts
            > select(func.count())
            .select_from(attempt_t)
            .where(attempt_t.c.execution_id == _E.execution_id)
            .scalar_subquery(),
        ),
        "failed more often than attempts are recorded",
        "a row of attempt_t for every attempt that failed",
    ),
)

_A = attempt_t.c
_later = attempt_t.alias("later")
_is_overtaken = (
    select(literal(1))
    .where(
        _later.c.execution_id == _A.execution_id,
        _later.c.attempt > _A.attempt,
        _later.c.started_ts < _A.ended_ts,
    )
    .exists()
)

OF_ATTEMPTS = (
    StateRule(
        FindingKind.ATTEMPT,
        _E.execution_id.is_(None),
        "an attempt at an execution that there is not",
        "the execution that it was of",
    ),
    StateRule(
        FindingKind.ATTEMPT,
        or_(_A.attempt < 1, _A.attempt > _E.attempt),
        "an attempt with a number that its execution has not reached",
        "1 up to the execution's attempt",
    ),
    StateRule(
        FindingKind.ATTEMPT,
        _A.ended_ts < _A.started_ts,
        "an attempt that ended before it started",
        "an ended_ts after its started_ts",
    ),
    StateRule(
        FindingKind.ATTEMPT,
        or_(_is_overtaken, and_(_A.attempt < _E.attempt, _E.started_ts < _A.ended_ts)),
        "an attempt that had not ended when the next one started",
        "one after the other",
    ),
    StateRule(
        FindingKind.ATTEMPT,
        or_(
            _A.status == Status.SUCCESS.value,
            and_(_A.attempt == _E.attempt, _E.status == Status.SUCCESS.value),
        ),
        "an attempt recorded as one that went wrong, which succeeded",
        "no row of attempt_t",
    ),
)


async def check_states(connection: AsyncConnection, span: VerifiedSpan) -> AsyncIterator[Finding]:
    named = select(schedule_t.c.schedule_name, _E.schedule_id, _E.execution_id, _E.fire_ts)
    executions = named.select_from(
        execution_t.outerjoin(schedule_t, schedule_t.c.schedule_id == _E.schedule_id)
    ).where(_E.execution_id >= span.first_id, _E.created_ts.between(span.first, span.last))
    async for finding in _broken(connection, executions, OF_EXECUTIONS):
        yield finding
    attempts = named.select_from(
        attempt_t.outerjoin(execution_t, _E.execution_id == _A.execution_id).outerjoin(
            schedule_t, schedule_t.c.schedule_id == _E.schedule_id
        )
    ).where(
        _A.execution_id >= span.first_id,
        or_(_E.execution_id.is_(None), _E.created_ts.between(span.first, span.last)),
    )
    async for finding in _broken(connection, attempts, OF_ATTEMPTS):
        yield finding
    async for finding in _broken(connection, executions, (_unowned(),)):
        yield finding


def _unowned() -> StateRule:
    # Deleting a schedule writes a row for its pending due time, in the same transaction after the deletion.
    is_by_deleting = func.coalesce(_E.reason, "") == SkipReason.DELETED.value
    return StateRule(
        FindingKind.PHANTOM,
        and_(
            _E.triggered_by == TriggeredBy.SCHEDULER.value,
            or_(
                schedule_t.c.schedule_id.is_(None),
                and_(_E.fire_ts > schedule_t.c.deleted_ts, ~is_by_deleting),
            ),
        ),
        "a row of a schedule that there is not, or not any more",
        "no row",
    )


async def _broken(
    connection: AsyncConnection, rows: Select[Any], rules: Sequence[StateRule]
) -> AsyncIterator[Finding]:
    which = case(*((rule.broken, number) for number, rule in enumerate(rules)), else_=-1)
    statement = rows.add_columns(which.label("which")).where(or_(*(rule.broken for rule in rules)))
    for row in await connection.execute(statement.limit(MAX_ROWS)):
        rule = rules[row.which]
        subject = "" if row.execution_id is None else f"execution {row.execution_id}: "
        yield Finding(
            rule.kind, subject + rule.wrong, rule.right, row.fire_ts, row.schedule_name, row.schedule_id
        )

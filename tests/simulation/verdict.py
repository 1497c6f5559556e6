"""Checks a history at its end, with `foliot verify` and with code that shares nothing with firing."""

import sqlite3
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from foliot.db.database import Database
from foliot.kinds.cron_trigger import CronTrigger
from foliot.kinds.interval_trigger import IntervalTrigger
from foliot.model.instant import micros_of
from foliot.verify.verifier import VerifyRequest, verify
from tests.ledger import decided_times
from tests.simulation.memory import Memory
from tests.simulation.people import Known, People
from tests.simulation.target import Agent
from tests.simulation.witness import Witness

Accuse = Callable[[str], None]


def overdue(raw: sqlite3.Connection, now: datetime) -> list[str]:
    """Return schedules with a fire time that should have been decided by now."""
    found = raw.execute(
        "SELECT schedule_name FROM schedule_t WHERE active AND deleted_ts IS NULL AND next_run_ts <= ?"
        " AND (NOT paused OR paused_until_ts <= ?)",
        (micros_of(now), micros_of(now)),
    )
    return [name for (name,) in found]


def unsettled(raw: sqlite3.Connection, before: datetime) -> list[str]:
    """Return executions created before an instant that have not ended."""
    found = raw.execute(
        "SELECT execution_id FROM execution_t WHERE status IN ('pending', 'running', 'retrying')"
        " AND created_ts <= ?",
        (micros_of(before),),
    )
    return [each for (each,) in found]


async def judge(
    memory: Memory, told: Any, people: People, agent: Agent, witness: Witness, accuse: Accuse
) -> None:
    database = Database(memory.dialect, memory.engines, "memory")
    report = await verify(
        database,
        VerifyRequest(timedelta(days=90), known_epochs={k - 1: v for k, v in witness.epochs.items()}),
    )
    for finding in report.findings:
        where = f"{finding.kind} {finding.schedule_name} {finding.at}"
        accuse(f"verify: {where}: {finding.wrong}; {finding.right}")
    told.counts["due times"] += report.tally.due_times
    told.counts["executions"] += report.tally.executions
    for known in people.known.values():
        if not known.is_touched:
            await _judge_steady(memory, people, known, accuse)
    _judge_runs(memory.raw, agent, accuse)
    _judge_outbox(memory.raw, accuse)


async def _judge_steady(memory: Memory, people: People, known: Known, accuse: Accuse) -> None:
    """Check that an unchanged schedule has each fire time since its creation decided exactly once."""
    spec = known.schedule.spec
    standing = memory.raw.execute(
        "SELECT created_ts, next_fire_ts FROM schedule_t WHERE schedule_id = ?",
        (known.schedule.schedule_id.hex,),
    ).fetchone()
    if (
        standing is None
        or spec.max_runs is not None
        or not isinstance(spec.trigger, IntervalTrigger | CronTrigger)
    ):
        return
    made, following = (
        known.schedule.created_ts + timedelta(microseconds=each - standing[0]) for each in standing
    )
    if isinstance(spec.trigger, IntervalTrigger):
        step = timedelta(seconds=spec.trigger.frequency_time)
        first = made + step
    else:
        step = timedelta(seconds=int(spec.trigger.expression.split()[0].removeprefix("*/")))
        minute = made.replace(second=0, microsecond=0)
        first = minute + step * ((made - minute) // step + 1)
    rows = await people.store.schedules.executions(known.schedule.schedule_id, limit=100_000)
    expected = Counter(first + step * number for number in range(max(0, (following - first) // step)))
    found = decided_times(rows, step)
    if found != expected:
        wrong = sorted((found - expected) + (expected - found))
        accuse(f"{spec.name}: decided never or twice: {[each.isoformat() for each in wrong]}")


def _judge_runs(raw: sqlite3.Connection, agent: Agent, accuse: Accuse) -> None:
    """Compare the runs that the agent saw with the executions in the database."""
    rows = {
        execution_id: (status, attempt)
        for execution_id, status, attempt in raw.execute(
            "SELECT execution_id, status, attempt FROM execution_t"
        )
    }
    seen: dict[str, list[Any]] = {}
    for run in agent.runs:
        seen.setdefault(run.execution_id.hex, []).append(run)
    for execution_id, runs in seen.items():
        numbers = [run.attempt for run in runs]
        if sorted(set(numbers)) != numbers:
            accuse(f"execution {execution_id} was begun in the order {numbers}")
        if runs[0].spec.delivery == "at_most_once" and len(runs) > 1:
            accuse(f"execution {execution_id} is to run at most once and ran {len(runs)} times")
        status, attempt = rows[execution_id]
        ends = {run.attempt: run.end for run in runs}
        if status == "success" and ends.get(attempt) != "success":
            accuse(f"execution {execution_id} is a success, its last run was {ends.get(attempt)}")
        if max(numbers) > attempt:
            accuse(f"execution {execution_id} is at attempt {attempt}, and was begun as {max(numbers)}")


def _judge_outbox(raw: sqlite3.Connection, accuse: Accuse) -> None:
    offsets = [each for (each,) in raw.execute("SELECT c_offset FROM outbox_message_t ORDER BY c_offset")]
    if offsets != list(range(1, len(offsets) + 1)):
        accuse(f"the outbox has offsets {offsets}")
    (events,) = raw.execute(
        "SELECT count(*) FROM execution_t WHERE status = 'success' AND worker_id IS NULL"
    ).fetchone()
    if events != len(offsets):
        accuse(f"{events} events were fired, the outbox has {len(offsets)}")

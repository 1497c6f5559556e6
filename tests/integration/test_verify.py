"""`foliot verify` on real histories: nothing is wrong with the engine's own, what is broken is found."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from foliot.cli import main
from foliot.db.dialect import Pool
from foliot.db.hints import Hint
from foliot.db.tables.cluster import scheduler_lock_t
from foliot.db.tables.events import event_store_t, log_counter, outbox_message_t
from foliot.db.tables.executions import attempt_t, execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.instance.spec import InstanceRole
from foliot.instance.store import SqlStore
from foliot.model.calendar import CalendarSpec
from foliot.model.errors import FencedError, InvalidError, NotFoundError
from foliot.model.execution import TriggeredBy
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.model.instant import EPOCH
from foliot.model.lease import Lease, Shard
from foliot.model.schedule import Schedule, ScheduleSpec
from foliot.planning.change import PlannedChange, edit, pause, resume
from foliot.planning.change import delete as remove
from foliot.planning.definition import compile_definition
from foliot.planning.fire import FireDecision, Firing, plan_firing
from foliot.scheduler import advancing_sql, firing_sql
from foliot.sdk.app import Foliot
from foliot.testing.app import TestApp
from foliot.verify.finding import FindingKind, Report, Verdict, VerifiedSpan
from foliot.verify.history_reader import read_histories
from foliot.verify.verifier import VerifyRequest, verify, verify_in
from tests.conftest import OpenStore
from tests.engine import AUTHOR, add, every_second, registry, running, spec, until

BOTH = frozenset({InstanceRole.SCHEDULER, InstanceRole.WORKER})
EVERYTHING = VerifyRequest(timedelta(days=90))
SECOND = timedelta(seconds=1)


async def fails() -> None:
    raise RuntimeError("as it is meant to")


async def noop() -> None:
    """Do nothing, as a task."""


def event_every_second(name: str) -> Any:
    target = {"kind": "event", "event_topic": "a", "event_type": "b", "event_data": {"c": 1}}
    return spec(name, {"kind": "interval", "seconds": 1}, target=target)


async def count(store: SqlStore, *conditions: Any) -> int:
    async with store.database.read(Pool.API) as connection:
        statement = select(func.count()).select_from(execution_t).where(*conditions)
        return int((await connection.execute(statement)).scalar_one())


def has_rows(
    store: SqlStore, schedule: Schedule, least: int, *conditions: Any
) -> Callable[[], Awaitable[bool]]:
    async def has() -> bool:
        return await count(store, execution_t.c.schedule_id == schedule.schedule_id, *conditions) >= least

    return has


def is_plain(status: str) -> tuple[Any, ...]:
    """A row that decides one time, and stands so."""
    return (execution_t.c.status == status, execution_t.c.missed_count == 0)


async def write_history(url: str, store: SqlStore) -> dict[str, Schedule]:
    """Two leaders one after the other; runs, failures, events, skips, a pause, an edit, an outage."""
    retry = {"max_attempts": 3, "initial_delay_seconds": 0.01, "max_delay_seconds": 0.01}
    made = {
        each.name: await add(store, each)
        for each in (
            every_second("plain", overlap={"policy": "allow"}),
            spec("cron", {"kind": "cron", "expression": "* * * * * *", "timezone": "Europe/Berlin"}),
            event_every_second("event"),
            every_second("failing", target={"kind": "function", "name": "fails"}, retry=retry, max_runs=1),
            every_second("thrice", max_runs=3),
            every_second("paused"),
            every_second("edited"),
            every_second("windowed", window={"hours_of_day": [(datetime.now(UTC).hour + 12) % 24]}),
            spec("delayed", {"kind": "delay", "seconds": 0.3}),
        )
    }
    tasks = registry(noop, fails)
    async with running(url, roles=BOTH, tasks=tasks):
        for name, status in (("plain", "success"), ("cron", "success"), ("windowed", "skipped")):
            await until(has_rows(store, made[name], 1, *is_plain(status)))
        await until(has_rows(store, made["delayed"], 2))
        await store.schedules.change(
            made["paused"].schedule_id, lambda now_is, now: pause(now_is, now=now, author=AUTHOR), AUTHOR
        )
        await until(has_rows(store, made["failing"], 1, execution_t.c.status == "failed"))
    # Nobody leads: several times become due.
    await until(lambda: _is_past(store, made["plain"], 1), every_s=0.1)
    async with running(url, roles=BOTH, tasks=tasks):
        await until(has_rows(store, made["plain"], 1, execution_t.c.missed_count > 0))
        await store.schedules.change(
            made["paused"].schedule_id, lambda now_is, now: resume(now_is, now=now, author=AUTHOR), AUTHOR
        )
        changed = spec("edited", {"kind": "cron", "expression": "1-59/2 * * * * *"})
        await store.schedules.change(
            made["edited"].schedule_id,
            lambda now_is, now: edit(now_is, changed, now=now, author=AUTHOR),
            AUTHOR,
        )
        await store.schedules.trigger(made["plain"].schedule_id, by=TriggeredBy.API, author=AUTHOR)
        await until(has_rows(store, made["edited"], 1, execution_t.c.aggregate_version == 2))
        await until(has_rows(store, made["thrice"], 3))
        await until(has_rows(store, made["event"], 3))
        await until(has_rows(store, made["paused"], 3))
    # Nobody leads any more, and the next time has come.
    await until(lambda: _is_past(store, made["plain"], 0))
    return made


async def _is_past(store: SqlStore, schedule: Schedule, steps: int) -> bool:
    standing = await store.schedules.get(schedule.schedule_id)
    assert standing.next_fire_ts is not None
    return await store.now() > standing.next_fire_ts + steps * SECOND


async def check(store: SqlStore, wanted: VerifyRequest = EVERYTHING) -> Report:
    return await verify(store.database, wanted)


# --- sabotage --------------------------------------------------------------------------------------

Break = Callable[[AsyncConnection, dict[str, Schedule]], Awaitable[Any]]


async def rows_of(connection: AsyncConnection, schedule: Schedule) -> Sequence[Any]:
    statement = (
        select(execution_t)
        .where(execution_t.c.schedule_id == schedule.schedule_id, execution_t.c.triggered_by == "scheduler")
        .order_by(execution_t.c.fire_ts)
    )
    return (await connection.execute(statement)).all()


async def change_row(connection: AsyncConnection, row: Any, **values: Any) -> None:
    await connection.execute(
        update(execution_t).where(execution_t.c.execution_id == row.execution_id).values(values)
    )


async def plain_row(connection: AsyncConnection, schedule: Schedule) -> Any:
    """A row that decides one time and is over."""
    rows = await rows_of(connection, schedule)
    return next(row for row in rows if not row.missed_count and row.status in ("success", "skipped"))


def with_row(name: str, change: Callable[[Any], dict[str, Any]], *, is_missed: bool = False) -> Break:
    async def act(connection: AsyncConnection, made: dict[str, Schedule]) -> None:
        row = await plain_row(connection, made[name])
        if is_missed:
            row = next(row for row in await rows_of(connection, made[name]) if row.missed_count)
        await change_row(connection, row, **change(row))

    return act


async def delete_a_row(connection: AsyncConnection, made: dict[str, Schedule]) -> None:
    row = await plain_row(connection, made["cron"])
    await connection.execute(delete(execution_t).where(execution_t.c.execution_id == row.execution_id))


async def delete_the_last_row(connection: AsyncConnection, made: dict[str, Schedule]) -> None:
    row = (await rows_of(connection, made["plain"]))[-1]
    await connection.execute(delete(execution_t).where(execution_t.c.execution_id == row.execution_id))


async def double_a_row(connection: AsyncConnection, made: dict[str, Schedule]) -> None:
    await connection.execute(text("DROP INDEX uq_execution_scheduled"))
    row = (await rows_of(connection, made["plain"]))[0]
    await connection.execute(insert(execution_t).values({**row._mapping, "execution_id": new_id()}))


async def cover_a_time_twice(connection: AsyncConnection, made: dict[str, Schedule]) -> None:
    rows = await rows_of(connection, made["plain"])
    await change_row(connection, rows[1], missed_count=1, missed_from_ts=rows[0].fire_ts)


async def make_up_a_row(connection: AsyncConnection, made: dict[str, Schedule]) -> None:
    row = await plain_row(connection, made["plain"])
    at = row.fire_ts + SECOND / 2
    instants = dict.fromkeys(("fire_ts", "created_ts", "started_ts", "ended_ts"), at)
    await connection.execute(
        insert(execution_t).values({**row._mapping, "execution_id": new_id(), **instants})
    )


async def delete_a_message(connection: AsyncConnection, _made: dict[str, Schedule]) -> None:
    second = select(func.min(outbox_message_t.c.c_offset) + 1).scalar_subquery()
    await connection.execute(delete(outbox_message_t).where(outbox_message_t.c.c_offset == second))


async def delete_the_last_message(connection: AsyncConnection, _made: dict[str, Schedule]) -> None:
    last = select(func.max(outbox_message_t.c.c_offset)).scalar_subquery()
    await connection.execute(delete(outbox_message_t).where(outbox_message_t.c.c_offset == last))


async def delete_an_event(connection: AsyncConnection, _made: dict[str, Schedule]) -> None:
    """From store and outbox alike, and close the gap of offsets: only the execution is left to tell."""
    last = select(outbox_message_t.c.id).order_by(outbox_message_t.c.c_offset.desc()).limit(1)
    identity = (await connection.execute(last)).scalar_one()
    for table in (event_store_t, outbox_message_t):
        await connection.execute(delete(table).where(table.c.id == identity))
    await connection.execute(update(log_counter).values(next_offset=log_counter.c.next_offset - 1))


async def double_a_message(connection: AsyncConnection, _made: dict[str, Schedule]) -> None:
    last = select(outbox_message_t).order_by(outbox_message_t.c.c_offset.desc()).limit(1)
    row = (await connection.execute(last)).one()
    changes = {"id": new_id(), "c_offset": row.c_offset + 1, "transaction_id": new_id()}
    await connection.execute(insert(outbox_message_t).values({**row._mapping, **changes}))
    await connection.execute(update(log_counter).values(next_offset=log_counter.c.next_offset + 1))


async def swap_two_messages(connection: AsyncConnection, _made: dict[str, Schedule]) -> None:
    table = outbox_message_t
    rows = (await connection.execute(select(table).order_by(table.c.c_offset).limit(2))).all()
    for row, offset in ((rows[0], -1), (rows[1], rows[0].c_offset), (rows[0], rows[1].c_offset)):
        await connection.execute(update(table).where(table.c.id == row.id).values(c_offset=offset))


async def lower_the_epoch(connection: AsyncConnection, _made: dict[str, Schedule]) -> None:
    await connection.execute(update(scheduler_lock_t).values(epoch=1))


def with_attempt(number: int, change: Callable[[Any], dict[str, Any]]) -> Break:
    async def act(connection: AsyncConnection, _made: dict[str, Schedule]) -> None:
        chosen = select(attempt_t).where(attempt_t.c.attempt == number)
        row = (await connection.execute(chosen)).first()
        assert row is not None
        await connection.execute(
            update(attempt_t)
            .where(attempt_t.c.execution_id == row.execution_id, attempt_t.c.attempt == number)
            .values(change(row))
        )

    return act


async def forget_an_attempt(connection: AsyncConnection, _made: dict[str, Schedule]) -> None:
    await connection.execute(delete(attempt_t).where(attempt_t.c.attempt == 1))


async def forget_a_schedule(connection: AsyncConnection, made: dict[str, Schedule]) -> None:
    await connection.execute(delete(schedule_t).where(schedule_t.c.schedule_id == made["edited"].schedule_id))


async def move_on_too_far(connection: AsyncConnection, made: dict[str, Schedule]) -> None:
    """As if a schedule had been advanced in one transaction and its row lost with another."""
    moved = schedule_t.c.schedule_id == made["plain"].schedule_id
    row = (await connection.execute(select(schedule_t.c.next_fire_ts).where(moved))).one()
    await connection.execute(update(schedule_t).where(moved).values(next_fire_ts=row[0] + 2 * SECOND))


async def cut_a_delay_short(connection: AsyncConnection, made: dict[str, Schedule]) -> None:
    first, second = (await rows_of(connection, made["delayed"]))[:2]
    await change_row(connection, second, fire_ts=first.fire_ts + SECOND / 10)


SABOTAGE: dict[str, tuple[Break, set[FindingKind]]] = {
    "a row is deleted": (delete_a_row, {FindingKind.GAP}),
    "the last row is deleted": (delete_the_last_row, {FindingKind.GAP}),
    "a schedule moved on without its rows": (move_on_too_far, {FindingKind.GAP}),
    "a row is doubled": (double_a_row, {FindingKind.DOUBLE}),
    "a row covers what another has decided": (cover_a_time_twice, {FindingKind.DOUBLE}),
    "a row is made up": (make_up_a_row, {FindingKind.PHANTOM}),
    "a row is of a version that never was": (
        with_row("plain", lambda _: {"aggregate_version": 99}),
        {FindingKind.PHANTOM},
    ),
    "a fire time is shifted": (
        with_row("plain", lambda row: {"fire_ts": row.fire_ts - SECOND / 4}),
        {FindingKind.PHANTOM, FindingKind.GAP},
    ),
    "a schedule is gone": (forget_a_schedule, {FindingKind.PHANTOM}),
    "a row decides more times than there were": (
        with_row("plain", lambda row: {"missed_count": row.missed_count + 1}, is_missed=True),
        {FindingKind.MISCOUNT},
    ),
    "a row decides only the last of several": (
        with_row("plain", lambda _: {"missed_count": 0, "missed_from_ts": None}, is_missed=True),
        {FindingKind.GAP},
    ),
    "decided before its time": (
        with_row("plain", lambda row: {"created_ts": row.fire_ts - SECOND}),
        {FindingKind.EARLY},
    ),
    "a delay is cut short": (cut_a_delay_short, {FindingKind.EARLY}),
    "fired after its grace": (
        with_row("plain", lambda row: {"created_ts": row.fire_ts + timedelta(hours=2)}),
        {FindingKind.LATE},
    ),
    "skipped as late, in time": (
        with_row("windowed", lambda _: {"reason": "misfire"}),
        {FindingKind.LATE},
    ),
    "fired outside its window": (
        with_row(
            "windowed",
            lambda row: {"status": "success", "reason": None, "attempt": 1, "started_ts": row.ended_ts},
        ),
        {FindingKind.FORBIDDEN},
    ),
    "running without a lease": (
        with_row("plain", lambda _: {"status": "running", "ended_ts": None, "lease_until": None}),
        {FindingKind.STATE},
    ),
    "over without an end": (with_row("plain", lambda _: {"ended_ts": None}), {FindingKind.STATE}),
    "a status that is none": (with_row("plain", lambda _: {"status": "lost"}), {FindingKind.STATE}),
    "skipped for no reason": (with_row("windowed", lambda _: {"reason": None}), {FindingKind.STATE}),
    "ended before it started": (
        with_row("plain", lambda row: {"started_ts": row.ended_ts + SECOND}),
        {FindingKind.STATE},
    ),
    "an attempt that overlaps the next": (
        with_attempt(1, lambda row: {"ended_ts": row.ended_ts + timedelta(seconds=60)}),
        {FindingKind.ATTEMPT},
    ),
    "an attempt that was never reached": (with_attempt(3, lambda _: {"attempt": 7}), {FindingKind.ATTEMPT}),
    "an attempt that ran backwards": (
        with_attempt(1, lambda row: {"ended_ts": row.started_ts - SECOND}),
        {FindingKind.ATTEMPT},
    ),
    "an attempt that is missing": (forget_an_attempt, {FindingKind.ATTEMPT}),
    "an epoch that fell": (lower_the_epoch, {FindingKind.EPOCH}),
    "a message is deleted": (delete_a_message, {FindingKind.OUTBOX_GAP}),
    "the last message is deleted": (delete_the_last_message, {FindingKind.OUTBOX_GAP}),
    "an event is deleted": (delete_an_event, {FindingKind.OUTBOX_GAP}),
    "a message is doubled": (double_a_message, {FindingKind.OUTBOX_DOUBLE}),
    "two messages are swapped": (swap_two_messages, {FindingKind.OUTBOX_ORDER}),
}


class _UndoneError(Exception):
    """Takes everything back."""


@asynccontextmanager
async def undone(store: SqlStore) -> AsyncIterator[AsyncConnection]:
    """A transaction of which nothing is left."""
    try:
        async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
            yield connection
            raise _UndoneError
    except _UndoneError:
        pass


async def test_a_history_of_the_engine_is_valid_and_whatever_is_broken_in_it_is_found(
    database_url: str, open_test_store: OpenStore, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    store = await open_test_store(database_url)
    assert (await check(store)).verdict is Verdict.UNKNOWN
    made = await write_history(database_url, store)

    report = await check(store)
    assert report.findings == ()
    assert report.verdict is Verdict.VALID
    tally = report.tally
    assert tally.schedules == len(made)
    assert tally.due_times > 20
    assert tally.messages >= 3
    assert report.epochs[0] >= 2
    assert list(tally.not_checked.values()) == [1]

    found = {}
    for name, (sabotage, _) in SABOTAGE.items():
        async with undone(store) as connection:
            await sabotage(connection, made)
            report = await verify_in(connection, store.database.dialect, EVERYTHING)
            assert report.verdict is not Verdict.UNKNOWN
            found[name] = set(report.counts)
    assert found == {name: kinds for name, (_, kinds) in SABOTAGE.items()}

    seen = await verify(store.database, VerifyRequest(timedelta(days=90), known_epochs={0: 1_000}))
    assert set(seen.counts) == {FindingKind.EPOCH}
    await _check_spans(store, made)
    await _check_command(database_url, store, made, monkeypatch, capsys)


async def _check_spans(store: SqlStore, made: dict[str, Schedule]) -> None:
    """A part of the history is as valid as the whole, and what is broken outside of it is not seen."""
    async with store.database.read(Pool.API) as connection:
        rows = await rows_of(connection, made["plain"])
    missed = next(row for row in rows if row.missed_count)
    cuts = [missed.missed_from_ts, missed.missed_from_ts + SECOND / 2, missed.fire_ts, rows[1].fire_ts]
    for cut in cuts:
        later, earlier = VerifyRequest(timedelta(days=90), cut), VerifyRequest(timedelta(days=90), None, cut)
        for wanted in (later, earlier):
            report = await check(store, wanted)
            assert report.findings == ()
            assert report.verdict is Verdict.VALID
    async with store.database.read(Pool.API) as connection:
        first = (await rows_of(connection, made["thrice"]))[0].fire_ts
        span, dialect = VerifiedSpan(EPOCH, first), store.database.dialect
        histories = [each async for each in read_histories(connection, dialect, span, is_to_the_end=False)]
        [thrice] = [each for each in histories if each.standing.name == "thrice"]
        assert (thrice.fired_before, len(thrice.rows)) == (0, 1)
    async with undone(store) as connection:
        await connection.execute(
            delete(execution_t).where(execution_t.c.execution_id == rows[0].execution_id)
        )
        late = VerifyRequest(timedelta(days=90), rows[1].fire_ts)
        assert (await verify_in(connection, store.database.dialect, late)).findings == ()
        # What retention may have deleted is no gap, and is said to be left out.
        kept = VerifyRequest(await store.now() - rows[1].fire_ts)
        report = await verify_in(connection, store.database.dialect, kept)
        assert (report.findings, report.is_cut) == ((), True)
        assert (await verify_in(connection, store.database.dialect, EVERYTHING)).findings


async def _check_command(
    url: str, store: SqlStore, made: dict[str, Schedule], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("FOLIOT_DATABASE_URL", url)

    async def run(*arguments: str) -> tuple[int, str]:
        ended = await asyncio.to_thread(main, ["verify", *arguments])
        return ended, capsys.readouterr().out

    ended, told = await run()
    assert (ended, told.splitlines()[-1]) == (0, "valid")
    async with store.database.dialect.begin(store.database.engine(Pool.API)) as connection:
        await delete_a_row(connection, made)
    ended, told = await run()
    assert ended == 1
    assert told.splitlines()[-1] == "invalid"
    assert "gap" in told
    assert "cron" in told
    ended, told = await run("-o", "json")
    document = json.loads(told)
    assert (ended, document["verdict"], document["counts"]) == (1, "invalid", {"gap": 1})
    assert [each["schedule_name"] for each in document["findings"]] == ["cron"]
    assert (await run("--to", "2001-01-01"))[0] == 0
    assert (await run("--from", "yesterday"))[0] == 2


# --- builds with a guard removed -------------------------------------------------------------------

FIRST, SECOND_LEADER = "first", "second"


async def take_in_turn(store: SqlStore) -> tuple[Lease, Lease]:
    """A leader that was deposed and does not know, and the one that leads."""
    shard = Shard(0, 1)
    deposed = (await store.leases.take(shard, FIRST, 60)).lease
    leading = (await store.leases.take(shard, SECOND_LEADER, -1)).lease
    assert deposed is not None
    assert leading is not None
    return deposed, leading


async def planned(store: SqlStore, at: datetime) -> list[Firing]:
    dues = await store.firing.load(Shard(0, 1), until=at, after=None, limit=1000)
    return [plan_firing(due, compile_definition(due.definition, due.schedule_id), at) for due in dues]


async def no_fence(_connection: AsyncConnection, _lease: Lease) -> None:
    """Lets everybody through."""


def without_guards(*names: str) -> Callable[..., Any]:
    """The guarded UPDATE without the conditions on these columns."""
    guarded = advancing_sql.advance_planned

    def unguarded(*arguments: Any, **options: Any) -> Any:
        statement = guarded(*arguments, **options)
        conditions = statement._where_criteria
        kept = [each for each in conditions if not any(f"schedule_t.{name}" in str(each) for name in names)]
        assert len(kept) < len(conditions)
        loose = statement._generate()
        loose._where_criteria = tuple(kept)
        return loose

    return unguarded


def take_away_guards(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    unguarded = without_guards(*names)

    def and_name(*arguments: Any) -> Any:
        return unguarded(*arguments).returning(schedule_t.c.schedule_id, schedule_t.c.schedule_name)

    monkeypatch.setattr(firing_sql, "advance_planned", unguarded)
    monkeypatch.setattr(firing_sql, "advance_and_name", and_name)


async def test_what_two_leaders_do_without_fence_and_guards_is_found(
    database_url: str, open_test_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each guard covers for the others, so it takes several to be gone before the history is wrong."""
    store = await open_test_store(database_url)
    made = [
        await add(store, every_second(f"schedule-{number}", overlap={"policy": "allow"}))
        for number in range(3)
    ]
    deposed, leading = await take_in_turn(store)
    await until(lambda: _is_past(store, made[-1], 1))
    now = await store.now()
    stale = await planned(store, now - SECOND)  # the first of two times that are due
    fresh = await planned(store, now)  # both of them, as one row
    assert [len(stale), len(fresh)] == [3, 3]

    # As it is: the deposed leader is fenced off.
    with pytest.raises(FencedError):
        await store.firing.fire(deposed, stale, now=now)
    # Without the fence the guarded UPDATE still lets only one of the two decide.
    monkeypatch.setattr(firing_sql, "require_lease", no_fence)
    assert len((await store.firing.fire(leading, fresh, now=now)).fired) == 3
    assert (await store.firing.fire(deposed, stale, now=now)).fired == []
    assert (await check(store)).verdict is Verdict.VALID
    # So does its look at the clock alone: the next time has not come.
    take_away_guards(monkeypatch, "next_fire_ts")
    assert (await store.firing.fire(deposed, stale, now=now)).fired == []
    # Without all three, times are decided twice, and the schedules go back to where they were.
    take_away_guards(monkeypatch, "next_fire_ts", "next_run_ts")
    assert len((await store.firing.fire(deposed, stale, now=now)).fired) == 3
    report = await check(store)
    assert report.verdict is Verdict.INVALID
    assert {each.schedule_name for each in report.findings if each.kind is FindingKind.DOUBLE} == {
        each.spec.name for each in made
    }


async def test_what_a_stale_plan_does_without_the_versions_guard_is_found(
    database_url: str, open_test_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_test_store(database_url)
    schedule = await add(store, every_second("moved", overlap={"policy": "allow"}))
    _, leading = await take_in_turn(store)
    await until(lambda: _is_past(store, schedule, 1))
    stale = await planned(store, await store.now())
    await store.schedules.change(
        schedule.schedule_id, lambda now_is, now: pause(now_is, now=now, author=AUTHOR), AUTHOR
    )
    later = [_a_step_later(firing) for firing in stale]
    await until(lambda: _is_after(store, later[0].decisions[-1].fire_ts))
    now = await store.now()
    assert (await store.firing.fire(leading, later, now=now)).fired == []
    assert (await check(store)).verdict is Verdict.VALID
    guards = ("next_fire_ts", "aggregate_version", "paused", "next_run_ts")
    take_away_guards(monkeypatch, *guards)
    assert len((await store.firing.fire(leading, later, now=now)).fired) == 1
    report = await check(store)
    assert FindingKind.PHANTOM in report.counts


def _a_step_later(planned_: Firing) -> Firing:
    """Extend a plan by a time that comes after the pause."""
    last = planned_.decisions[-1].fire_ts + 2 * SECOND
    return planned_._replace(decisions=(FireDecision(last, last),))


async def _is_after(store: SqlStore, instant: datetime) -> bool:
    return await store.now() > instant


# --- months in a minute ----------------------------------------------------------------------------

BEGIN = datetime(2026, 3, 26, 9, 30, 7, 250_000, tzinfo=UTC)
"""Right before clocks are set forward in Berlin and back in Santiago and Lord Howe."""
WORKDAYS = {"days_of_week": [1, 2, 3, 4, 5], "hours_of_day": list(range(8, 18)), "timezone": "Europe/Berlin"}
TRIGGERS: tuple[dict[str, Any], ...] = (
    {"kind": "interval", "minutes": 25},
    {"kind": "interval", "hours": 5},
    {"kind": "interval", "days": 1, "timezone": "Europe/Berlin"},
    {"kind": "interval", "weeks": 1, "timezone": "America/Santiago"},
    {"kind": "cron", "expression": "*/40 * * * *", "timezone": "Australia/Lord_Howe"},
    {"kind": "cron", "expression": "30 2 * * *", "timezone": "Europe/Berlin"},
    {"kind": "cron", "expression": "H H(9-17) * * MON-FRI", "timezone": "America/New_York"},
    {"kind": "rrule", "rule": "FREQ=HOURLY;INTERVAL=3", "timezone": "America/Santiago"},
    {"kind": "rrule", "rule": "FREQ=DAILY;BYHOUR=2,14;BYMINUTE=30", "timezone": "Europe/Berlin"},
    {"kind": "once", "at": (BEGIN + timedelta(days=2)).isoformat()},
    {"kind": "delay", "seconds": 4000},
)
SCHEDULES = 22
POLICIES: tuple[dict[str, Any], ...] = (
    {},
    {"misfire": {"policy": "fire_all", "max_catchup": 15, "grace_seconds": 40_000}},
    {"misfire": {"policy": "skip"}, "jitter_seconds": 60},
    {"window": WORKDAYS},
    {"calendars": ["closed"], "dst": {"gap": "skip", "repeat": "both"}},
    {"max_runs": 25},
    {"end_ts": (BEGIN + timedelta(days=4)).isoformat()},
    {"start_ts": (BEGIN + timedelta(hours=30)).isoformat(), "jitter_seconds": 3},
    {"active": False},
)


def definition(number: int, random: Random) -> ScheduleSpec:
    return spec(f"schedule-{number}", random.choice(TRIGGERS), **random.choice(POLICIES))


def change_of(random: Random, number: int) -> Callable[[Schedule, datetime], PlannedChange | None]:
    """What somebody may do to a schedule."""
    what = random.choice(["pause", "pause until", "resume", "resume", "edit", "edit", "retime", "delete"])
    ahead, edited = timedelta(hours=random.uniform(0.1, 30)), definition(number, random)
    policies = random.choice(POLICIES)

    def plan(schedule: Schedule, now: datetime) -> PlannedChange | None:
        match what:
            case "pause":
                return pause(schedule, now=now, author=AUTHOR)
            case "pause until":
                return pause(schedule, now=now, author=AUTHOR, until_ts=now + ahead)
            case "resume":
                return resume(schedule, now=now, author=AUTHOR)
            case "delete":
                return remove(schedule, now=now, author=AUTHOR) if number % 5 == 0 else None
            case "edit":
                document = schedule.spec.model_dump(mode="json")
                return edit(schedule, ScheduleSpec.parse(document | policies), now=now, author=AUTHOR)
            case _:
                return edit(schedule, edited, now=now, author=AUTHOR)

    return plan


async def test_days_of_edits_pauses_and_outages_are_valid() -> None:
    """In virtual time: whatever is done to schedules, the checker agrees with the engine on what was due."""
    random = Random(0)
    app = Foliot("memory")
    app.task(noop)
    async with TestApp(app, now=BEGIN) as engine:
        instance = await engine._started()
        store = instance.store
        closed = CalendarSpec.parse({"name": "closed", "weekdays": [6, 7], "days": ["2026-03-31"]})
        await store.calendars.put(DEFAULT_HOST_ID, closed, AUTHOR)
        for number in range(SCHEDULES):
            with suppress(InvalidError):
                await add(store, definition(number, random))
        for _ in range(10):
            for number in random.sample(range(SCHEDULES), 6):
                with suppress(InvalidError, NotFoundError):
                    schedule_id = (await engine.schedule(f"schedule-{number}")).schedule_id
                    await store.schedules.change(schedule_id, change_of(random, number), AUTHOR)
                    instance.hints.send(Hint.SCHEDULES, (schedule_id,))
            await engine.advance(hours=random.uniform(0.1, 8))
            if random.random() < 0.5:
                engine.clock.advance(random.choice([20, 900, 9_000, 60_000]))
        report = await check(store)
    assert report.findings == ()
    assert report.verdict is Verdict.VALID
    assert report.tally.due_times > 100
    assert report.tally.executions > 80

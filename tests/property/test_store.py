"""Both databases against one simple model: the same visible state after every step of a random story.

The model knows no time but an order: every schedule has one time that is due when it is made, and none after
it within the story. It is told which of several equal executions a claim took; everything else it predicts.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from tests.conformance.suites.scene import LONG, STALE, WHOLE, Scene, empty
from tests.servers import PostgresServer

from foliot.db.migrate import upgrade
from foliot.db.tables.executions import execution_t
from foliot.db.tables.schedules import schedule_t
from foliot.instance.store import SqlStore, open_store
from foliot.model.attempt import Claim
from foliot.model.errors import FencedError, NameTakenError, NotFoundError
from foliot.model.execution import Status
from foliot.model.lease import Lease
from foliot.model.schedule import Schedule
from foliot.planning.fire import Firing
from foliot.timing.clock import SystemClock, VirtualClock

NAMES = ("one", "two", "three")
RETRY = {"max_attempts": 2, "initial_delay_seconds": 0, "max_delay_seconds": 0}
OPEN = ("pending", "running", "retrying")


# --- the model -----------------------------------------------------------------------------------------


@dataclass
class ModelExecution:
    status: str
    reason: str | None
    is_ready: bool
    order: int
    """When it became ready."""
    fire_order: int
    attempt: int = 0
    failures: int = 0
    worker: str | None = None
    is_abandoned: bool = False
    is_cancelling: bool = False

    @property
    def visible(self) -> tuple[Any, ...]:
        return (self.status, self.reason, self.is_ready, self.attempt, self.failures, self.is_cancelling)


@dataclass
class ModelSchedule:
    name: str
    policy: str
    limit: int
    version: int = 1
    state: str = "active"
    is_due: bool = True
    is_paused: bool = False
    is_deleted: bool = False
    run_count: int = 0
    executions: dict[UUID, ModelExecution] = field(default_factory=dict)

    @property
    def visible(self) -> tuple[Any, ...]:
        return (self.version, self.state, self.is_due, self.is_paused, self.is_deleted, self.run_count)

    def opened(self) -> list[ModelExecution]:
        return [each for each in self.executions.values() if each.status in OPEN]

    def stop(self, reason: str) -> str | None:
        """What becomes of a due time when the schedule may not fire any more."""
        was_due, self.is_due = self.is_due, False
        return reason if was_due else None


# --- a story on a store --------------------------------------------------------------------------------


class Story:
    def __init__(self, scene: Scene, clock: VirtualClock | None) -> None:
        self._scene = scene
        self._clock = clock
        self._order = 0
        self._schedules: dict[UUID, Schedule] = {}
        self._model: dict[UUID, ModelSchedule] = {}
        self._claims: list[Claim] = []
        self._plans: list[tuple[Firing, int]] = []
        self._lease: Lease | None = None
        self._old_lease: Lease | None = None

    async def begin(self) -> None:
        self._old_lease = await self._scene.lead(instance_id="old")
        self._lease = await self._scene.lead(instance_id="new")

    async def step(self, kind: str, first: int, second: int) -> None:
        self._order += 1
        if self._clock is not None:
            self._clock.advance(0.001)
        await getattr(self, f"_{kind}")(first, second)
        await self.compare()

    def _pick(self, number: int) -> tuple[Schedule, ModelSchedule] | None:
        if not self._schedules:
            return None
        key = list(self._schedules)[number % len(self._schedules)]
        return self._schedules[key], self._model[key]

    async def _ids(self) -> set[UUID]:
        return {row.execution_id for row in await self._scene.rows(select(execution_t.c.execution_id))}

    # --- people -----------------------------------------------------------------------------------

    async def _create(self, first: int, second: int) -> None:
        name = NAMES[first % len(NAMES)]
        policy = ("skip", "queue", "allow", "cancel_running")[second % 4]
        overlap = {"policy": policy, "max_instances": 1 + second // 4 % 2}
        is_taken = any(each.name == name and not each.is_deleted for each in self._model.values())
        if is_taken:
            with pytest.raises(NameTakenError):
                await self._scene.add(name, overlap=overlap, retry=RETRY)
            return
        schedule = await self._scene.add(name, overlap=overlap, retry=RETRY)
        self._schedules[schedule.schedule_id] = schedule
        self._model[schedule.schedule_id] = ModelSchedule(name, policy, overlap["max_instances"])  # type: ignore[arg-type]

    async def _edit(self, first: int, _second: int) -> None:
        if (picked := self._pick(first)) is None:
            return
        schedule, model = picked
        with gone_if(model.is_deleted):
            await self._scene.edit(schedule, description=f"step {self._order}")
            model.version += 1

    async def _pause(self, first: int, _second: int) -> None:
        if (picked := self._pick(first)) is None:
            return
        schedule, model = picked
        before = await self._ids()
        with gone_if(model.is_deleted):
            await self._scene.pause(schedule)
            if not model.is_paused:
                model.version += 1
                model.is_paused, model.state = True, "paused"
                await self._decided(model, before, model.stop("paused"))

    async def _resume(self, first: int, _second: int) -> None:
        if (picked := self._pick(first)) is None:
            return
        schedule, model = picked
        with gone_if(model.is_deleted):
            await self._scene.resume(schedule)
            if model.is_paused:
                model.version += 1
                model.is_paused, model.state = False, "active"

    async def _delete(self, first: int, second: int) -> None:
        if second % 3 or (picked := self._pick(first)) is None:
            return
        schedule, model = picked
        before = await self._ids()
        with gone_if(model.is_deleted):
            await self._scene.delete(schedule)
            model.version += 1
            model.is_deleted = True
            await self._decided(model, before, model.stop("deleted"))
            for execution in model.opened():
                if execution.status != "running":
                    execution.status, execution.reason = "cancelled", "deleted"
                    execution.is_cancelling = True

    async def _decided(self, model: ModelSchedule, before: set[UUID], reason: str | None) -> None:
        """The row that a change wrote for what was due, if there was something."""
        new = await self._ids() - before
        assert len(new) == (reason is not None)
        for execution_id in new:
            model.executions[execution_id] = ModelExecution("skipped", reason, False, 0, -1)

    async def _trigger(self, first: int, _second: int) -> None:
        if (picked := self._pick(first)) is None:
            return
        schedule, model = picked
        with gone_if(model.is_deleted):
            execution_id = await self._scene.trigger(schedule)
            self._insert(model, execution_id, is_scheduled=False)

    # --- the leader -------------------------------------------------------------------------------

    async def _plan(self, first: int, _second: int) -> None:
        """Plan now; the plan may be committed much later."""
        if (picked := self._pick(first)) is None:
            return
        schedule, model = picked
        found = await self._scene.store.firing.load_some(WHOLE, [schedule.schedule_id])
        assert bool(found) == (not model.is_deleted and not model.is_paused)
        if found and model.is_due:
            self._plans += [(firing, model.version) for firing in await self._scene.plan(schedule)]

    async def _fire(self, first: int, second: int) -> None:
        if not self._plans:
            return
        assert self._lease is not None
        assert self._old_lease is not None
        firing, version = self._plans[first % len(self._plans)]
        model = self._model[firing.due.schedule_id]
        if second % 4 == 0:
            with pytest.raises(FencedError):
                await self._scene.commit(self._old_lease, [firing])
            return
        fired = await self._scene.commit(self._lease, [firing])
        is_as_planned = model.is_due and model.version == version and not model.is_paused
        assert len(fired.refused) == (not is_as_planned)
        if is_as_planned:
            model.is_due = False
            ids = [each.execution_id for each in fired.fired] + [each.execution_id for each in fired.skipped]
            [execution_id] = ids
            self._insert(model, execution_id, is_scheduled=True)

    def _insert(self, model: ModelSchedule, execution_id: UUID, *, is_scheduled: bool) -> None:
        is_full = model.policy != "allow" and len(model.opened()) >= model.limit
        fire_order = -1 if is_scheduled else self._order
        if is_full and is_scheduled and model.policy == "skip":
            model.executions[execution_id] = ModelExecution("skipped", "overlap", False, 0, fire_order)
            return
        if is_full and model.policy == "cancel_running":
            for other in model.opened():
                other.is_cancelling = True
                if other.status != "running":
                    other.status, other.reason = "cancelled", "replaced"
        model.run_count += is_scheduled
        model.executions[execution_id] = ModelExecution("pending", None, not is_full, self._order, fire_order)

    async def _rescue(self, _first: int, _second: int) -> None:
        assert self._lease is not None
        rescued = await self._scene.rescue(self._lease, limit=100)
        expected = {}
        for key, execution in self._executions():
            if execution.status == "running" and execution.is_abandoned:
                execution.failures += 1
                if execution.is_cancelling:
                    execution.status = "cancelled"
                elif execution.failures < RETRY["max_attempts"]:
                    execution.status, execution.order = "retrying", self._order
                else:
                    execution.status = "failed"
                expected[key] = execution.status
        assert rescued == expected

    async def _release(self, _first: int, _second: int) -> None:
        assert self._lease is not None
        count = 0
        for model in self._model.values():
            held = [each for each in model.opened() if not each.is_ready]
            room = len(held) if model.policy == "allow" else model.limit - (len(model.opened()) - len(held))
            for execution in sorted(held, key=lambda each: each.fire_order)[: max(0, room)]:
                execution.is_ready, execution.order = True, self._order
                count += 1
        assert await self._scene.release(self._lease) == count

    # --- workers ----------------------------------------------------------------------------------

    def _executions(self) -> list[tuple[UUID, ModelExecution]]:
        return [item for model in self._model.values() for item in model.executions.items()]

    async def _claim(self, first: int, second: int) -> None:
        limit, worker = 1 + first % 3, f"worker-{second % 5 // 4}"
        is_abandoned = second % 3 == 0
        waiting = {
            key: each
            for key, each in self._executions()
            if each.status in ("pending", "retrying") and each.is_ready
        }
        claims = await self._scene.claim(worker, limit=limit, lease_s=STALE if is_abandoned else LONG)
        assert len(claims) == min(limit, len(waiting))
        taken = {claim.execution_id: waiting[claim.execution_id] for claim in claims}
        left = [each.order for key, each in waiting.items() if key not in taken]
        assert not left or all(each.order <= min(left) for each in taken.values()), "the most urgent first"
        for claim in claims:
            execution = taken[claim.execution_id]
            execution.status, execution.reason, execution.worker = "running", None, worker
            execution.attempt += 1
            execution.is_abandoned = is_abandoned
            assert (claim.attempt, claim.failed_attempts) == (execution.attempt, execution.failures)
        self._claims += claims

    async def _lose(self, _first: int, _second: int) -> None:
        """A worker vanishes with what it claimed."""
        await self._claim(0, 0)
        await self.compare()
        await self._rescue(0, 0)

    async def _haunt(self, _first: int, _second: int) -> None:
        """A worker that was given up comes back and settles, while the next attempt may be under way."""
        number = len(self._claims)
        await self._lose(0, 0)
        if len(self._claims) > number:
            await self.compare()
            await self._claim(2, 1)
            await self.compare()
            await self._settle(number, 0)

    async def _settle(self, first: int, second: int) -> None:
        """Settle any claim there ever was, also one that is long another's."""
        if not self._claims:
            return
        claim = self._claims[first % len(self._claims)]
        execution = dict(self._executions())[claim.execution_id]
        worker = f"worker-{second % 3 // 2}"
        ended, status = (
            (Status.SUCCESS, Status.SUCCESS),
            (Status.FAILED, Status.FAILED),
            (Status.FAILED, Status.RETRYING),
            (Status.PENDING, Status.PENDING),
        )[second // 3 % 4]
        refused = await self._scene.settle(claim, status, worker, attempt_status=ended)
        is_mine = (execution.status, execution.attempt, execution.worker) == (
            "running",
            claim.attempt,
            worker,
        )
        assert refused == (frozenset() if is_mine else {claim.execution_id})
        if is_mine:
            execution.status = status.value
            execution.failures += ended is Status.FAILED
            if status in (Status.RETRYING, Status.PENDING):
                execution.order = self._order

    # --- looking ----------------------------------------------------------------------------------

    async def compare(self) -> None:
        now = await self._scene.now()
        schedules = {
            row.schedule_id: (
                row.aggregate_version,
                row.state,
                row.next_fire_ts is not None and row.next_fire_ts <= now,
                row.paused,
                row.deleted_ts is not None,
                row.run_count,
            )
            for row in await self._scene.rows(select(schedule_t))
        }
        assert schedules == {key: model.visible for key, model in self._model.items()}
        executions = {
            row.execution_id: (
                row.status,
                row.reason,
                row.due_by_ts is not None,
                row.attempt,
                row.failed_attempts,
                row.cancel_requested,
            )
            for row in await self._scene.rows(select(execution_t))
        }
        assert executions == {key: each.visible for key, each in self._executions()}


@contextmanager
def gone_if(is_deleted: bool) -> Iterator[None]:
    """What is done to a deleted schedule is refused."""
    if is_deleted:
        with pytest.raises(NotFoundError):
            yield
    else:
        yield


# --- the databases -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as opened:
        yield opened


@pytest.fixture(scope="module")
def clock() -> VirtualClock:
    return VirtualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))


@pytest.fixture(scope="module")
def sqlite_store(runner: asyncio.Runner, clock: VirtualClock) -> Iterator[SqlStore]:
    store = open_store("memory", clock=clock)
    runner.run(upgrade(store.database))
    yield store
    runner.run(store.close())


@pytest.fixture(scope="module")
def postgres_store(runner: asyncio.Runner, postgres_server: PostgresServer) -> Iterator[SqlStore]:
    with postgres_server.database() as url:
        store = open_store(url, clock=SystemClock())
        yield store
        runner.run(store.close())


KINDS = (
    *("create", "edit", "pause", "resume", "delete", "trigger", "trigger", "plan", "plan", "fire", "fire"),
    *("rescue", "release", "claim", "claim", "lose", "haunt", "settle", "settle"),
)
steps = st.tuples(st.sampled_from(KINDS), st.integers(0, 7), st.integers(0, 23))
stories = st.lists(steps, min_size=5, max_size=40)


async def tell(store: SqlStore, clock: VirtualClock | None, story: list[tuple[str, int, int]]) -> None:
    await empty(store)

    async def open_another() -> SqlStore:
        raise AssertionError("one store is enough here")

    told = Story(Scene(store, open_another), clock)
    await told.begin()
    await told.step("create", 0, 0)
    await told.step("plan", 0, 0)
    for kind, first, second in story:
        await told.step(kind, first, second)


bounded = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


@bounded
@given(story=stories)
def test_sqlite_does_what_the_model_does(
    runner: asyncio.Runner, sqlite_store: SqlStore, clock: VirtualClock, story: list[tuple[str, int, int]]
) -> None:
    runner.run(tell(sqlite_store, clock, story))


@bounded
@given(story=stories)
def test_postgres_does_what_the_model_does(
    runner: asyncio.Runner, postgres_store: SqlStore, story: list[tuple[str, int, int]]
) -> None:
    runner.run(tell(postgres_store, None, story))

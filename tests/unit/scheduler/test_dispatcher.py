"""What the dispatcher publishes to brokers, and when. Database and broker are lists here."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from foliot.model.delivery_events import TicketsRepublished
from foliot.model.policy import Priority
from foliot.scheduler.dispatch import dispatcher as module
from foliot.scheduler.dispatch.dispatcher import MIN_PAUSE_S, Dispatcher
from foliot.scheduler.dispatch.dispatching_sql import ClaimableExecution
from foliot.scheduler.dispatch.outgoing import Outgoing
from foliot.testing.app import Recorder
from foliot.timing.clock import ClusterClock, VirtualClock
from foliot.transport.transport_protocol import ExecutionMessage

NOW = datetime(2026, 3, 1, tzinfo=UTC)
UNTAKEN_S = 10.0


class Broker:
    """A transport that keeps what is published."""

    kind = "redis"

    def __init__(self) -> None:
        self.pace = SimpleNamespace(untaken_s=UNTAKEN_S, longest_s=60.0)
        self.is_away = False
        self.is_failing = False
        self.published: list[ExecutionMessage] = []

    async def publish(self, messages: Sequence[ExecutionMessage]) -> None:
        self.published += messages


class Rows:
    """Waiting executions, in the order of their ready times."""

    def __init__(self) -> None:
        self.rows: list[ClaimableExecution] = []

    async def waiting(
        self,
        priorities: Sequence[Priority],
        *,
        since: datetime,
        until: datetime,
        after: ClaimableExecution | None,
        limit: int,
        with_fired: bool,
    ) -> list[ClaimableExecution]:
        found = [row for row in self.rows if row.priority in priorities and since <= row.ready_ts <= until]
        return found[0 if after is None else found.index(after) + 1 :][:limit]


class Desk:
    """A dispatcher that leads the first shard, and what is around it."""

    def __init__(self, shard: int = 0) -> None:
        self.clock = VirtualClock(NOW)
        self.rows, self.broker, self.recorder = Rows(), Broker(), Recorder()
        self.leadership = cast("Any", SimpleNamespace(lease=object(), shard=SimpleNamespace(number=shard)))
        transport: Any = self.broker
        self.outgoing = Outgoing(transport)
        store: Any = self.rows
        clock = ClusterClock(self.clock)
        clock.observe(NOW, self.clock.monotonic())
        self.dispatcher = Dispatcher(
            self.leadership,
            store,
            {Priority.HIGH: self.outgoing, Priority.MEDIUM: self.outgoing},
            clock,
            self.recorder,
            every_s=1.0,
        )

    def add(self, priority: Priority = Priority.HIGH, *, ready_s: float = 0) -> UUID:
        ready_ts = self.clock.now() + timedelta(seconds=ready_s)
        self.rows.rows.append(ClaimableExecution(uuid4(), 0, "default", priority, ready_ts))
        return self.rows.rows[-1].execution_id

    async def step(self, later_s: float = 1.0) -> list[UUID]:
        """Take one step some time later. Return what is published then."""
        self.clock.advance(later_s)
        await self.dispatcher.step()
        while await self.outgoing.step() == 0:
            pass
        published, self.broker.published = self.broker.published, []
        return [each.execution_id for each in published]


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_what_waits_is_published_once(desk: Desk) -> None:
    first = desk.add()
    assert await desk.step() == [first]
    second = desk.add(Priority.MEDIUM)
    desk.add(Priority.LOW)  # the database carries this one
    assert await desk.step() == [second]
    assert await desk.step() == []


async def test_what_fires_is_published_without_a_poll_but_not_what_is_held(desk: Desk) -> None:
    fires, held = uuid4(), uuid4()
    due = SimpleNamespace(
        schedule_id=uuid4(), definition=SimpleNamespace(queue="default", priority=Priority.HIGH)
    )
    firings: Any = [SimpleNamespace(due=due)]
    made: Any = [SimpleNamespace(execution_id=each, schedule_id=due.schedule_id) for each in (fires, held)]
    fired: Any = SimpleNamespace(fired=made, held={held})
    desk.dispatcher.fired(firings, fired)
    await desk.outgoing.step()
    assert [each.execution_id for each in desk.broker.published] == [fires]


async def test_what_nobody_takes_is_published_again(desk: Desk) -> None:
    waiting = desk.add()
    assert await desk.step() == [waiting]
    assert await desk.step(UNTAKEN_S - 2) == []
    assert await desk.step(2) == [waiting]
    assert [each for each in desk.recorder.events if isinstance(each, TicketsRepublished)] == [
        TicketsRepublished("redis", 1)
    ]


async def test_what_waits_after_another_claim_counts_as_new(desk: Desk) -> None:
    waiting = desk.add()
    assert await desk.step() == [waiting]
    desk.rows.rows[0] = desk.rows.rows[0]._replace(attempt=1)
    assert await desk.step() == [waiting]


async def test_a_broker_that_is_away_gets_nothing_and_all_of_it_later(desk: Desk) -> None:
    waiting = desk.add()
    desk.broker.is_away = True
    assert await desk.step() == []
    assert await desk.step(UNTAKEN_S) == []
    desk.broker.is_away = False
    assert await desk.step(UNTAKEN_S) == [waiting]


async def test_only_the_leader_of_the_first_shard_polls() -> None:
    other = Desk(shard=1)
    other.add()
    assert await other.step() == []
    desk = Desk()
    desk.add()
    desk.leadership.lease = None
    assert await desk.step() == []


async def test_hints_do_not_make_it_poll_without_a_pause(desk: Desk) -> None:
    assert await desk.step() == []
    desk.add()
    desk.clock.advance(MIN_PAUSE_S / 2)
    assert await desk.dispatcher.step() == pytest.approx(MIN_PAUSE_S / 2)
    assert len(await desk.step(MIN_PAUSE_S)) == 1


async def test_a_poll_is_bounded_and_continues_where_it_stopped(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    monkeypatch.setattr(module, "MAX_PAGES", 2)
    added = [desk.add(ready_s=-number / 1000) for number in range(9, 0, -1)]
    assert await desk.step(0.1) == added[:4]
    assert await desk.step(0.1) == added[4:8]
    assert await desk.step(0.1) == added[8:]

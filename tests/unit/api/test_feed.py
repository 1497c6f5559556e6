"""The feed of changes on a virtual clock, over a source that says what it is told to."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from foliot.api.change_feed import (
    BUSY_S,
    LINGER_S,
    MAX_KEPT,
    MAX_LISTENERS,
    MAX_SENT,
    POLL_S,
    QUICK_S,
    RESET_EVERY_S,
    STATUS_EVERY_S,
    Feed,
    Ring,
    StreamFilter,
    StreamKind,
    Subscription,
)
from foliot.api.routes.stream import CHECK_EVERY_S, HEARTBEAT_S, messages
from foliot.db.hints import Hint, LocalHints
from foliot.model.errors import DatabaseUnreachableError, OverloadedError
from foliot.model.execution import OPEN
from foliot.queries.changes import MAX_OPEN, ChangeBatch, ExecutionStanding, Mark, ScheduleChange
from foliot.timing.clock import VirtualClock

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OURS, THEIRS = UUID(int=1), UUID(int=2)
CHANGES = frozenset({StreamKind.SCHEDULE, StreamKind.EXECUTION})


def schedule_of(number: int = 1, *, host_id: UUID = OURS, schedule_id: UUID | None = None) -> ScheduleChange:
    return ScheduleChange(host_id, schedule_id or UUID(int=number), f"schedule-{number}", "edited", number)


def execution_of(number: int = 1, status: str = "pending", **fields: Any) -> ExecutionStanding:
    standing = ExecutionStanding(
        host_id=OURS,
        execution_id=UUID(int=number),
        schedule_id=UUID(int=1000 + number),
        schedule_name="report",
        status=status,
        attempt=0,
        progress=None,
        fire_ts=NOW,
        started_ts=None,
        ended_ts=None,
        duration_seconds=None,
    )
    return standing._replace(**fields)


class Source:
    """A database in which everything that is put is new, once, and open executions can be followed."""

    def __init__(self) -> None:
        self.standings: dict[UUID, ExecutionStanding] = {}
        self.leading: tuple[str, ...] = ("one",)
        self.is_complete = True
        self.error: Exception | None = None
        self.on_look: Callable[[], None] = lambda: None
        self.begun = self.looks = 0
        self._new: set[UUID] = set()
        self._schedules: list[ScheduleChange] = []

    def put(self, *changes: ScheduleChange | ExecutionStanding) -> None:
        for change in changes:
            if isinstance(change, ScheduleChange):
                self._schedules.append(change)
                continue
            if change.execution_id not in self.standings:
                self._new.add(change.execution_id)
            self.standings[change.execution_id] = change

    async def begin(self) -> ChangeBatch:
        self.begun += 1
        self._fail()
        self._schedules, self._new = [], set()
        found = [each for each in self.standings.values() if each.status in OPEN]
        return ChangeBatch(Mark(NOW), (), found[:MAX_OPEN], len(found) <= MAX_OPEN)

    async def read_changes(self, mark: Mark, followed: Collection[UUID]) -> ChangeBatch:
        self.looks += 1
        self.on_look()
        self._fail()
        wanted = sorted({*followed, *self._new} & self.standings.keys())
        schedules, self._schedules, self._new = self._schedules, [], set()
        later = Mark(mark.since + timedelta(seconds=1))
        return ChangeBatch(later, schedules, [self.standings[each] for each in wanted], self.is_complete)

    async def leaders(self) -> tuple[str, ...]:
        self._fail()
        return self.leading

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


class Stage:
    def __init__(self) -> None:
        self.clock = VirtualClock(NOW)
        self.hints = LocalHints()
        self.source = Source()
        self.feed = Feed(self.source, self.clock, self.hints)

    async def listen(
        self,
        host_id: UUID = OURS,
        *,
        kinds: frozenset[StreamKind] = CHANGES,
        schedule_ids: frozenset[UUID] = frozenset(),
        last_event_id: str | None = None,
    ) -> Subscription:
        joining = asyncio.create_task(
            self.feed.listen(StreamFilter(host_id, kinds, schedule_ids), last_event_id)
        )
        await asyncio.sleep(0)
        if not joining.done():
            await self.feed.step()
        return await joining

    async def look(self, *changes: ScheduleChange | ExecutionStanding, after_s: float = POLL_S) -> None:
        """Let the feed find these changes."""
        self.source.put(*changes)
        self.clock.advance(after_s)
        looks = self.source.looks
        await self.feed.step()
        assert self.source.looks == looks + 1


@pytest.fixture
def stage() -> Stage:
    return Stage()


def parsed(message: bytes) -> list[dict[str, Any]]:
    """The events, and what else has an id, of what is sent."""
    found = []
    for block in message.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "data" in fields:
            fields["data"] = json.loads(fields["data"])
        if fields:
            found.append(fields)
    return found


def taken(subscription: Subscription) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while events := subscription.take():
        found += parsed(b"".join(event.message for event in events))
    return found


def told(subscription: Subscription) -> list[tuple[str, Any]]:
    """The kinds, and which version, execution or reason each is about."""
    keys = {"schedule": "aggregate_version", "execution": "status", "reset": "reason", "status": "leaders"}
    return [(each["event"], each["data"][keys[each["event"]]]) for each in taken(subscription)]


# --- looking -------------------------------------------------------------------------------------------


async def test_while_nobody_listens_nothing_is_looked_at(stage: Stage) -> None:
    assert await stage.feed.step() is None
    stage.hints.send(Hint.READY)
    assert not stage.feed.wake.is_set
    assert (stage.source.begun, stage.source.looks) == (0, 0)


async def test_a_listener_wakes_the_feed_and_waits_until_it_has_begun(stage: Stage) -> None:
    joining = asyncio.create_task(stage.feed.listen(StreamFilter(OURS)))
    await asyncio.sleep(0)
    assert stage.feed.wake.is_set
    assert not joining.done()
    assert await stage.feed.step() == POLL_S
    await joining
    assert stage.source.begun == 1


async def test_what_was_there_before_is_not_told_and_what_becomes_of_it_is(stage: Stage) -> None:
    stage.source.put(schedule_of(), execution_of(1, "running"), execution_of(2, "success"))
    listener = await stage.listen()
    await stage.look()
    assert told(listener) == []
    await stage.look(execution_of(1, "failed"))
    assert told(listener) == [("execution", "failed")]


async def test_an_event_says_what_has_changed(stage: Stage) -> None:
    listener = await stage.listen()
    running = execution_of(7, "running", attempt=2, started_ts=NOW, progress={"fraction": 0.5, "text": "x"})
    await stage.look(schedule_of(3), running)
    first, second = taken(listener)
    assert (first["event"], first["data"]) == (
        "schedule",
        {
            "schedule_id": str(UUID(int=3)),
            "name": "schedule-3",
            "change": "edited",
            "aggregate_version": 3,
        },
    )
    assert (second["event"], second["data"]) == (
        "execution",
        {
            "execution_id": str(UUID(int=7)),
            "schedule_id": str(UUID(int=1007)),
            "schedule_name": "report",
            "status": "running",
            "attempt": 2,
            "progress": {"fraction": 0.5, "text": "x"},
            "fire_ts": "2026-03-01T12:00:00Z",
            "started_ts": "2026-03-01T12:00:00Z",
            "ended_ts": None,
            "duration_seconds": None,
        },
    )


async def test_an_execution_is_told_only_when_something_of_it_has_changed(stage: Stage) -> None:
    listener = await stage.listen()
    await stage.look(execution_of())
    await stage.look()
    assert told(listener) == [("execution", "pending")]
    await stage.look(execution_of(1, "running", attempt=1))
    await stage.look(execution_of(1, "running", attempt=1, progress={"fraction": 0.5, "text": ""}))
    await stage.look(execution_of(1, "success", attempt=1))
    await stage.look()
    assert told(listener) == [("execution", "running"), ("execution", "running"), ("execution", "success")]


async def test_one_that_ended_is_not_followed_any_more(stage: Stage) -> None:
    listener = await stage.listen()
    await stage.look(execution_of(1, "success"))
    stage.source.standings[UUID(int=1)] = execution_of(1, "failed")
    await stage.look()
    assert told(listener) == [("execution", "success")]


# --- when it looks -------------------------------------------------------------------------------------


async def test_a_hint_makes_it_look_at_once_but_not_more_often_than_four_times_a_second(
    stage: Stage,
) -> None:
    await stage.listen()
    stage.feed.wake.clear()
    stage.hints.send(Hint.ENDED)
    assert stage.feed.wake.is_set
    assert await stage.feed.step() == QUICK_S
    assert stage.source.looks == 0
    stage.clock.advance(QUICK_S)
    assert await stage.feed.step() == POLL_S
    assert stage.source.looks == 1
    stage.clock.advance(QUICK_S)
    assert await stage.feed.step() == POLL_S - QUICK_S, "a hint counts once"
    assert stage.source.looks == 1


async def test_many_hints_before_a_look_wake_it_once(stage: Stage) -> None:
    await stage.listen()
    stage.feed.wake.clear()
    stage.hints.send(Hint.READY)
    stage.feed.wake.clear()
    stage.hints.send(Hint.SCHEDULES)
    assert not stage.feed.wake.is_set


async def test_a_hint_that_comes_during_a_look_is_not_lost(stage: Stage) -> None:
    await stage.listen()
    stage.source.on_look = lambda: stage.hints.send(Hint.READY)
    stage.clock.advance(POLL_S)
    assert await stage.feed.step() == QUICK_S


async def test_without_hints_it_looks_every_two_seconds_and_sooner_while_something_moves(
    stage: Stage,
) -> None:
    await stage.listen()
    stage.clock.advance(POLL_S)
    assert await stage.feed.step() == POLL_S
    stage.source.put(execution_of())
    stage.clock.advance(POLL_S)
    assert await stage.feed.step() == BUSY_S


async def test_looks_that_take_long_are_further_apart(stage: Stage) -> None:
    await stage.listen()
    stage.source.on_look = lambda: stage.clock.advance(0.1)
    stage.clock.advance(POLL_S)
    await stage.feed.step()
    stage.hints.send(Hint.READY)
    assert await stage.feed.step() == pytest.approx(1.0)


async def test_a_look_that_fails_is_made_again_and_nothing_is_lost(stage: Stage) -> None:
    listener = await stage.listen()
    stage.source.error = DatabaseUnreachableError("away")
    stage.source.put(schedule_of())
    stage.hints.send(Hint.SCHEDULES)
    stage.clock.advance(QUICK_S)
    for _ in range(2):
        with pytest.raises(DatabaseUnreachableError):
            await stage.feed.step()
    stage.source.error = None
    await stage.feed.step()
    assert told(listener) == [("schedule", 1)]


# --- too much --------------------------------------------------------------------------------------------


async def test_of_very_many_changes_the_first_are_told_and_the_rest_by_a_reset(stage: Stage) -> None:
    listener = await stage.listen()
    await stage.look(*(schedule_of(number) for number in range(1, MAX_SENT + 1)))
    assert told(listener) == [("schedule", number) for number in range(1, MAX_SENT + 1)]
    await stage.look(
        *(schedule_of(number) for number in range(1, 11)),
        *(execution_of(number) for number in range(MAX_SENT)),
    )
    heard = told(listener)
    assert heard[:10] == [("schedule", number) for number in range(1, 11)]
    assert heard[10:-1] == [("execution", "pending")] * (MAX_SENT - 10)
    assert heard[-1] == ("reset", "too_many_changes")


async def test_what_was_left_out_is_followed_as_well(stage: Stage) -> None:
    listener = await stage.listen()
    await stage.look(*(execution_of(number) for number in range(MAX_SENT + 1)))
    taken(listener)
    await stage.look(execution_of(MAX_SENT, "running"))
    assert told(listener) == [("execution", "running")]


async def test_resets_are_told_at_once_but_not_again_and_again(stage: Stage) -> None:
    listener = await stage.listen()

    async def look_at_many(version: int) -> list[tuple[str, Any]]:
        many = (schedule_of(number)._replace(aggregate_version=version) for number in range(MAX_SENT + 1))
        await stage.look(*many)
        return [each for each in told(listener) if each[0] == "reset"]

    assert await look_at_many(1) == [("reset", "too_many_changes")]
    assert await look_at_many(2) == []
    await stage.look(after_s=RESET_EVERY_S)
    assert told(listener) == [("reset", "too_many_changes")], "the one that was owed"
    await stage.look(after_s=RESET_EVERY_S)
    assert told(listener) == []


async def test_while_more_is_open_than_can_be_followed_resets_go_on_and_then_end(stage: Stage) -> None:
    listener = await stage.listen()
    stage.source.put(*(execution_of(number) for number in range(MAX_OPEN + 1)))
    stage.source._new.clear()
    stage.source.is_complete = False
    await stage.look()
    assert told(listener) == [("reset", "too_many_changes")]
    stage.source.is_complete = True
    await stage.look(after_s=RESET_EVERY_S)
    assert told(listener) == [("reset", "too_many_changes")], "still too many"
    stage.source.put(execution_of(1, "success"))
    await stage.look(after_s=RESET_EVERY_S)
    assert told(listener)[-1] == ("reset", "too_many_changes"), "for what has ended meanwhile"
    await stage.look(after_s=RESET_EVERY_S)
    assert told(listener) == []
    await stage.look(execution_of(MAX_OPEN, "running"))
    assert told(listener) == [("execution", "running")], "all are followed now"


async def test_no_more_are_followed_than_can_be(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    await stage.listen()
    await stage.look(*(schedule_of(number) for number in range(MAX_SENT + 1)))
    await stage.look(*(execution_of(number) for number in range(MAX_OPEN + 1)))
    assert stage.source.begun == 1, "the next reset, and with it the next beginning, is yet to come"
    followed: list[int] = []
    read_changes = stage.source.read_changes

    async def counting(mark: Mark, known: Collection[UUID]) -> ChangeBatch:
        followed.append(len(known))
        return await read_changes(mark, known)

    monkeypatch.setattr(stage.source, "read_changes", counting)
    await stage.look()
    assert followed == [MAX_OPEN]


# --- figures ---------------------------------------------------------------------------------------------

FIGURES = frozenset({StreamKind.STATUS})


async def test_the_figures_are_the_hosts_own_and_told_when_they_change(stage: Stage) -> None:
    stage.source.put(execution_of(1), execution_of(2), execution_of(3, "running"))
    stage.source.put(execution_of(4, host_id=THEIRS), execution_of(5, "success"))
    listener = await stage.listen(kinds=FIGURES)
    await stage.look()
    [event] = taken(listener)
    assert event["data"] == {
        "counts": {"pending": 2, "retrying": 0, "running": 1},
        "leaders": ["one"],
    }
    await stage.look(execution_of(4, "running", host_id=THEIRS))
    assert taken(listener) == []
    await stage.look(execution_of(2, "success"))
    assert taken(listener)[0]["data"]["counts"]["pending"] == 1
    stage.source.leading = ("one", "two")
    await stage.look()
    assert taken(listener)[0]["data"]["leaders"] == ["one", "two"]


async def test_the_figures_are_told_at_most_every_two_seconds(stage: Stage) -> None:
    listener = await stage.listen(kinds=FIGURES)
    await stage.look(execution_of(1))
    taken(listener)
    await stage.look(execution_of(1, "running"), after_s=BUSY_S)
    assert taken(listener) == []
    await stage.look(after_s=STATUS_EVERY_S - BUSY_S)
    assert taken(listener)[0]["data"]["counts"]["running"] == 1


async def test_who_comes_second_is_told_the_figures_as_well(stage: Stage) -> None:
    first = await stage.listen(kinds=FIGURES)
    await stage.look()
    taken(first)
    second = await stage.listen(kinds=FIGURES)
    await stage.look()
    assert len(taken(second)) == 1


async def test_figures_that_are_not_known_are_not_told(stage: Stage) -> None:
    stage.source.put(*(execution_of(number) for number in range(MAX_OPEN + 1)))
    listener = await stage.listen(kinds=FIGURES)
    await stage.look()
    assert [each["data"].get("counts") for each in taken(listener) if each["event"] == "status"] == [None]


# --- who hears what --------------------------------------------------------------------------------------


async def test_hosts_hear_nothing_of_each_other(stage: Stage) -> None:
    ours, theirs = await stage.listen(OURS), await stage.listen(THEIRS)
    await stage.look(
        schedule_of(1), schedule_of(2, host_id=THEIRS), execution_of(3, "running", host_id=THEIRS)
    )
    assert told(ours) == [("schedule", 1)]
    assert told(theirs) == [("schedule", 2), ("execution", "running")]


async def test_a_listener_hears_the_kinds_it_asked_for_and_of_resets(stage: Stage) -> None:
    listener = await stage.listen(kinds=frozenset({StreamKind.EXECUTION}))
    many = [schedule_of(number) for number in range(MAX_SENT)]
    await stage.look(execution_of(1))
    await stage.look(*many, execution_of(2), execution_of(3))
    assert told(listener) == [("execution", "pending"), ("reset", "too_many_changes")]


async def test_a_listener_hears_of_the_schedules_it_asked_for(stage: Stage) -> None:
    wanted = frozenset({UUID(int=2), execution_of(5).schedule_id})
    listener = await stage.listen(schedule_ids=wanted, kinds=frozenset(StreamKind))
    await stage.look(schedule_of(1), schedule_of(2), execution_of(4), execution_of(5, "running"))
    assert told(listener) == [("schedule", 2), ("execution", "running"), ("status", ["one"])]


async def test_no_more_than_so_many_listen_at_once(stage: Stage) -> None:
    listeners = [await stage.listen() for _ in range(MAX_LISTENERS)]
    with pytest.raises(OverloadedError):
        await stage.listen()
    listeners[0].leave()
    listeners[0].leave()
    await stage.listen()
    with pytest.raises(OverloadedError):
        await stage.listen()


async def test_those_who_wait_for_the_feed_to_begin_count_as_well(stage: Stage) -> None:
    waiting = [asyncio.create_task(stage.feed.listen(StreamFilter(OURS))) for _ in range(MAX_LISTENERS)]
    await asyncio.sleep(0)
    with pytest.raises(OverloadedError):
        await stage.feed.listen(StreamFilter(OURS))
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await stage.listen()


# --- coming back -----------------------------------------------------------------------------------------


async def test_who_comes_back_gets_what_it_has_missed_and_nothing_twice(stage: Stage) -> None:
    listener = await stage.listen()
    await stage.look(schedule_of(1))
    [last] = taken(listener)
    listener.leave()
    await stage.look(schedule_of(2), schedule_of(3, host_id=THEIRS), schedule_of(4))
    again = await stage.listen(last_event_id=last["id"])
    assert told(again) == [("schedule", 2), ("schedule", 4)]
    await stage.look(schedule_of(5))
    assert told(again) == [("schedule", 5)]


async def test_ids_grow_by_one_and_belong_to_the_feed(stage: Stage) -> None:
    listener = await stage.listen()
    await stage.look(schedule_of(1), schedule_of(2))
    names, numbers = zip(*(each["id"].split("-") for each in taken(listener)), strict=True)
    assert numbers == ("1", "2")
    assert len(set(names)) == 1
    assert Stage().feed.ring.id_of(1) != stage.feed.ring.id_of(1)


async def test_an_id_moves_on_past_what_was_not_wanted(stage: Stage) -> None:
    listener = await stage.listen()
    await stage.look(*(schedule_of(number, host_id=THEIRS) for number in range(3)))
    assert taken(listener) == []
    assert stage.feed.ring.last >= 3
    assert listener.event_id == stage.feed.ring.id_of(stage.feed.ring.last)


@pytest.mark.parametrize(
    "event_id", ["", "x", "{name}", "{name}-", "{name}-x", "{name}--1", "{name}-99", "{name}-²", "other-1"]
)
async def test_who_comes_back_with_an_id_that_is_not_known_is_told_to_read_again(
    stage: Stage, event_id: str
) -> None:
    listener = await stage.listen()
    await stage.look(schedule_of(1))
    name = taken(listener)[0]["id"].split("-")[0]
    again = await stage.listen(last_event_id=event_id.format(name=name))
    assert told(again) == [("reset", "unknown_event_id")]
    await stage.look(schedule_of(2))
    assert told(again) == [("schedule", 2)]


async def test_an_id_is_good_for_as_long_as_all_that_came_after_it_is_kept(stage: Stage) -> None:
    listener = await stage.listen()
    first = listener.event_id
    while stage.feed.ring.last < MAX_KEPT:
        await stage.look(schedule_of(stage.feed.ring.last))
        taken(listener)
    assert len(taken(await stage.listen(last_event_id=first))) >= MAX_KEPT - 1
    await stage.look(schedule_of(1))
    assert told(await stage.listen(last_event_id=first)) == [("reset", "unknown_event_id")]


def test_a_ring_keeps_its_last_events() -> None:
    ring = Ring(3)
    for number in range(1, 6):
        ring.add(StreamKind.RESET, {"reason": str(number)})
    assert ring.position_of(ring.id_of(1)) is None
    assert ring.position_of(ring.id_of(2)) == 2
    kept = [(number, parsed(event.message)[0]["data"]["reason"]) for number, event in ring.after(2)]
    assert kept == [(3, "3"), (4, "4"), (5, "5")]
    assert list(ring.after(5)) == []


def test_an_endless_number_is_no_id() -> None:
    ring = Ring()
    assert ring.position_of(ring.id_of(0)) == 0
    assert ring.position_of(ring.id_of(0) + "0" * 100_000) is None


async def test_a_slow_listener_is_told_to_read_again_and_goes_on(stage: Stage) -> None:
    slow, quick = await stage.listen(), await stage.listen()
    for _ in range(MAX_KEPT // MAX_SENT):
        await stage.look(*(schedule_of(number) for number in range(MAX_SENT)))
        assert len(quick.take(MAX_SENT)) == MAX_SENT
    await stage.look(schedule_of(1))
    assert told(slow) == [("reset", "too_slow")]
    assert told(quick) == [("schedule", 1)]
    await stage.look(schedule_of(2))
    assert (told(slow), told(quick)) == ([("schedule", 2)], [("schedule", 2)])


async def test_the_feed_goes_on_for_a_while_when_nobody_listens_and_then_forgets(stage: Stage) -> None:
    listener = await stage.listen()
    await stage.look(schedule_of(1))
    [last] = taken(listener)
    listener.leave()
    await stage.look(schedule_of(2), after_s=LINGER_S - 1)
    again = await stage.listen(last_event_id=last["id"])
    assert told(again) == [("schedule", 2)]
    again.leave()
    stage.clock.advance(LINGER_S)
    assert await stage.feed.step() is None
    later = await stage.listen(last_event_id=again.event_id)
    assert stage.source.begun == 2
    assert told(later) == [("reset", "unknown_event_id")]


# --- what is sent to one client --------------------------------------------------------------------------


class Client:
    """Reads what is sent, without waiting for real time to pass."""

    def __init__(self, stage: Stage, subscription: Subscription) -> None:
        self.is_valid = True
        self.error: Exception | None = None
        self.checks = 0
        self._stage = stage
        self._subscription = subscription
        self._messages: AsyncIterator[bytes] = messages(subscription, stage.clock, self._is_still_valid)

    async def _is_still_valid(self) -> bool:
        self.checks += 1
        if self.error is not None:
            raise self.error
        return self.is_valid

    async def read(self) -> bytes | None:
        """The next message; None: the stream has ended."""
        return await anext(self._messages, None)

    async def reads_nothing(self) -> asyncio.Task[bytes | None]:
        """A read that is under way and finds nothing to read yet."""
        reading = asyncio.create_task(self.read())
        await self.settle()
        assert not reading.done()
        return reading

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def pass_time(self, seconds: float) -> None:
        self._stage.clock.advance(seconds)
        self._subscription.notify()
        await self.settle()


@pytest.fixture
async def client(stage: Stage) -> Client:
    return Client(stage, await stage.listen())


async def begin(client: Client) -> bytes:
    """Read what comes before anything happens."""
    first = await client.read()
    assert first is not None
    assert first.startswith(b"retry: ")
    second = await client.read()
    assert second is not None
    return second


async def test_a_client_has_an_id_to_come_back_with_before_anything_happens(
    stage: Stage, client: Client
) -> None:
    message = await begin(client)
    assert message.startswith(b":")
    assert parsed(message) == [{"id": stage.feed.ring.id_of(0)}]


async def test_a_client_that_comes_back_is_first_sent_what_it_has_missed(stage: Stage) -> None:
    await stage.listen()
    await stage.look(schedule_of(1))
    client = Client(stage, await stage.listen(last_event_id=stage.feed.ring.id_of(0)))
    [event] = parsed(await begin(client))
    assert (event["event"], event["id"]) == ("schedule", stage.feed.ring.id_of(1))


async def test_a_client_is_sent_events_as_they_come(stage: Stage, client: Client) -> None:
    await begin(client)
    reading = await client.reads_nothing()
    await stage.look(schedule_of(1), schedule_of(2))
    message = await reading
    assert message is not None
    assert [each["event"] for each in parsed(message)] == ["schedule", "schedule"]


async def test_silence_is_broken_by_a_heartbeat(stage: Stage, client: Client) -> None:
    await begin(client)
    reading = await client.reads_nothing()
    await client.pass_time(HEARTBEAT_S - 1)
    assert not reading.done()
    await client.pass_time(1)
    message = await reading
    assert message is not None
    assert message.startswith(b": heartbeat\n")
    await client.reads_nothing()


async def test_a_stream_ends_when_its_credential_is_no_longer_valid(stage: Stage, client: Client) -> None:
    await begin(client)
    reading = await client.reads_nothing()
    client.is_valid = False
    await client.pass_time(CHECK_EVERY_S - HEARTBEAT_S)
    assert (await reading, client.checks) != (None, 1)
    reading = await client.reads_nothing()
    await client.pass_time(HEARTBEAT_S)
    assert (await reading, client.checks) == (None, 1)


async def test_nothing_is_sent_to_a_credential_that_is_no_longer_valid(stage: Stage, client: Client) -> None:
    await begin(client)
    client.is_valid = False
    await stage.look(schedule_of(1), after_s=CHECK_EVERY_S)
    assert await client.read() is None


async def test_while_a_credential_can_not_be_checked_nothing_is_sent_and_the_stream_stays(
    stage: Stage, client: Client
) -> None:
    await begin(client)
    client.error = DatabaseUnreachableError("away")
    await stage.look(schedule_of(1), after_s=CHECK_EVERY_S)
    reading = await client.reads_nothing()
    client.error = None
    await client.pass_time(0)
    message = await reading
    assert message is not None
    assert parsed(message)[0]["event"] == "schedule"


async def test_all_streams_end_when_the_feed_is_closed_and_no_other_begins(
    stage: Stage, client: Client
) -> None:
    await begin(client)
    reading = await client.reads_nothing()
    stage.feed.close()
    assert await reading is None
    with pytest.raises(OverloadedError):
        await stage.feed.listen(StreamFilter(OURS))


async def test_those_who_wait_for_a_feed_that_is_closed_are_told(stage: Stage) -> None:
    joining = asyncio.create_task(stage.feed.listen(StreamFilter(uuid4())))
    await asyncio.sleep(0)
    stage.feed.close()
    with pytest.raises(OverloadedError):
        await joining

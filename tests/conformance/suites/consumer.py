"""What a consumer of the outbox must do: every event's work once and in order, whatever fails."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from sqlalchemy import insert, select, text, update
from tests.conformance.suites.consumer_scene import POLL_S, Outbox, two_hosts

from foliot.db.dialect import Pool
from foliot.db.hints import Hint
from foliot.db.rows.event_rows import write_events
from foliot.db.tables.events import consumed_event_t, event_store_t, relay_t
from foliot.model.delivery_events import EventsConsumed, EventsDeadLettered
from foliot.model.errors import FencedError, FoliotError, NotFoundError
from foliot.model.ids import DEFAULT_HOST_ID, new_id
from foliot.outbox.claims_sql import ConsumerClaim
from foliot.outbox.handler_calls import BatchBrokenError, HandlerDeadlineError
from foliot.outbox.handlers import EventTransaction
from foliot.planning.change import Author

MAX_BREAKS = 50


class Died(BaseException):
    """As a process that is killed."""


async def nothing() -> None:
    """What a killed process does about its claim."""


class ConsumerConformance:
    """Fixture: `outbox`."""

    # --- reading ----------------------------------------------------------------------------------

    async def test_a_handler_gets_every_event_once_in_the_order_of_commits(self, outbox: Outbox) -> None:
        written = [*await outbox.write("a", "b"), *await outbox.write("a"), *await outbox.write("b")]
        consumer = outbox.consumer()
        await outbox.consume(consumer)
        written += await outbox.write("c")
        await outbox.consume(consumer)
        assert await outbox.handled() == written
        assert await outbox.offsets() == [6]
        assert sum(each.handled for each in outbox.of(EventsConsumed)) == 5

    async def test_an_event_says_all_that_was_written(self, outbox: Outbox) -> None:
        seen: list[EventTransaction] = []

        async def keep(transaction: EventTransaction) -> None:
            seen.append(transaction)

        [planned] = await outbox.events("order-7")
        database = outbox.scene.store.database
        await database.write(Pool.WORK, lambda found: write_events(found, database.dialect, [planned]))
        await outbox.consume(outbox.consumer(outbox.spec(handler=keep)))
        [transaction] = seen
        [event] = transaction.events
        assert (event.id, event.type, event.subject) == (planned.id, "OrderPlaced", "order-7")
        assert (event.data, event.time, event.host_id) == ({"n": 1}, planned.event_ts, DEFAULT_HOST_ID)
        assert (event.aggregate_id, event.aggregate_version) == ("order-7", 1)
        assert (event.topic, event.offset, event.payload["specversion"]) == ("orders", 1, "1.0")
        assert transaction.attempt == 1

    async def test_a_transaction_is_given_whole_however_small_the_batch(self, outbox: Outbox) -> None:
        transactions = [tuple(await outbox.write(*names)) for names in ("abc", "d", "ef")]
        consumer = outbox.consumer(batch=2)
        await consumer.step()
        await consumer.step()
        assert [ids for _, ids in outbox.calls] == transactions[:1]
        await outbox.consume(consumer)
        assert [ids for _, ids in outbox.calls] == transactions
        assert len({transaction_id for transaction_id, _ in outbox.calls}) == 3

    async def test_a_transaction_is_not_cut_where_the_look_ends(
        self, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("foliot.outbox.consumer.MIN_SCAN", 1)
        transactions = [tuple(await outbox.write(*names)) for names in ("abc", "defgh", "i")]
        await outbox.consume(outbox.consumer(batch=1))
        assert [ids for _, ids in outbox.calls] == transactions

    async def test_other_topics_are_passed_over(self, outbox: Outbox) -> None:
        ids = await outbox.write("a", "b", "c", topics=["orders", "stock", "orders"])
        await outbox.write("d", topics=["stock"])
        await outbox.consume(outbox.consumer(topics=("orders",)))
        assert await outbox.handled() == [ids[0], ids[2]]
        assert await outbox.offsets() == [5]

    async def test_groups_know_nothing_of_each_other(self, outbox: Outbox) -> None:
        [first] = await outbox.write("a")
        await outbox.consume(outbox.consumer(group="billing"))
        await outbox.consume(outbox.consumer(group="shipping"))
        assert await outbox.handled() == [first, first]

    async def test_a_new_group_may_begin_at_the_end(self, outbox: Outbox) -> None:
        await outbox.write("a")
        consumer = outbox.consumer(start="latest")
        await outbox.consume(consumer)
        [later] = await outbox.write("a")
        await outbox.consume(consumer)
        assert await outbox.handled() == [later]

    async def test_a_hint_wakes_it_and_a_poll_is_enough(self, outbox: Outbox) -> None:
        consumer = outbox.consumer()
        await outbox.consume(consumer)
        assert await consumer.step() == POLL_S
        outbox.hints.send(Hint.EVENTS)
        assert consumer.wake.is_set

    # --- partitions -------------------------------------------------------------------------------

    async def test_each_host_is_handled_by_one_partition_and_all_are(self, outbox: Outbox) -> None:
        one, two = two_hosts()
        ids = await outbox.write("a", "b", "c", hosts=[one, two, one])
        await outbox.consume(outbox.consumer(partitions=2))
        assert sorted(ids for _, ids in outbox.calls) == sorted([(ids[0], ids[2]), (ids[1],)])
        assert await outbox.offsets() == [4, 4]

    async def test_a_changed_number_of_partitions_is_taken_over_and_nothing_is_done_twice(
        self, outbox: Outbox
    ) -> None:
        one, two = two_hosts()
        ids = await outbox.write("a", "b", hosts=[one, two])
        await outbox.consume(outbox.consumer(partitions=2))
        ids += await outbox.write("a", "b", hosts=[one, two])
        uneven = outbox.consumer(partitions=2)
        await uneven.step()
        assert len(set(await outbox.offsets())) == 2, "one of two is ahead"
        await outbox.consume(outbox.consumer(partitions=5))
        ids += await outbox.write("a", "b", hosts=[one, two])
        assert len(await outbox.offsets()) == 5
        await outbox.consume(uneven)
        assert len(await outbox.offsets()) == 5, "one that has had its number goes along"
        done = await outbox.handled()
        assert sorted(done) == sorted(ids)
        assert [each for each in done if each in ids[::2]] == ids[::2]

    # --- handlers that fail -----------------------------------------------------------------------

    async def test_one_that_fails_is_tried_again_in_its_place(self, outbox: Outbox) -> None:
        ids = [each for name in "abc" for each in await outbox.write(name)]

        def once(transaction: EventTransaction) -> BaseException | None:
            is_second = transaction.events[0].id == ids[1]
            return ValueError("not yet") if is_second and transaction.attempt == 1 else None

        outbox.fails = once
        await outbox.consume(outbox.consumer())
        assert await outbox.handled() == ids
        assert [each for _, [each] in outbox.calls] == [ids[0], ids[1], ids[1], ids[2]]

    async def test_one_that_always_fails_becomes_a_dead_letter_and_the_rest_goes_on(
        self, outbox: Outbox
    ) -> None:
        ids = [each for name in "abc" for each in await outbox.write(name)]
        outbox.fails = lambda found: ValueError("bad \0 one") if found.events[0].id == ids[1] else None
        await outbox.consume(outbox.consumer())
        assert await outbox.handled() == [ids[0], ids[2]], "of what failed nothing is left"
        [letter] = await outbox.letters().all()
        assert (letter.group_id, letter.c_offset, letter.attempts) == ("billing", 2, 3)
        assert letter.error == "ValueError: bad \ufffd one"
        assert letter.traceback is not None
        assert "in handle" in letter.traceback
        assert [each["id"] for each in letter.events] == [str(ids[1])]
        [told] = outbox.of(EventsDeadLettered)
        assert told.transaction_id == letter.transaction_id
        await outbox.consume(outbox.consumer())
        assert len(await outbox.letters().all()) == 1

    async def test_an_error_of_the_database_that_the_handler_hides_is_its_failure(
        self, outbox: Outbox
    ) -> None:
        ids = [each for name in "ab" for each in await outbox.write(name)]

        async def hide(transaction: EventTransaction) -> None:
            await outbox.handle(transaction)
            if transaction.events[0].id == ids[0]:
                try:
                    await transaction.connection.execute(text("SELECT nothing FROM nowhere"))
                except Exception:
                    if outbox.scene.store.database.dialect.name == "sqlite":
                        raise  # there a statement that fails is only itself

        await outbox.consume(outbox.consumer(outbox.spec(handler=hide)))
        assert await outbox.handled() == [ids[1]]
        assert len(await outbox.letters().all()) == 1

    async def test_a_handler_that_takes_too_long_is_stopped_and_stops_nothing(self, outbox: Outbox) -> None:
        ids = [each for name in "ab" for each in await outbox.write(name)]

        async def hang(transaction: EventTransaction) -> None:
            if transaction.events[0].id == ids[0]:
                await asyncio.Event().wait()
            await outbox.handle(transaction)

        await outbox.consume(outbox.consumer(outbox.spec(handler=hang, timeout_s=0.2, max_attempts=2)))
        [letter] = await outbox.letters().all()
        assert letter.error == "HandlerDeadlineError: it took longer than 0.2 s"
        assert await outbox.handled() == [ids[1]]

    async def test_whatever_a_handler_raises_is_its_failure_and_no_more(self, outbox: Outbox) -> None:
        class MuteError(Exception):
            def __str__(self) -> str:
                raise RuntimeError("can't even say what it is")

        errors = [MuteError(), asyncio.CancelledError(), TimeoutError("its own"), OSError("not the database")]
        ids = [each for _ in errors for each in await outbox.write("a")]
        by_id = dict(zip(ids, errors, strict=True))
        last = await outbox.write("a")
        outbox.fails = lambda found: by_id.get(found.events[0].id)
        await outbox.consume(outbox.consumer(max_attempts=1))
        assert await outbox.handled() == last
        assert [letter.error for letter in await outbox.letters().all()] == [
            "MuteError",
            "HandlerCancelledError: what it waited for was cancelled",
            "TimeoutError: its own",
            "OSError: not the database",
        ]

    async def test_a_batch_that_takes_long_is_cut_short_and_committed(self, outbox: Outbox) -> None:
        ids = [each for name in "abc" for each in await outbox.write(name)]

        async def take_long(transaction: EventTransaction) -> None:
            await outbox.handle(transaction)
            outbox.clock.advance(31)

        consumer = outbox.consumer(outbox.spec(handler=take_long, timeout_s=60))
        await consumer.step()
        await consumer.step()
        assert await outbox.handled() == ids[:1]
        assert await outbox.offsets() == [2]
        await outbox.consume(consumer)
        assert await outbox.handled() == ids

    async def test_a_handler_that_ends_the_transaction_does_so_in_vain(self, outbox: Outbox) -> None:
        ids = [each for name in "ab" for each in await outbox.write(name)]

        async def commit(transaction: EventTransaction) -> None:
            await outbox.handle(transaction)
            if transaction.events[0].id == ids[0]:
                await transaction.connection.commit()

        await outbox.consume(outbox.consumer(outbox.spec(handler=commit)))
        assert await outbox.handled() == [ids[1]]
        [letter] = await outbox.letters().all()
        assert letter.error.startswith("NotYoursToEndError")

    async def test_what_is_not_committed_leaves_nothing(self, outbox: Outbox) -> None:
        """As a process that dies: whatever it had done of the batch is as if it had not been."""
        ids = [each for name in "ab" for each in await outbox.write(name)]

        class Died(BaseException):
            pass

        outbox.fails = lambda found: Died() if found.events[0].id == ids[1] else None
        consumer = outbox.consumer()
        await consumer.step()
        with pytest.raises(Died):
            await consumer.step()
        assert await outbox.handled() == []
        outbox.fails = lambda _: None
        await outbox.consume(outbox.consumer())
        assert await outbox.handled() == ids

    async def test_work_whose_offset_can_not_move_is_undone(
        self, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ids = await outbox.write("a")
        consumer = outbox.consumer()
        await consumer.step()

        async def refuse(*_: object) -> None:
            raise ConnectionError("lost")

        with monkeypatch.context() as patched:
            patched.setattr("foliot.outbox.consumer.move_partition", refuse)
            with pytest.raises(FoliotError):
                await consumer.step()
        assert await outbox.handled() == []
        await outbox.consume(consumer)
        assert await outbox.handled() == ids

    # --- dead letters -----------------------------------------------------------------------------

    async def test_a_dead_letter_is_replayed_once(self, outbox: Outbox) -> None:
        ids = await outbox.write("a", "b")
        outbox.fails = lambda _: ValueError("away")
        await outbox.consume(outbox.consumer())
        letters = outbox.letters()
        found = await letters.all()
        outbox.fails = lambda _: None
        for letter in found:
            assert await letters.replay(letter.dead_letter_id)
        assert await outbox.handled() == ids
        with pytest.raises(NotFoundError):
            await letters.replay(found[0].dead_letter_id)
        assert await letters.all() == []
        assert all(kept.replayed_ts is not None for kept in await letters.all(includes_replayed=True))

    async def test_a_dead_letter_is_replayed_on_request_by_a_consumer_of_its_group(
        self, outbox: Outbox
    ) -> None:
        ids = await outbox.write("a", "b")
        outbox.fails = lambda _: ValueError("away")
        consumer = outbox.consumer()
        await outbox.consume(consumer)
        admin, [first, second] = outbox.scene.store.event_admin, await outbox.letters().all()
        outbox.fails = lambda found: ValueError("still") if found.events[0].id == ids[1] else None
        for letter in (first, second):
            await admin.replay(letter.dead_letter_id, Author())
        outbox.clock.advance(2)
        await outbox.consume(consumer)
        assert await outbox.handled() == ids[:1]
        [left] = await outbox.letters().all()
        assert (left.dead_letter_id, left.error) == (second.dead_letter_id, "ValueError: still")
        outbox.clock.advance(2)
        await outbox.consume(consumer)
        assert len(outbox.calls) == 3 + 2 * 3 + 2, "a request is carried out once"

    # --- one event of many ------------------------------------------------------------------------

    async def test_only_the_event_that_fails_becomes_a_dead_letter(self, outbox: Outbox) -> None:
        one, two = two_hosts()
        ids = await outbox.write("a", "b", "c", "d", hosts=[one, two, one, two])
        later = await outbox.write("e")
        outbox.fails = lambda found: ValueError("bad") if ids[2] in [e.id for e in found.events] else None
        await outbox.consume(outbox.consumer())
        assert await outbox.handled() == [ids[0], ids[1], ids[3], *later]
        [letter] = await outbox.letters().all()
        assert [each["id"] for each in letter.events] == [str(ids[2])]
        assert (letter.c_offset, letter.attempts, letter.host_id) == (3, 3, one)

    async def test_a_transaction_that_failed_as_a_whole_goes_on_event_by_event_after_a_cut(
        self, outbox: Outbox
    ) -> None:
        ids = await outbox.write("a", "b", "c")

        def fails(found: EventTransaction) -> BaseException | None:
            outbox.clock.advance(31)
            return ValueError("bad") if ids[1] in [each.id for each in found.events] else None

        outbox.fails = fails
        consumer = outbox.consumer(timeout_s=60)
        await consumer.step()
        await consumer.step()
        assert await outbox.handled() == ids[:1]
        assert await outbox.offsets() == [2], "in the middle of the transaction"
        await outbox.consume(consumer)
        assert await outbox.handled() == [ids[0], ids[2]]
        wholes = [each for _, each in outbox.calls if len(each) > 1]
        assert len(wholes) == 3, "the rest is not tried as a whole again"

    async def test_an_event_that_breaks_its_batch_breaks_no_other(self, outbox: Outbox) -> None:
        """By its deadline in the midst of a statement: the whole transaction is rolled back."""
        ids = await outbox.write("a", "b", "c")
        broken = HandlerDeadlineError("too long")

        async def handle(transaction: EventTransaction) -> None:
            await outbox.handle(transaction)
            if ids[1] in [each.id for each in transaction.events]:
                await transaction.connection.exec_driver_sql("RELEASE SAVEPOINT foliot_event")
                raise broken

        consumer = outbox.consumer(outbox.spec(handler=handle, max_attempts=2))
        for _ in range(MAX_BREAKS):
            try:
                if await consumer.step() == POLL_S:
                    break
            except BatchBrokenError:
                continue
        assert await outbox.handled() == [ids[0], ids[2]]
        [letter] = await outbox.letters().all()
        assert [each["id"] for each in letter.events] == [str(ids[1])]

    # --- processes that die -----------------------------------------------------------------------

    async def test_an_event_whose_handler_kills_its_process_becomes_a_dead_letter(
        self, outbox: Outbox
    ) -> None:
        ids = [each for names in ("ab", "cd", "e") for each in await outbox.write(*names)]
        outbox.fails = lambda found: Died() if ids[2] in [each.id for each in found.events] else None
        deaths = 0
        for _ in range(20):
            consumer = outbox.consumer()  # a new process each time
            consumer._presence.take_back = nothing  # type: ignore[method-assign]
            try:
                await outbox.consume(consumer)
            except Died:
                deaths += 1
                await outbox.age_claims()
                continue
            break
        assert deaths == 1 + 3, "in its batch, and then as often as it may be tried"
        assert await outbox.handled() == [each for each in ids if each != ids[2]]
        [letter] = await outbox.letters().all()
        assert ([each["id"] for each in letter.events], letter.attempts) == ([str(ids[2])], 3)
        assert letter.error == "the process ended while it handled the event, 3 times"

    async def test_a_process_that_lives_takes_its_claim_back(self, outbox: Outbox) -> None:
        """A database that goes away makes no dead letters, however often, whoever goes on."""
        ids = await outbox.write("a")
        outbox.fails = lambda _: Died()
        for _ in range(10):
            consumer = outbox.consumer()
            with pytest.raises(Died):
                await outbox.consume(consumer)
        outbox.fails = lambda _: None
        await outbox.consume(outbox.consumer())
        assert await outbox.handled() == ids
        assert await outbox.letters().all() == []

    async def test_a_process_that_comes_back_late_withdraws_the_crash_that_another_counted(
        self, outbox: Outbox
    ) -> None:
        ids = await outbox.write("a")
        outbox.fails = lambda _: Died()
        owners = []
        for _ in range(2):
            dead = outbox.consumer()
            take_back, dead._presence.take_back = dead._presence.take_back, nothing  # type: ignore[method-assign]
            with pytest.raises(Died):
                await outbox.consume(dead)
            await outbox.age_claims()
            owners.append(take_back)
        third = outbox.consumer(max_attempts=2)
        third._presence.take_back = nothing  # type: ignore[method-assign]
        with pytest.raises(Died):
            await outbox.consume(third)  # careful; it counts the second
        await owners[1]()
        await outbox.age_claims()
        outbox.fails = lambda _: None
        await outbox.consume(outbox.consumer(max_attempts=2))
        assert await outbox.handled() == ids
        assert await outbox.letters().all() == []

    async def test_one_that_locks_its_partition_too_late_withdraws_the_crash_that_another_counted(
        self, outbox: Outbox
    ) -> None:
        ids = await outbox.write("a")
        outbox.fails = lambda _: Died()
        dead = outbox.consumer()
        dead._presence.take_back = nothing  # type: ignore[method-assign]
        with pytest.raises(Died):
            await outbox.consume(dead)
        outbox.fails = lambda _: None
        consumers = outbox.scene.store.consumers
        late = outbox.consumer(max_attempts=2)
        handling, times_left = late._presence.handling, 3

        @asynccontextmanager
        async def overtaken(claim: ConsumerClaim) -> AsyncIterator[None]:
            """Another claims the partition before this one has locked it, and lives as well."""
            nonlocal times_left
            await outbox.age_claims()
            other = None
            if times_left:
                other = await consumers.claim("billing", before=2, owner="another", reach=1)
                assert other is not None
                assert other.offset == claim.offset
            async with handling(claim):
                yield
            if other is not None:
                times_left -= 1
                await consumers.claims.take_back("billing", other, "another")

        late._presence.handling = overtaken  # type: ignore[method-assign]
        await outbox.age_claims()
        await outbox.consume(late)
        assert times_left == 0
        assert await outbox.handled() == ids
        assert await outbox.letters().all() == []

    async def test_a_replay_that_fails_says_the_new_reason_and_leaves_nothing(self, outbox: Outbox) -> None:
        await outbox.write("a")
        outbox.fails = lambda _: ValueError("away")
        await outbox.consume(outbox.consumer())
        outbox.fails = lambda _: KeyError("still")
        letters = outbox.letters()
        [letter] = await letters.all()
        assert not await letters.replay(letter.dead_letter_id)
        [letter] = await letters.all()
        assert (letter.error, letter.attempts) == ("KeyError: 'still'", 4)
        assert await outbox.handled() == []

    async def test_all_are_replayed_in_the_order_of_their_offsets(self, outbox: Outbox) -> None:
        ids = [each for name in "abcde" for each in await outbox.write(name)]
        outbox.fails = lambda _: ValueError("away")
        await outbox.consume(outbox.consumer(max_attempts=1))
        outbox.fails = lambda found: ValueError("bad") if found.events[0].id == ids[2] else None
        assert await outbox.letters().replay_all() == (4, 1)
        assert await outbox.handled() == [each for each in ids if each != ids[2]]

    async def test_a_dead_letter_is_dropped_by_its_own_group_only(self, outbox: Outbox) -> None:
        await outbox.write("a")
        outbox.fails = lambda _: ValueError("away")
        await outbox.consume(outbox.consumer(max_attempts=1))
        [letter] = await outbox.letters().all()
        with pytest.raises(NotFoundError):
            await outbox.letters(outbox.spec(group="other")).drop(letter.dead_letter_id)
        await outbox.letters().drop(letter.dead_letter_id)
        assert await outbox.letters().all() == []

    # --- pruning ----------------------------------------------------------------------------------

    async def test_old_events_go_and_none_that_somebody_is_still_to_read(self, outbox: Outbox) -> None:
        scene = outbox.scene
        for name in "abcdef":
            await outbox.write(name)
        lease = await scene.lead()
        later = await scene.now() + timedelta(days=1)
        ahead, behind = outbox.consumer(group="ahead"), outbox.consumer(group="behind", batch=1)
        await outbox.consume(ahead)
        for _ in range(4):
            await behind.step()
        assert await outbox.offsets("behind") == [4]
        relayed = {"relay_name": "default", "instance_id": "", "epoch": 1, "next_offset": 3}
        await scene.execute(insert(relay_t).values(**relayed, last_heartbeat=later))

        async def prune(limit: int = 100) -> int:
            return await scene.store.upkeep.prune_events(lease, before=later, limit=limit)

        assert await prune(limit=1) == 1
        assert await prune() == 1
        assert await outbox.left() == [3, 4, 5, 6], "the relay has not shipped the third"
        await scene.execute(update(relay_t).values(next_offset=7))
        assert await prune() == 1
        assert await outbox.left() == [4, 5, 6], "one group has not handled the fourth"
        assert len(await scene.rows(select(event_store_t.c.id))) == 3
        await outbox.consume(behind)
        assert await prune() == 3
        assert await outbox.left() == []

    async def test_a_deposed_leader_prunes_nothing(self, outbox: Outbox) -> None:
        await outbox.write("a")
        scene = outbox.scene
        old, later = await scene.lead(), await scene.now() + timedelta(days=1)
        await scene.lead(instance_id="another")
        with pytest.raises(FencedError):
            await scene.store.upkeep.prune_events(old, before=later, limit=10)
        assert await outbox.left() == [1]

    async def test_young_events_stay(self, outbox: Outbox) -> None:
        await outbox.write("a")
        scene = outbox.scene
        lease, before = await scene.lead(), await scene.now() - timedelta(days=1)
        assert await scene.store.upkeep.prune_events(lease, before=before, limit=10) == 0
        assert await outbox.left() == [1]

    async def test_a_group_that_comes_after_pruning_begins_with_what_is_left(self, outbox: Outbox) -> None:
        await outbox.write("a")
        scene = outbox.scene
        lease, later = await scene.lead(), await scene.now() + timedelta(days=1)
        await scene.store.upkeep.prune_events(lease, before=later, limit=10)
        consumer = outbox.consumer()
        await outbox.consume(consumer)
        assert await outbox.offsets() == [2]
        ids = await outbox.write("b")
        await outbox.consume(consumer)
        assert await outbox.handled() == ids

    async def test_what_was_noted_of_brokers_is_forgotten_after_a_week(self, outbox: Outbox) -> None:
        scene = outbox.scene
        now = await scene.now()
        for days in (6, 8):
            row = {"group_id": "g", "event_id": new_id(), "consumed_ts": now - timedelta(days=days)}
            await scene.execute(insert(consumed_event_t).values(row))
        assert await scene.store.upkeep.prune_events(await scene.lead(), before=now, limit=10) == 1
        [row] = await scene.rows(select(consumed_event_t))
        assert row.consumed_ts == now - timedelta(days=6)


class SharingConformance:
    """Several at once, where the database has more than one writer. Fixture: `outbox`."""

    async def test_two_consumers_work_at_once_on_two_partitions(self, outbox: Outbox) -> None:
        one, two = two_hosts()
        await outbox.write("a", "b", hosts=[one, two])
        both = asyncio.Barrier(2)

        async def meet(_transaction: EventTransaction) -> None:
            async with asyncio.timeout(20):
                await both.wait()

        stores = await outbox.scene.stores(2)
        consumers = [outbox.consumer(outbox.spec(handler=meet, partitions=2), each) for each in stores]
        await consumers[0].step()
        await asyncio.gather(*(each.step() for each in consumers))
        assert await outbox.offsets() == [3, 3]

    async def test_of_two_consumers_on_one_partition_one_handles_a_batch(self, outbox: Outbox) -> None:
        await outbox.write("a")
        began, goes_on = asyncio.Event(), asyncio.Event()

        async def wait(transaction: EventTransaction) -> None:
            began.set()
            await goes_on.wait()
            await outbox.handle(transaction)

        one, two = await outbox.scene.stores(2)
        first, second = outbox.consumer(outbox.spec(handler=wait), one), outbox.consumer(store=two)
        await first.step()
        busy = asyncio.create_task(first.step())
        await began.wait()
        try:
            assert await second.step() == POLL_S
        finally:
            goes_on.set()
            await busy
        assert await second.step() == POLL_S
        assert len(await outbox.handled()) == 1

"""Sending in order: what is in doubt stops its aggregate; what is confirmed counts from the first on."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.conformance.suites.relay import always, message_of

from foliot.model.errors import BrokerUnreachableError
from foliot.outbox import ordered_sending
from foliot.outbox.message_format import LONGEST_TOPIC, BrokerMessage, cut, pack, topic_at_broker
from foliot.outbox.ordered_sending import asking, send_in_order


def parcels_of(keys: str) -> list[BrokerMessage]:
    """One for each letter, which is its key; ids are their numbers."""
    return [BrokerMessage(str(number), "topic", key, {}, b"x") for number, key in enumerate(keys)]


class Wire:
    """Confirms when it is told to."""

    def __init__(self, on_send: Callable[[BrokerMessage], Awaitable[None]] | None = None) -> None:
        self.sent: list[str] = []
        self.under_way: list[str] = []
        self._on_send = on_send

    async def send(self, message: BrokerMessage) -> None:
        assert message.key not in self.under_way
        self.sent.append(message.id)
        self.under_way.append(message.key)
        try:
            await (self._on_send(message) if self._on_send else asyncio.sleep(0))
        finally:
            self.under_way.remove(message.key)


def refusing(*ids: str) -> Callable[[BrokerMessage], Awaitable[None]]:
    async def answer(message: BrokerMessage) -> None:
        await asyncio.sleep(0)
        if message.id in ids:
            raise BrokerUnreachableError(message.id)

    return answer


async def test_two_of_one_aggregate_are_never_under_way_at_once_and_many_aggregates_are() -> None:
    counts: list[int] = []

    async def answer(_message: BrokerMessage) -> None:
        counts.append(len(wire.under_way))
        await asyncio.sleep(0)

    wire = Wire(answer)
    assert await send_in_order(parcels_of("abcabcaab"), wire.send, always) == 9
    assert max(counts) == 3
    assert [each for each in wire.sent if each in "0367"] == ["0", "3", "6", "7"]


async def test_what_follows_a_refused_one_of_its_aggregate_is_not_sent() -> None:
    wire = Wire(refusing("2"))
    assert await send_in_order(parcels_of("abaab"), wire.send, always) == 2
    assert "3" not in wire.sent


async def test_only_what_is_confirmed_without_a_gap_is_counted() -> None:
    wire = Wire(refusing("1"))
    assert await send_in_order(parcels_of("abcd"), wire.send, always) == 1
    assert set(wire.sent) == {"0", "1", "2", "3"}


async def test_when_nothing_is_confirmed_the_reason_is_told() -> None:
    with pytest.raises(BrokerUnreachableError, match="0"):
        await send_in_order(parcels_of("ab"), Wire(refusing("0")).send, always)


async def test_when_one_fails_the_others_are_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ordered_sending, "GRACE_S", 0.01)
    never = asyncio.Event()

    async def answer(message: BrokerMessage) -> None:
        if message.id == "2":
            raise BrokerUnreachableError("2")
        if message.id != "0":
            await never.wait()

    wire = Wire(answer)
    async with asyncio.timeout(10):
        assert await send_in_order(parcels_of("abc"), wire.send, always) == 1
    assert wire.under_way == [], "nothing of it is left behind"


async def test_nothing_is_sent_once_the_lease_is_not_trusted() -> None:
    asked = iter(range(100))
    wire = Wire()
    assert await send_in_order(parcels_of("aaaaaa"), wire.send, lambda: next(asked) < 4) == 4
    assert wire.sent == ["0", "1", "2", "3"]


async def test_nothing_to_send_is_nothing() -> None:
    assert await send_in_order([], Wire().send, always) == 0


async def test_being_cancelled_ends_what_is_under_way() -> None:
    has_begun, never = asyncio.Event(), asyncio.Event()

    async def answer(_message: BrokerMessage) -> None:
        has_begun.set()
        await never.wait()

    wire = Wire(answer)
    task = asyncio.create_task(send_in_order(parcels_of("abc"), wire.send, always))
    await has_begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert wire.under_way == []


async def test_a_broker_that_does_not_answer_is_given_up() -> None:
    with pytest.raises(BrokerUnreachableError, match=r"did not answer within 0\.01 s"):
        async with asking("broker", call_s=0.01):
            await asyncio.Event().wait()


async def test_a_clients_own_cancel_is_a_broken_connection_and_ours_is_ours() -> None:
    with pytest.raises(BrokerUnreachableError, match="broke"):
        async with asking("broker"):
            raise asyncio.CancelledError

    async def ask() -> None:
        async with asking("broker"):
            await asyncio.Event().wait()

    task = asyncio.create_task(ask())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_error_is_told_without_the_password() -> None:
    with pytest.raises(BrokerUnreachableError) as told:
        async with asking("broker", OSError):
            raise OSError("can't reach amqp://user:hunter2@host/")
    assert "hunter2" not in str(told.value)
    assert "host" in str(told.value)


# --- what travels ---------------------------------------------------------------------------------


def test_pieces_are_bounded_by_number_and_by_bytes_and_lose_nothing() -> None:
    messages = [
        BrokerMessage(str(n), "t", "k", {}, b"x" * size) for n, size in enumerate((1, 1, 1, 50, 1, 5, 5, 1))
    ]
    pieces = list(cut(messages, 3, 10))
    assert [[len(each.body) for each in piece] for piece in pieces] == [[1, 1, 1], [50], [1, 5], [5, 1]]
    assert [each for piece in pieces for each in piece] == messages
    assert list(cut([], 3, 10)) == []


def test_topics_that_differ_stay_apart_however_long_they_are() -> None:
    names = ["orders", "orders/eu", "orders_2f_", "長" * 126, "長" * 125 + "短", ".", ".."]
    shown = [topic_at_broker(name) for name in names]
    assert shown[0] == "orders"
    assert len(set(shown)) == len(names)
    assert all(len(each) <= LONGEST_TOPIC and each not in (".", "..") for each in shown)


def test_numbers_beyond_64_bits_and_any_text_travel() -> None:
    message = message_of("orders", "aggregate", 1, 1)
    message.payload["data"] = {"n": 2**80, "text": "größe"}
    assert b'"n":1208925819614629174706176' in pack(message).body
    assert "größe".encode() in pack(message).body

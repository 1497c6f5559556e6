"""Messages of a broker as events: those of a relay, those of others, and what is none."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from foliot.outbox.message_parser import NO_HOST, UNREADABLE, ReceivedMessage, unpack

SENT = datetime(2026, 3, 1, tzinfo=UTC)
ID = "0195d3a8-0000-7000-8000-000000000007"


def arrived(value: bytes, **headers: str) -> ReceivedMessage:
    return ReceivedMessage("orders", 2, 41, SENT, headers, value)


def test_an_event_of_another_producer_needs_no_more_than_an_id() -> None:
    unpacked = unpack(arrived(b'{"specversion": "1.0", "id": "abc", "source": "/shop", "data": 7}'))
    assert unpacked.error is None
    event = unpacked.event
    assert (event.data, event.time, event.offset, event.host_id) == (7, SENT, 41, NO_HOST)
    assert unpacked.transaction_id == event.id


def test_an_id_that_is_no_uuid_is_the_same_event_whenever_it_comes() -> None:
    one = unpack(arrived(b'{"id": "abc", "source": "/shop"}')).event.id
    again = unpack(ReceivedMessage("orders", 0, 99, SENT, {}, b'{"source": "/shop", "id": "abc"}')).event.id
    other = unpack(arrived(b'{"id": "abc", "source": "/other"}')).event.id
    assert one == again != other


def test_what_a_relay_says_beside_the_body_is_taken() -> None:
    headers = {"c_offset": "7", "transaction_id": str(UUID(int=9)), "aggregate_id": "order-1"}
    unpacked = unpack(arrived(f'{{"id": "{ID}", "subject": "s", "aggregateversion": 3}}'.encode(), **headers))
    event = unpacked.event
    assert (str(event.id), event.offset, event.aggregate_id, event.aggregate_version) == (ID, 7, "order-1", 3)
    assert unpacked.transaction_id == UUID(int=9)


def test_times_have_a_zone_and_text_can_be_stored() -> None:
    event = unpack(
        arrived(b'{"id": "a", "time": "2026-03-01T02:00:00", "data": {"x\\u0000": ["\\u0000"]}}')
    ).event
    assert event.time == datetime(2026, 3, 1, 2, tzinfo=UTC)
    assert event.data == {"x\ufffd": ["\ufffd"]}
    east = unpack(arrived(b'{"id": "a", "time": "2026-03-01T02:00:00+01:00"}')).event
    assert east.time == datetime(2026, 3, 1, 2, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff\x00",
        b"[]",
        b'"text"',
        b"{}",
        b'{"id": 7}',
        b'{"id": "a", "time": "noon"}',
        b'{"id": "a", "aggregateversion": "many"}',
        b'{"id": "a", "data": ' + b"[" * 1000 + b"]" * 1000 + b"}",
        b'{"id": "a", "data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_what_is_no_event_says_so_and_keeps_its_text(value: bytes) -> None:
    unpacked = unpack(arrived(value))
    assert unpacked.error is not None
    assert unpacked.event.type == UNREADABLE
    assert "\0" not in unpacked.event.data
    assert unpack(arrived(value)).event.id == unpacked.event.id


@pytest.mark.parametrize("offset", ["-1", "x", str(2**63)])
def test_an_offset_that_is_none_is_not_taken(offset: str) -> None:
    assert unpack(arrived(b'{"id": "a"}', c_offset=offset)).error is not None

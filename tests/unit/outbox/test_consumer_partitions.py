"""Whose events are whose, and where a batch ends."""

from uuid import UUID

import pytest

from foliot.model.errors import InvalidError
from foliot.outbox.handlers import ConsumerSpec, Event, EventTransaction
from foliot.outbox.partitions import OutboxPosition, partition_of, whole_transactions

HOST = UUID("00000000-0000-7000-8000-000000000001")


async def handle(_transaction: EventTransaction) -> None:
    """Nothing."""


def placed(*sizes: int, host: UUID = HOST) -> list[OutboxPosition]:
    """Transactions of so many messages each, one after another from offset 1."""
    found: list[OutboxPosition] = []
    for number, size in enumerate(sizes):
        first = len(found) + 1
        found += [OutboxPosition(first + at, host, UUID(int=number), first + size) for at in range(size)]
    return found


def test_a_host_keeps_its_partition_for_ever() -> None:
    assert [partition_of(HOST, count) for count in (1, 2, 4, 1024)] == [0, 0, 0, 328]
    assert [partition_of(UUID(int=5), count) for count in (1, 2, 4, 1024)] == [0, 1, 3, 495]


def test_hosts_spread_over_the_partitions() -> None:
    counts = [0] * 8
    for number in range(8_000):
        counts[partition_of(UUID(int=number), 8)] += 1
    assert all(850 < count < 1150 for count in counts)


@pytest.mark.parametrize(
    ("sizes", "limit", "taken", "end"),
    [
        ((1, 1, 1), 2, 2, 3),
        ((3, 1), 2, 3, 4),
        ((1, 3, 1), 2, 4, 5),
        ((2, 2), 4, 4, 5),
        ((), 4, 0, 1),
    ],
)
def test_a_batch_ends_with_a_transaction(sizes: tuple[int, ...], limit: int, taken: int, end: int) -> None:
    rows = placed(*sizes)
    stretch = whole_transactions(rows, partition=0, partitions=1, limit=limit, end=len(rows) + 1)
    assert (len(stretch.own), stretch.end) == (taken, end)


def test_a_partition_goes_past_what_is_anothers() -> None:
    other = next(UUID(int=n) for n in range(1, 99) if partition_of(UUID(int=n), 2) == 1)
    rows = placed(5, host=other)
    assert whole_transactions(rows, partition=0, partitions=2, limit=2, end=6) == ((), 6)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("group", ""),
        ("group", "x" * 127),
        ("handler", print),
        ("topics", ()),
        ("topics", ("",)),
        ("partitions", 0),
        ("batch", 0),
        ("max_attempts", 0),
        ("timeout_s", 0),
        ("timeout_s", float("nan")),
        ("start", "middle"),
        ("source", "amqp://host/"),
        ("source", "nonsense"),
        ("source", "kafka://host:9092"),
    ],
)
def test_a_consumer_that_makes_no_sense_is_refused_where_it_is_declared(field: str, value: object) -> None:
    fields: dict[str, object] = {"group": "billing", "handler": handle, field: value}
    with pytest.raises(InvalidError):
        ConsumerSpec(**fields)  # type: ignore[arg-type]


def test_binary_data_is_given_as_bytes() -> None:
    document = {
        "id": str(HOST),
        "type": "t",
        "subject": "s",
        "time": "2026-03-01T00:00:00+00:00",
        "host_id": str(HOST),
        "aggregate_id": "a",
        "aggregate_version": 1,
        "topic": "orders",
        "offset": 1,
        "payload": {"data_base64": "aGk="},
    }
    event = Event.of_document(document)
    assert event.data == b"hi"
    assert event.document() == document

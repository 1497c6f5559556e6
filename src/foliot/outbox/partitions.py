"""Pure functions: which partition a host's events belong to, and where a batch ends."""

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID


class OutboxPosition(NamedTuple):
    """The position of a message in the outbox."""

    c_offset: int
    host_id: UUID
    transaction_id: UUID
    transaction_end: int
    """The offset after the last message of its transaction, including messages of other partitions."""


class PartitionBatch(NamedTuple):
    """The messages that one batch handles."""

    own: tuple[OutboxPosition, ...]
    end: int
    """The partition's next offset when the batch is handled. All its own messages before it are done."""


@lru_cache(maxsize=65_536)
def partition_of(host_id: UUID, partitions: int) -> int:
    """Return the partition of a host. It never changes: otherwise events could be handled out of order.

    It is a hash, since ids of hosts may be chosen by people.
    """
    digest = hashlib.blake2b(host_id.bytes, digest_size=8).digest()
    return int.from_bytes(digest) % partitions


def first_alone(stretch: PartitionBatch) -> PartitionBatch:
    """Return a batch with only the first event."""
    if len(stretch.own) < 2:
        return stretch
    return PartitionBatch(stretch.own[:1], stretch.own[1].c_offset)


def whole_transactions(
    placed: Iterable[OutboxPosition], *, partition: int, partitions: int, limit: int, end: int
) -> PartitionBatch:
    """Select up to `limit` messages of the partition, plus the rest of the last one's transaction.

    `end` is the offset after these messages. No transaction may continue beyond it.
    """
    own: list[OutboxPosition] = []
    for each in placed:
        if partition_of(each.host_id, partitions) != partition:
            continue
        if len(own) >= limit and each.transaction_id != own[-1].transaction_id:
            return PartitionBatch(tuple(own), own[-1].transaction_end)
        own.append(each)
    return PartitionBatch(tuple(own), end)

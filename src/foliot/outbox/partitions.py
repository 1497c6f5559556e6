"""Whose events are whose, and where a batch ends. Pure."""

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID


class Placed(NamedTuple):
    """Where a message stands in the outbox."""

    c_offset: int
    host_id: UUID
    transaction_id: UUID
    transaction_end: int
    """The offset after the last of its transaction, whoever has the rest of it."""


class PartitionBatch(NamedTuple):
    """What one batch handles."""

    own: tuple[Placed, ...]
    end: int
    """Where the partition goes on when all of it is handled: nothing before is its own any more."""


@lru_cache(maxsize=65_536)
def partition_of(host_id: UUID, partitions: int) -> int:
    """The partition of a host. It never changes: a host that moved would be handled out of order.

    A hash, since the ids of hosts may be chosen by people.
    """
    digest = hashlib.blake2b(host_id.bytes, digest_size=8).digest()
    return int.from_bytes(digest) % partitions


def first_alone(stretch: PartitionBatch) -> PartitionBatch:
    """Only the first event of a stretch."""
    if len(stretch.own) < 2:
        return stretch
    return PartitionBatch(stretch.own[:1], stretch.own[1].c_offset)


def whole_transactions(
    placed: Iterable[Placed], *, partition: int, partitions: int, most: int, end: int
) -> PartitionBatch:
    """The partition's own among these, up to `most`, with the rest of the transaction that reaches it.

    `end` is where these end, and no transaction may go on behind it.
    """
    own: list[Placed] = []
    for each in placed:
        if partition_of(each.host_id, partitions) != partition:
            continue
        if len(own) >= most and each.transaction_id != own[-1].transaction_id:
            return PartitionBatch(tuple(own), own[-1].transaction_end)
        own.append(each)
    return PartitionBatch(tuple(own), end)

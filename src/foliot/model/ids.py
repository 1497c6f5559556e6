"""Identities: time-ordered ids, and the fixed slot that places a schedule in a shard."""

import hashlib
from uuid import UUID

import uuid_utils

SLOTS = 1024
"""Slots are fixed for ever; shards are `slot mod N`, so changing N rewrites no schedule."""

DEFAULT_HOST_ID = UUID("00000000-0000-7000-8000-000000000001")
"""The host that everything belongs to until an operator makes another."""


def new_id() -> UUID:
    """A UUIDv7: unique, and ordered by time so that indexes grow at their end."""
    return UUID(int=uuid_utils.uuid7().int)


def slot_of(schedule_id: UUID) -> int:
    """The slot of a schedule: a hash, since the high bits of a UUIDv7 are a time and not spread."""
    digest = hashlib.blake2b(schedule_id.bytes, digest_size=4).digest()
    return int.from_bytes(digest) % SLOTS

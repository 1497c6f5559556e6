"""Ids: time-ordered UUIDs, and the fixed slot that assigns a schedule to a shard."""

import hashlib
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from random import getrandbits
from uuid import UUID, SafeUUID

from uuid_utils.compat import uuid7

from foliot.model.instant import EPOCH, micros_of

SLOTS = 1024
"""Slots never change; a shard is `slot mod N`, so changing N rewrites no schedule."""

DEFAULT_HOST_ID = UUID("00000000-0000-7000-8000-000000000001")
"""The host that everything belongs to until an operator creates another."""


def new_id(now: datetime | None = None) -> UUID:
    """Return a UUIDv7: unique, and ordered by time so that indexes grow at their end.

    With `now` it has the cluster's time, so that history can be pruned by a range of ids.
    """
    return uuid7(nanoseconds=None if now is None else micros_of(now) * 1000)


def ids_at(now: datetime) -> Callable[[], UUID]:
    """Return a function that makes ids of one instant for a batch, in ascending order for fast inserts.

    Two batches of one instant begin at random among 2⁶¹ values and continue in steps of up to 2³².
    """
    milliseconds, rest = divmod(micros_of(now), 1000)
    high = (milliseconds << 80) | (0x7 << 76) | ((rest * 4096 // 1000) << 64) | (0x2 << 62)
    tail = secrets.randbits(61)

    def next_id() -> UUID:
        nonlocal tail
        tail += 1 + getrandbits(32)
        # Like UUID(int=…) without its checks, in a quarter of the time.
        made = object.__new__(UUID)
        object.__setattr__(made, "int", high | tail)
        object.__setattr__(made, "is_safe", SafeUUID.unknown)
        return made

    return next_id


def derived_id(identity: UUID, part: UUID) -> UUID:
    """Return an id of the same instant for a part of something larger. Equal inputs give equal ids."""
    digest = hashlib.blake2b(identity.bytes + part.bytes, digest_size=8).digest()
    tail = int.from_bytes(digest) & ((1 << 62) - 1)
    return UUID(int=identity.int >> 64 << 64 | 0x2 << 62 | tail)


_NAMED = 0x8F01
"""Marks ids that end in a hash of host and name: version 8 of RFC 9562 (custom), and a number of ours."""


def schedule_id_of(identity: UUID, host_id: UUID, name: str) -> UUID:
    """Return the id of a new schedule: time and random bits of `identity`, then a hash of host and name.

    `H` in its cron expression is computed from the hash, so its times are known before it is saved.
    """
    random = identity.int & ((1 << 62) - 1) >> 32 << 32
    return UUID(int=identity.int >> 80 << 80 | _NAMED << 64 | 0x2 << 62 | random | _hash_of(host_id, name))


def hash_key(schedule_id: UUID) -> str:
    """Return the value from which `H` in the schedule's cron expression is computed. Renames keep it."""
    if schedule_id.int >> 64 & 0xFFFF == _NAMED:
        return f"{schedule_id.int & 0xFFFF_FFFF:08x}"
    return str(schedule_id)  # an id without a hash, from an older version


def hash_key_of_name(host_id: UUID, name: str) -> str:
    """Return the hash key that a new schedule of this name would get."""
    return f"{_hash_of(host_id, name):08x}"


def _hash_of(host_id: UUID, name: str) -> int:
    digest = hashlib.blake2b(host_id.bytes + name.encode(errors="backslashreplace"), digest_size=4).digest()
    return int.from_bytes(digest)


def first_id_at(instant: datetime) -> UUID:
    """Return the smallest id that an execution created at this instant can have."""
    milliseconds = micros_of(instant) // 1000
    return UUID(int=(milliseconds << 80) | (0x7 << 76) | (0x2 << 62))


def instant_of_id(identity: UUID) -> datetime:
    """Return when an id was made, to the millisecond."""
    return EPOCH + timedelta(milliseconds=identity.int >> 80)


def slot_of(schedule_id: UUID) -> int:
    """Return the slot of a schedule: a hash, because the high bits of a UUIDv7 are a time."""
    digest = hashlib.blake2b(schedule_id.bytes, digest_size=4).digest()
    return int.from_bytes(digest) % SLOTS

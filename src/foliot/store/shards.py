"""Which rows of `schedule_t` belong to a shard."""

from typing import Any

from foliot.model.lease import Shard
from foliot.store.schema import schedule_t


def is_of(shard: Shard) -> tuple[Any, ...]:
    """Conditions on `schedule_t`. Empty if there is a single shard."""
    return () if shard.of == 1 else (schedule_t.c.slot % shard.of == shard.number,)

"""Ids derived from the seed and the virtual clock, so that a history can be repeated exactly."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch
from uuid import UUID

from foliot.model import ids
from foliot.model.instant import micros_of
from foliot.timing.clock import Clock


class _Dice:
    """Replaces `secrets` in the product's id module."""

    def __init__(self, choose: random.Random) -> None:
        self.randbits = choose.getrandbits


@contextmanager
def seeded_ids(seed: int, clock: Clock) -> Iterator[None]:
    choose = random.Random(f"ids {seed}")

    def uuid7(nanoseconds: int | None = None) -> UUID:
        micros = micros_of(clock.now()) if nanoseconds is None else nanoseconds // 1000
        milliseconds, rest = divmod(micros, 1000)
        high = milliseconds << 80 | 0x7 << 76 | (rest * 4096 // 1000) << 64
        return UUID(int=high | 0x2 << 62 | choose.getrandbits(62))

    with (
        patch.object(ids, "uuid7", uuid7),
        patch.object(ids, "secrets", _Dice(choose)),
        patch.object(ids, "getrandbits", choose.getrandbits),
    ):
        yield

"""The right to lead a shard."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shard:
    """A slice of the schedules: those whose slot mod `of` is `number`."""

    number: int
    of: int

    @property
    def lock_id(self) -> int:
        """Its row in `scheduler_lock_t`; rows count from 1, as a classic single lock does."""
        return self.number + 1


@dataclass(frozen=True, slots=True)
class Lease:
    """Proof that an instance was made the leader of a shard, under a number that is never given again."""

    shard: Shard
    epoch: int
    instance_id: str
